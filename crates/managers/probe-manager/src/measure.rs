//! Counts probes (interfaces 5.5).

use std::time::Duration;

use metrics::probes::{DURATION, TOTAL};
use model::core::Pod;
use model::pod;
use model::probe::ProbeOutcome;

use crate::entry::ProbeId;

const RESULTS: [&str; 3] = ["successful", "failed", "unknown"];

/// Counts one probe, its repetitions included. The time of failed ones is not observed, as with a kubelet.
pub(crate) fn count(of: &Pod, id: &ProbeId, outcome: ProbeOutcome, took: Duration) {
    let result = match outcome {
        ProbeOutcome::Success | ProbeOutcome::Warning => "successful",
        ProbeOutcome::Failure => "failed",
        ProbeOutcome::Error => "unknown",
    };
    let (kind, name, namespace) = (id.kind.as_str(), pod::name(of), pod::namespace(of));
    TOTAL.with_label_values(&[kind, result, &id.container, name, namespace, id.uid.as_str()]).inc();
    if outcome != ProbeOutcome::Failure {
        DURATION.with_label_values(&[kind, &id.container, name, namespace]).observe(took.as_secs_f64());
    }
}

/// The series of a worker end with it.
pub(crate) fn forget(of: &Pod, id: &ProbeId) {
    let (kind, name, namespace) = (id.kind.as_str(), pod::name(of), pod::namespace(of));
    for result in RESULTS {
        // Absent where there was no such result.
        let _gone = TOTAL.remove_label_values(&[kind, result, &id.container, name, namespace, id.uid.as_str()]);
    }
    let _gone = DURATION.remove_label_values(&[kind, &id.container, name, namespace]);
}
