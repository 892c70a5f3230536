//! ConfigSources: where desired pods come from. Asks PodManager, is asked by nobody.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A source of desired pods; the text is the value of `kubernetes.io/config.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Source {
    /// A folder or file on this node.
    File,
    /// A URL.
    Http,
    /// The API server.
    Api,
    /// Of a newer peer: PodManager takes no set of it; a pod of it is none of the API server's.
    Unknown,
}
model::tolerant!(Source, else Source::Unknown);

impl Source {
    /// The annotation's value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::File => "file",
            Source::Http => "http",
            Source::Api => "api",
            Source::Unknown => "unknown",
        }
    }
}

/// What one manifest file is good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
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
    /// Of a newer peer: no more can be said of it.
    Unknown,
}
model::tolerant!(ManifestState, else ManifestState::Unknown);

/// What a folder or a URL (`staticPodURL`) holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifests {
    /// By path.
    pub manifests: BTreeMap<String, ManifestState>,
    /// The path itself is missing or unreadable.
    pub error: Option<String>,
    /// A full set has been delivered at least once.
    pub delivered: bool,
}

/// What the source of the API server publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// The folder of manifests (`staticPodPath`).
pub mod folder {
    use serde::{Deserialize, Serialize};

    use super::Manifests;

    /// What the folder holds.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct FolderManifests(pub Manifests);

    impl std::ops::Deref for FolderManifests {
        type Target = Manifests;

        fn deref(&self) -> &Manifests {
            &self.0
        }
    }
}

/// A URL that answers manifests (`staticPodURL`).
pub mod http {
    use serde::{Deserialize, Serialize};

    use super::Manifests;

    /// What the URL holds.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct UrlManifests(pub Manifests);

    impl std::ops::Deref for UrlManifests {
        type Target = Manifests;

        fn deref(&self) -> &Manifests {
            &self.0
        }
    }
}
