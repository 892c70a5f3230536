//! Pods and their containers. How many there are is computed at the scrape.

use crate::buckets;
use crate::family::{counter, counters, gauge, histogram, histograms};

families! { MAIN;
    /// Pods of the runtime that nobody wants, found and ended.
    ORPHANED_RUNTIME_PODS: IntCounter = counter(
        "kubelet_orphaned_runtime_pods_total", "Pods of the runtime that no source wants, found and ended.");
    /// Milliseconds that carrying out a resize took. Label: success.
    RESIZE_DURATION: HistogramVec = histograms(
        "kubelet_pod_resize_duration_milliseconds", "Duration in milliseconds to actuate a pod resize.", &["success"],
        buckets::RESIZE);
    /// Changes that were asked for of resources of containers. Labels: resource, requirement (requests, limits), operation.
    REQUESTED_RESIZES: IntCounterVec = counters(
        "kubelet_container_requested_resizes_total", "Requested resizes of containers, each resource by itself.",
        &["resource", "requirement", "operation"]);
    /// Resizes that cannot be had. Label: reason_detail.
    INFEASIBLE_RESIZES: IntCounterVec = counters(
        "kubelet_pod_infeasible_resizes_total", "Resizes that cannot be had on this node.", &["reason_detail"]);
    /// Resizes that were granted after a wait. Label: retry_trigger.
    DEFERRED_ACCEPTED_RESIZES: IntCounterVec = counters(
        "kubelet_pod_deferred_accepted_resizes_total", "Resizes that were granted after they had been deferred.",
        &["retry_trigger"]);
    /// Pods made anew under the UID of a terminated one. Label: static (`true` or empty).
    RESTARTED: IntCounterVec = counters(
        "kubelet_restarted_pods_total", "Pods that came again with the UID of one that was ending.", &["static"]);
    /// Containers of a pod when it first comes.
    CONTAINERS_PER_POD: Histogram = histogram(
        "kubelet_containers_per_pod_count", "Containers of each pod.", buckets::CONTAINERS);
    /// Seconds of a worker's pass. Label: operation_type (create, update, sync).
    WORKER_DURATION: HistogramVec = histograms(
        "kubelet_pod_worker_duration_seconds", "Time that one pass of a pod's worker took.", &["operation_type"],
        buckets::DEFAULT);
    /// Seconds from first sight of a pod to the start of its worker.
    WORKER_START: Histogram = histogram(
        "kubelet_pod_worker_start_duration_seconds", "From first sight of a pod to its worker's start.", buckets::DEFAULT);
    /// Seconds from first sight to the pass that sees it run.
    START: Histogram = histogram(
        "kubelet_pod_start_duration_seconds", "From first sight of a pod to its containers running.", buckets::POD_START);
    /// As [`START`], from creation, without pulls and init containers.
    START_SLI: Histogram = histogram(
        "kubelet_pod_start_sli_duration_seconds",
        "From creation of a pod to its running containers being told, without pulls and init containers.",
        buckets::POD_START);
    /// As [`START_SLI`], with pulls and init containers.
    START_TOTAL: Histogram = histogram(
        "kubelet_pod_start_total_duration_seconds",
        "From creation of a pod to its running containers being told, with pulls and init containers.",
        buckets::POD_START);
    /// [`START_SLI`] of the first pod with a network of its own; once in the life of the process.
    FIRST_NETWORK_POD_START_SLI: Gauge = gauge(
        "kubelet_first_network_pod_start_sli_duration_seconds",
        "Start of the first pod that has a network of its own, in seconds.");
    /// Seconds from a change of status to its acceptance by the API server.
    STATUS_SYNC: Histogram = histogram(
        "kubelet_pod_status_sync_duration_seconds", "From a change of a pod's status to its being written.",
        buckets::STATUS_SYNC);
    /// Pods not admitted. Label: reason, see [`rejection_reason`].
    ADMISSION_REJECTIONS: IntCounterVec = counters(
        "kubelet_admission_rejections_total", "Pods that the node did not admit.", &["reason"]);
    /// Sandboxes asked for.
    STARTED: IntCounter = counter("kubelet_started_pods_total", "Sandboxes asked for.");
    /// Sandboxes that did not start.
    START_ERRORS: IntCounter = counter("kubelet_started_pods_errors_total", "Sandboxes that could not be started.");
    /// Sandboxes asked for with users of their own.
    STARTED_USER_NAMESPACED: IntCounter = counter(
        "kubelet_started_user_namespaced_pods_total", "Sandboxes with users of their own asked for.");
    /// Sandboxes with users of their own that did not start.
    START_USER_NAMESPACED_ERRORS: IntCounter = counter(
        "kubelet_started_user_namespaced_pods_errors_total", "Sandboxes with users of their own that could not be started.");
    /// Containers asked for. Label: container_type (container, init_container, ephemeral_container).
    CONTAINERS_STARTED: IntCounterVec = counters(
        "kubelet_started_containers_total", "Containers asked for.", &["container_type"]);
    /// Containers that did not start. Labels: container_type, code (reason of the waiting state).
    CONTAINER_START_ERRORS: IntCounterVec = counters(
        "kubelet_started_containers_errors_total", "Containers that could not be started.", &["container_type", "code"]);
    /// Containers that ended. Labels: container_type, exit_code, reason.
    CONTAINERS_TERMINATED: IntCounterVec = counters(
        "kubelet_terminated_containers_total", "Containers that ended.", &["container_type", "exit_code", "reason"]);
    /// Pods ended to make room for a critical one. Label: preemption_signal.
    PREEMPTIONS: IntCounterVec = counters(
        "kubelet_preemptions", "Pods ended to make room for a critical one.", &["preemption_signal"]);
}

/// Label `reason` of [`ADMISSION_REJECTIONS`]: a closed set, so that no extended resource makes a series.
#[must_use]
pub fn rejection_reason(reason: &str) -> &str {
    const KNOWN: [&str; 21] = [
        "AppArmor",
        "Evicted",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "NodeUnschedulable",
        "OutOfcpu",
        "OutOfephemeral-storage",
        "OutOfmemory",
        "OutOfpods",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SysctlForbidden",
        "Taint",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "VolumeAttachmentLimitExceeded",
    ];
    if KNOWN.contains(&reason) { reason } else { "Other" }
}
