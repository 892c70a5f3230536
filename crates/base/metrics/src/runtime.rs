//! Calls of the container runtime.

use crate::buckets;
use crate::family::{counters, histograms, int_gauges};

families! { MAIN;
    /// Calls. Label: operation_type (CRI call in snake case, `run_podsandbox`, `list_podsandbox`, ...).
    OPERATIONS: IntCounterVec = counters(
        "kubelet_runtime_operations_total", "Calls of the container runtime.", &["operation_type"]);
    /// Calls that failed. Label: operation_type.
    ERRORS: IntCounterVec = counters(
        "kubelet_runtime_operations_errors_total", "Calls of the container runtime that failed.", &["operation_type"]);
    /// Seconds of a call. Label: operation_type.
    DURATION: HistogramVec = histograms(
        "kubelet_runtime_operations_duration_seconds", "Time that a call of the container runtime took.",
        &["operation_type"], &buckets::runtime());
    /// Seconds of starting a sandbox. Label: runtime_handler.
    RUN_PODSANDBOX_DURATION: HistogramVec = histograms(
        "kubelet_run_podsandbox_duration_seconds", "Time that starting a sandbox took.", &["runtime_handler"],
        buckets::DEFAULT);
    /// Sandboxes that did not start. Label: runtime_handler.
    RUN_PODSANDBOX_ERRORS: IntCounterVec = counters(
        "kubelet_run_podsandbox_errors_total", "Sandboxes that the runtime could not start.", &["runtime_handler"]);
    /// 1 when the runtime lacks a call that the node will need. Label: version, the Kubernetes release that will.
    LOSING_SUPPORT: IntGaugeVec = int_gauges(
        "kubelet_cri_losing_support", "Whether the runtime lacks what a coming release needs.", &["version"]);
}
