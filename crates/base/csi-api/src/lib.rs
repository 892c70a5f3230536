//! The messages of CSI v1 (services Identity and Node) and of plugin registration v1 as plain data, made from
//! `proto/csi/v1/csi.proto` and `proto/pluginregistration/v1/api.proto`.
//!
//! Messages, and what is to be believed of a call that failed: who speaks gRPC (adapters, drivers of tests) makes its own stubs over these types. Maps are ordered. Requests
//! that can hold secrets are printed without what they keep secret.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::collections::BTreeMap;
use std::fmt;

/// Package `csi.v1`.
#[allow(missing_docs, clippy::pedantic, clippy::doc_markdown)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/csi.v1.rs"));
}

/// Package `pluginregistration`.
#[allow(missing_docs, clippy::pedantic, clippy::doc_markdown)]
pub mod registration {
    include!(concat!(env!("OUT_DIR"), "/pluginregistration.rs"));
}

/// Key of a volume context below which the tokens of a pod's service account stand.
pub const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";

/// What a failed call leaves behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CsiOutcome {
    /// The driver refused: nothing of this call is under way, nor of one before. What it was to make may be removed.
    Final,
    /// No call was made: all is as it was before.
    Transient,
    /// The call, or one before it, may be under way or done: the volume counts as possibly there and has to be undone later.
    Uncertain,
}

/// Keys without their values.
struct Keys<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|key| (key, "..."))).finish()
    }
}

/// A volume context without the tokens in it.
struct Context<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(key, value): (&'_ String, &'_ String)| {
            (key.clone(), if key == TOKENS { "...".to_owned() } else { value.clone() })
        };
        f.debug_map().entries(self.0.iter().map(shown)).finish()
    }
}

impl fmt::Debug for v1::NodeStageVolumeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeStageVolumeRequest")
            .field("volume_id", &self.volume_id)
            .field("publish_context", &self.publish_context)
            .field("staging_target_path", &self.staging_target_path)
            .field("volume_capability", &self.volume_capability)
            .field("secrets", &Keys(&self.secrets))
            .field("volume_context", &Context(&self.volume_context))
            .finish()
    }
}

impl fmt::Debug for v1::NodePublishVolumeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodePublishVolumeRequest")
            .field("volume_id", &self.volume_id)
            .field("publish_context", &self.publish_context)
            .field("staging_target_path", &self.staging_target_path)
            .field("target_path", &self.target_path)
            .field("volume_capability", &self.volume_capability)
            .field("readonly", &self.readonly)
            .field("secrets", &Keys(&self.secrets))
            .field("volume_context", &Context(&self.volume_context))
            .finish()
    }
}

impl fmt::Debug for v1::NodeExpandVolumeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeExpandVolumeRequest")
            .field("volume_id", &self.volume_id)
            .field("volume_path", &self.volume_path)
            .field("capacity_range", &self.capacity_range)
            .field("staging_target_path", &self.staging_target_path)
            .field("volume_capability", &self.volume_capability)
            .field("secrets", &Keys(&self.secrets))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{TOKENS, v1};

    #[test]
    fn what_is_secret_is_not_printed() {
        let secrets = [("user".to_owned(), "hidden".to_owned())];
        let context = [(TOKENS.to_owned(), "hidden".to_owned()), ("share".to_owned(), "a".to_owned())];
        let stage = v1::NodeStageVolumeRequest {
            secrets: secrets.clone().into(),
            volume_context: context.clone().into(),
            ..Default::default()
        };
        let publish = v1::NodePublishVolumeRequest {
            secrets: secrets.clone().into(),
            volume_context: context.into(),
            ..Default::default()
        };
        let expand = v1::NodeExpandVolumeRequest { secrets: secrets.into(), ..Default::default() };
        for text in [format!("{stage:?}"), format!("{publish:?}"), format!("{expand:?}")] {
            assert!(!text.contains("hidden") && text.contains("user"), "{text}");
        }
        assert!(format!("{stage:?}").contains(r#""share": "a""#));
    }
}
