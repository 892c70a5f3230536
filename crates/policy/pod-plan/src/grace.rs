//! How long a pod and its containers get to stop (pod-lifecycle 2.3, 4.9).

use model::core::{Container, Pod};
use model::pod;

use crate::action::KillReason;

/// Least grace that a container runtime is given, in seconds.
pub const MIN_STOP_SECONDS: i64 = 2;
/// Least grace that a pod worker keeps, in seconds.
pub const MIN_POD_SECONDS: i64 = 1;

/// Grace of a pod that terminates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodGrace {
    /// Seconds, at least [`MIN_POD_SECONDS`].
    pub seconds: i64,
    /// An earlier, longer grace was cut: what is in flight should be cut too.
    pub shortened: bool,
}

/// Effective grace of a pod (pod-lifecycle 2.3). `stored` is the value of the last call (`None` at first),
/// `override_seconds` comes from a kill request. It never grows.
#[must_use]
pub fn pod_grace(stored: Option<i64>, pod: &Pod, override_seconds: Option<i64>) -> PodGrace {
    let supplied = [stored.filter(|s| *s > 0), pod.metadata.deletion_grace_period_seconds, override_seconds];
    let seconds =
        supplied.into_iter().flatten().min().or_else(|| pod::spec_grace_seconds(pod)).unwrap_or(0).max(MIN_POD_SECONDS);
    PodGrace { seconds, shortened: stored.is_some_and(|s| s > 0 && s != seconds) }
}

/// Seconds that one container gets for its preStop hook and its end together (4.9 steps 2 and 4), before
/// [`stop_seconds`] is applied. May be 0: then neither hook nor order count.
#[must_use]
pub fn container_grace(pod: &Pod, container: &Container, reason: KillReason, override_seconds: Option<i64>) -> i64 {
    if let Some(seconds) = override_seconds {
        return seconds;
    }
    if let Some(seconds) = pod.metadata.deletion_grace_period_seconds {
        return seconds;
    }
    let Some(spec) = pod::spec_grace_seconds(pod) else { return MIN_STOP_SECONDS };
    let probe = match reason {
        KillReason::LivenessProbe => container.liveness_probe.as_ref(),
        KillReason::StartupProbe => container.startup_probe.as_ref(),
        _ => None,
    };
    probe.and_then(|p| p.termination_grace_period_seconds).unwrap_or(spec)
}

/// What `StopContainer` is called with, given what hook and order have left of the grace.
#[must_use]
pub fn stop_seconds(remaining: i64) -> i64 {
    remaining.max(MIN_STOP_SECONDS)
}
