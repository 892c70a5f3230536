//! State of the subscription to events, and what an event tells. Pure.

use std::collections::BTreeSet;

use actor::SpawnHandle;
use model::PodUid;
use model::runtime::PodObservation;
use ports::runtime::{PodStatuses, RuntimeEventKind};

use crate::requests::Expectation;
use crate::view::map;

/// State of the subscription.
#[derive(Debug, Default)]
pub(crate) struct Subscription {
    /// Subscriptions are numbered; answers of former ones are ignored.
    pub(crate) current: u64,
    /// The read of the stream that is under way.
    pub(crate) pump: Option<SpawnHandle>,
    pub(crate) failures: u32,
    /// Ids that events named and nobody knows yet.
    pub(crate) unknown: BTreeSet<String>,
}

/// The statuses, when they are of a pod of this node.
pub(crate) fn ours(statuses: &PodStatuses) -> Option<(PodUid, &PodStatuses)> {
    let uid = map::uid(&statuses.sandbox.labels)?;
    Some((uid.into(), statuses))
}

fn is_known(id: &str, pod: Option<&PodObservation>) -> bool {
    pod.is_some_and(|p| {
        p.sandboxes.iter().any(|s| s.id.as_str() == id) || p.containers.iter().any(|c| c.id.as_str() == id)
    })
}

/// What an inspection should show after an event of this kind.
pub(crate) fn expectation(kind: RuntimeEventKind) -> Expectation {
    match kind {
        RuntimeEventKind::Created => Expectation::Anything,
        RuntimeEventKind::Started => Expectation::Started,
        RuntimeEventKind::Stopped => Expectation::Stopped,
        RuntimeEventKind::Deleted => Expectation::Gone,
    }
}

/// Whether what is known already is what the event tells.
pub(crate) fn is_no_news(expectation: Expectation, id: &str, known: Option<&PodObservation>) -> bool {
    expectation != Expectation::Anything && expectation.met(id, known) && is_known(id, known)
}
