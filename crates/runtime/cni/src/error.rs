//! What goes wrong.

use std::io;

/// Why a network cannot be given or taken.
#[derive(Debug, thiserror::Error)]
pub enum CniError {
    /// No configuration that could be used.
    #[error("no network configuration in {folder}{because}")]
    NoConfiguration {
        /// The folder.
        folder: String,
        /// Which file is broken, and why; or nothing.
        because: String,
    },
    /// A configuration is broken.
    #[error("network configuration {file}: {reason}")]
    Configuration {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A plugin is not installed.
    #[error("network plugin {plugin:?} is in none of {folders}")]
    NoPlugin {
        /// Its name.
        plugin: String,
        /// Where it was looked for.
        folders: String,
    },
    /// A plugin says no.
    #[error("network plugin {plugin:?} ({command}): {message}")]
    Plugin {
        /// Its name.
        plugin: String,
        /// What it was asked for.
        command: &'static str,
        /// Its error code; 0: it gave none.
        code: u32,
        /// Its words.
        message: String,
    },
    /// A plugin took too long and was killed.
    #[error("network plugin {plugin:?} ({command}) did not end in time and was killed")]
    Late {
        /// Its name.
        plugin: String,
        /// What it was asked for.
        command: &'static str,
    },
    /// A version of CNI that the call needs is not that of the configuration.
    #[error("network {network:?} is of CNI {version}, which has no {command}")]
    Version {
        /// The network.
        network: String,
        /// Its version.
        version: String,
        /// What was asked for.
        command: &'static str,
    },
    /// A file.
    #[error("{what}: {source}")]
    Io {
        /// Which call and path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Names what failed.
pub(crate) fn failed(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> CniError {
    let what = what.to_string();
    move |source| CniError::Io { what, source }
}
