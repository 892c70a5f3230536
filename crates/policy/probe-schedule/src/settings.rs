//! A probe's numbers, read from the specification.

use std::time::Duration;

use model::core::{Container, Pod, Probe};
use model::pod;
use model::probe::ProbeKind;

/// Numbers of one probe, API defaults filled in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Kind.
    pub kind: ProbeKind,
    /// Whole seconds after the start of the container during which it is not probed.
    pub initial_delay_s: i64,
    /// Time between two probes.
    pub period: Duration,
    /// Longest time that one attempt may take.
    pub timeout: Duration,
    /// Successes in a row that count.
    pub success_threshold: u32,
    /// Failures in a row that count.
    pub failure_threshold: u32,
    /// The container is a sidecar.
    pub sidecar: bool,
}

fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.and_then(|v| u64::try_from(v).ok()).filter(|v| *v > 0).unwrap_or(default))
}

fn count(value: Option<i32>, default: u32) -> u32 {
    value.and_then(|v| u32::try_from(v).ok()).filter(|v| *v > 0).unwrap_or(default)
}

impl Settings {
    /// Reads a probe. Absent and non-positive numbers take the API's defaults: period 10 s, timeout 1 s, success 1, failure 3.
    #[must_use]
    pub fn new(kind: ProbeKind, probe: &Probe, sidecar: bool) -> Self {
        Self {
            kind,
            initial_delay_s: probe.initial_delay_seconds.map_or(0, i64::from),
            period: seconds(probe.period_seconds, 10),
            timeout: seconds(probe.timeout_seconds, 1),
            success_threshold: count(probe.success_threshold, 1),
            failure_threshold: count(probe.failure_threshold, 3),
            sidecar,
        }
    }
}

/// All probes of a pod, in spec order: those of sidecars and regular containers; plain init and ephemeral containers are
/// never probed (pod-lifecycle 8.1).
pub fn probes_of(pod: &Pod) -> impl Iterator<Item = (&Container, Settings, &Probe)> {
    let sidecars = pod::init_containers(pod).iter().filter(|c| pod::is_sidecar(c)).map(|c| (c, true));
    let regulars = pod::regular_containers(pod).iter().map(|c| (c, false));
    sidecars.chain(regulars).flat_map(|(c, sidecar)| {
        [
            (ProbeKind::Startup, &c.startup_probe),
            (ProbeKind::Readiness, &c.readiness_probe),
            (ProbeKind::Liveness, &c.liveness_probe),
        ]
        .into_iter()
        .filter_map(move |(kind, probe)| probe.as_ref().map(|p| (c, Settings::new(kind, p, sidecar), p)))
    })
}
