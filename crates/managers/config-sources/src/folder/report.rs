//! What is reported of manifest files, to the log and as events.

use std::path::PathBuf;

/// Something that people should know, reported once per change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The content is refused.
    Refused {
        file: PathBuf,
        errors: Vec<String>,
        /// The former pod runs on.
        keeps_old: bool,
    },
    /// The content is still refused, and now the former pod is given up.
    Dropped { file: PathBuf, pod: String },
    /// The entry is no file.
    Skipped { file: PathBuf, reason: String },
    /// Good, with warnings.
    Warned { file: PathBuf, warnings: Vec<String> },
    /// Another file defines the same pod and counts.
    Shadowed { file: PathBuf, by: PathBuf, pod: String },
}

impl Report {
    pub(super) fn log(&self) {
        match self {
            Report::Refused { file, errors, keeps_old } => {
                let until = if *keeps_old { "; its former version runs until the next listing" } else { "" };
                for error in errors {
                    tracing::error!(file = %file.display(), "manifest refused: {error}{until}");
                }
            }
            Report::Dropped { file, pod } => {
                tracing::error!(file = %file.display(), pod, "manifest still refused, its pod is given up");
            }
            Report::Skipped { file, reason } => tracing::warn!(file = %file.display(), "skipped: {reason}"),
            Report::Warned { file, warnings } => {
                for warning in warnings {
                    tracing::warn!(file = %file.display(), "{warning}");
                }
            }
            Report::Shadowed { file, by, pod } => {
                tracing::error!(file = %file.display(), by = %by.display(), pod, "two manifests define one pod");
            }
        }
    }

    /// Message of the event, when a pod does not run for it.
    pub(super) fn event(&self) -> Option<String> {
        match self {
            Report::Refused { file, errors, .. } => {
                Some(format!("Manifest {} refused: {}", file.display(), errors.join("; ")))
            }
            Report::Shadowed { file, by, pod } => {
                Some(format!("Manifest {} ignored: {} defines {pod} too", file.display(), by.display()))
            }
            Report::Dropped { .. } | Report::Skipped { .. } | Report::Warned { .. } => None,
        }
    }
}
