//! Probes; a registry of their own (`/metrics/probes`).

use crate::buckets;
use crate::family::{counters, histograms};

families! { PROBES;
    /// Probes made. Labels in this order: probe_type (Liveness, Readiness, Startup), result (successful, failed, unknown),
    /// container, pod, namespace, pod_uid. Whoever makes a series removes it when the probe's worker ends.
    TOTAL: IntCounterVec = counters(
        "prober_probe_total", "Probes made, by what came of them.",
        &["probe_type", "result", "container", "pod", "namespace", "pod_uid"]);
    /// Seconds of a probe that was successful or unknown. Labels: probe_type, container, pod, namespace.
    DURATION: HistogramVec = histograms(
        "prober_probe_duration_seconds", "Time that a probe took.", &["probe_type", "container", "pod", "namespace"],
        buckets::DEFAULT);
}
