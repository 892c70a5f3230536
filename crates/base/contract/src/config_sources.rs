//! ConfigSources: where desired pods come from. Asks PodManager, is asked by nobody.

use std::collections::BTreeMap;

use crate::view::Published;

/// A source of desired pods; the text is the value of `kubernetes.io/config.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A folder or file on this node.
    File,
    /// A URL.
    Http,
    /// The API server.
    Api,
}

impl Source {
    /// The annotation's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::File => "file",
            Source::Http => "http",
            Source::Api => "api",
        }
    }
}

/// What one manifest file is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestState {
    /// Decoded and handed on, as `namespace/name`.
    Accepted {
        /// `namespace/name` of the pod.
        pod: String,
    },
    /// Refused; each entry says key path, value, reason and what is allowed.
    Refused {
        /// One line per mistake.
        errors: Vec<String>,
        /// A previous good version of it still runs.
        keeps_old: bool,
    },
}

/// What ConfigSources publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcesView {
    /// By path.
    pub manifests: BTreeMap<String, ManifestState>,
    /// The path itself is missing or unreadable.
    pub error: Option<String>,
    /// A full set has been delivered at least once.
    pub delivered: bool,
}

/// What the source of the API server publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiSourceView {
    /// A full set of the server has been delivered.
    pub synced: bool,
    /// What runs now comes from the pod store: the server has not been heard yet.
    pub from_store: bool,
    /// Pods in the last set.
    pub pods: usize,
    /// Last failure of list or watch; cleared by the next good answer.
    pub error: Option<String>,
}

/// How others see ConfigSources.
#[derive(Clone, Debug, Default)]
pub struct ConfigSourcesHandle {
    /// What the sources hold.
    pub view: Published<SourcesView>,
    /// What the URL holds (`staticPodURL`).
    pub url: Published<SourcesView>,
    /// The source of the API server.
    pub api: Published<ApiSourceView>,
}
