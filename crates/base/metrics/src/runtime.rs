//! Calls of the container runtime.

use crate::buckets;
use crate::family::{counters, histograms};

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
}
