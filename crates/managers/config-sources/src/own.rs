//! What a source makes of a pod that it read, before anybody else has it.

use std::sync::Arc;

use contract::config_sources::Source;
use model::core::Pod;
use model::{Timestamp, pod};

/// Stamps a pod, so that PodManager keeps it without a copy: with the time at which its source saw it first, which the one that was
/// there `before` says if it is the same pod.
pub(crate) fn own(mut pod: Arc<Pod>, source: Source, before: Option<&Arc<Pod>>, now: Timestamp) -> Arc<Pod> {
    let before = before.filter(|b| b.metadata.uid == pod.metadata.uid);
    let seen = before.and_then(|b| pod::annotation(b, pod::CONFIG_SEEN));
    let own = Arc::make_mut(&mut pod);
    pod::shrink(own);
    pod::stamp(own, source.as_str(), seen.unwrap_or(&now.rfc3339_nano()));
    pod
}
