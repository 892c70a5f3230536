//! Rows of boards, as the managers that own them would post them.

use std::sync::Arc;

use contract::Wiring;
use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::runtime::{Observed, RuntimeInfo};
use contract::status::StatusEntry;
use model::Timestamp;
use model::core::{Pod, PodStatus};
use model::runtime::PodObservation;

/// PodManager has a pod of this source, and admitted it.
pub fn desire(wiring: &Wiring, pod: impl Into<Arc<Pod>>, source: Source) {
    let pod = pod.into();
    wiring.put(model::pod::uid(&pod), DesiredPod::admitted(pod, source));
}

/// The runtime has this of a pod.
pub fn observe(wiring: &Wiring, pod: PodObservation) {
    wiring.put(pod.uid.clone(), Observed { pod: Arc::new(pod), observed_at: Timestamp(1) });
}

/// The first status of a pod, which is not its last.
#[must_use]
pub fn status_entry(pod: &Pod, status: PodStatus) -> StatusEntry {
    let (namespace, name) = (model::pod::namespace(pod).to_owned(), model::pod::name(pod).to_owned());
    StatusEntry { version: 1, namespace, name, status: Arc::new(status), finished: false, changed_at: Timestamp(1) }
}

/// A runtime that is well and has been listed.
#[must_use]
pub fn well() -> RuntimeInfo {
    RuntimeInfo { name: "fake".to_owned(), ready: true, network: Ok(()), listed: true, ..RuntimeInfo::unknown() }
}
