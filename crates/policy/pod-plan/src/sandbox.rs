//! Whether a pod needs a new sandbox (pod-lifecycle 4.2).

use std::fmt;

use model::SandboxId;
use model::core::Pod;
use model::pod;
use model::runtime::PodObservation;

/// Why a sandbox must be (re)created. Nothing else (labels, sysctls, DNS ...) ever triggers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
pub enum SandboxChange {
    /// There is none.
    Missing,
    /// More than one is ready.
    ManyReady,
    /// The newest is not ready.
    NotReady,
    /// `hostNetwork` of the specification differs.
    NetworkMode,
    /// A pod-network sandbox has no address.
    NoAddress,
}

impl fmt::Display for SandboxChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SandboxChange::Missing => "no sandbox exists",
            SandboxChange::ManyReady => "more than one sandbox is ready",
            SandboxChange::NotReady => "the newest sandbox is not ready",
            SandboxChange::NetworkMode => "the sandbox has another network mode",
            SandboxChange::NoAddress => "the sandbox has no address",
        })
    }
}

/// Outcome of the test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SandboxDecision {
    /// Set when the sandbox must be (re)created.
    pub changed: Option<SandboxChange>,
    /// Attempt of the sandbox in use, or of the one to create.
    pub attempt: u32,
    /// The sandbox in use, or the one to replace. Empty when there is none and when the network mode changed.
    pub id: Option<SandboxId>,
}

/// The first row of pod-lifecycle 4.2 that matches wins.
#[must_use]
pub fn sandbox_decision(pod: &Pod, observed: &PodObservation) -> SandboxDecision {
    let Some(latest) = observed.sandbox() else {
        return SandboxDecision { changed: Some(SandboxChange::Missing), attempt: 0, id: None };
    };
    let host_network = pod::is_host_network(pod);
    let no_address = latest.ips.as_ref().is_some_and(|ips| ips.first().is_none_or(String::is_empty));
    let changed = if observed.sandboxes.iter().filter(|s| s.ready).count() > 1 {
        Some(SandboxChange::ManyReady)
    } else if !latest.ready {
        Some(SandboxChange::NotReady)
    } else if latest.host_network.is_some_and(|h| h != host_network) {
        Some(SandboxChange::NetworkMode)
    } else if !host_network && no_address {
        Some(SandboxChange::NoAddress)
    } else {
        None
    };
    SandboxDecision {
        changed,
        attempt: latest.attempt.saturating_add(u32::from(changed.is_some())),
        id: (changed != Some(SandboxChange::NetworkMode)).then(|| latest.id.clone()),
    }
}
