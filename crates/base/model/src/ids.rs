//! Identifiers as cheap, comparable newtypes.

use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(s: &str) -> Self {
                Self(s.into())
            }
        }
        impl From<String> for $name {
            fn from(s: String) -> Self {
                Self(s.into())
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), &self.0)
            }
        }
    };
}

id! {
    /// UID of a pod as the node uses it: for a static pod the one made from its manifest, never its mirror's.
    PodUid
}
id! {
    /// Id that the runtime gave a container, without the `<runtime>://` prefix.
    ContainerId
}
id! {
    /// Id that the runtime gave a pod sandbox.
    SandboxId
}

/// The id of a container without the name of its runtime: a status has `containerd://ID`.
#[must_use]
pub fn bare_id(full: &str) -> &str {
    full.split_once("://").map_or(full, |(_, bare)| bare)
}
