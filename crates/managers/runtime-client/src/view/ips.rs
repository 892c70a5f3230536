//! Pod addresses (pod-lifecycle 4.1, 7.1).

use std::net::IpAddr;

use model::runtime::{PodObservation, SandboxObservation};

/// Those of the newest sandbox while it is ready. A pod whose sandboxes are all down keeps the ones it had: its address
/// must outlive its sandbox.
pub(super) fn of(pod: &PodObservation, before: &[IpAddr]) -> Vec<IpAddr> {
    let fresh = pod.sandbox().filter(|s| s.ready).map(parsed).unwrap_or_default();
    if fresh.is_empty() && !pod.sandboxes.iter().any(|s| s.ready) {
        return before.to_vec();
    }
    fresh
}

/// One address that cannot be read spoils all of them.
fn parsed(sandbox: &SandboxObservation) -> Vec<IpAddr> {
    let texts = sandbox.ips.iter().flatten().filter(|t| !t.is_empty());
    texts.map(|t| t.parse().ok()).collect::<Option<Vec<_>>>().unwrap_or_default()
}
