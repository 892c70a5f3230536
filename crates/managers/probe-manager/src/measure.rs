//! Counts probes (interfaces 5.5).

use std::time::Duration;

use metrics::probes::{DURATION, TOTAL};
use model::core::Pod;
use model::pod;
use probe_schedule::{Kind, Outcome};

use crate::entry::ProbeId;

const RESULTS: [&str; 3] = ["successful", "failed", "unknown"];

fn probe_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Startup => "Startup",
        Kind::Readiness => "Readiness",
        Kind::Liveness => "Liveness",
    }
}

/// Counts one probe, its repetitions included. Failed ones tell no time, as with a kubelet.
pub(crate) fn count(of: &Pod, id: &ProbeId, outcome: Outcome, took: Duration) {
    let result = match outcome {
        Outcome::Success | Outcome::Warning => "successful",
        Outcome::Failure => "failed",
        Outcome::Error => "unknown",
    };
    let (kind, name, namespace) = (probe_type(id.kind), pod::name(of), pod::namespace(of));
    TOTAL.with_label_values(&[kind, result, &id.container, name, namespace, id.uid.as_str()]).inc();
    if outcome != Outcome::Failure {
        DURATION.with_label_values(&[kind, &id.container, name, namespace]).observe(took.as_secs_f64());
    }
}

/// The series of a worker end with it.
pub(crate) fn forget(of: &Pod, id: &ProbeId) {
    let (kind, name, namespace) = (probe_type(id.kind), pod::name(of), pod::namespace(of));
    for result in RESULTS {
        // Absent where there was no such result.
        let _gone = TOTAL.remove_label_values(&[kind, result, &id.container, name, namespace, id.uid.as_str()]);
    }
    let _gone = DURATION.remove_label_values(&[kind, &id.container, name, namespace]);
}
