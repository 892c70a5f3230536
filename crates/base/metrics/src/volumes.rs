//! Volumes. How many there are is computed at the scrape.

use crate::Stopwatch;
use crate::buckets;
use crate::family::{counter, histograms, int_gauge, int_gauges};

families! { MAIN;
    /// Seconds of an operation. Labels in this order: migrated (`true`: of an in-tree
    /// kind that is a driver's), operation_name (volume_mount, volume_unmount,
    /// ...), status (success, fail-unknown), volume_plugin (`kubernetes.io/empty-dir`, ...).
    STORAGE_OPERATION: HistogramVec = histograms(
        "storage_operation_duration_seconds", "Time that an operation on a volume took.",
        &["migrated", "operation_name", "status", "volume_plugin"], buckets::STORAGE);
    /// Seconds until a volume that a pod wants is mounted. Labels: operation_name (`overall_volume_mount`), plugin_name.
    VOLUME_OPERATION: HistogramVec = histograms(
        "volume_operation_total_seconds", "Time from the start of an operation on a volume to its end.",
        &["operation_name", "plugin_name"], buckets::STORAGE);
    /// Seconds of a call to a CSI driver. Labels: driver_name, grpc_status_code (`OK`, ..., `unknown-non-grpc`), method_name
    /// (`/csi.v1.Node/NodeStageVolume`, ...), migrated (`true`, `false`).
    CSI_OPERATION: HistogramVec = histograms(
        "csi_operations_seconds", "Time that a call to a CSI driver took.",
        &["driver_name", "grpc_status_code", "method_name", "migrated"], buckets::STORAGE);
    /// Pods whose containers have several SELinux labels for one volume that is to be mounted with one, each time it is found.
    SELINUX_POD_ERRORS: IntGaugeVec = int_gauges(
        "volume_manager_selinux_pod_context_mismatch_errors_total",
        "Times that a pod waited as its containers have several SELinux labels for one volume.", &["access_mode"]);
    /// The same of volumes that are not mounted with a label yet.
    SELINUX_POD_WARNINGS: IntGaugeVec = int_gauges(
        "volume_manager_selinux_pod_context_mismatch_warnings_total",
        "Times that containers of a pod have several SELinux labels for one volume, which will matter one day.",
        &["access_mode"]);
    /// Pods that want a volume with another label than a pod that has it, each time it is found.
    SELINUX_VOLUME_ERRORS: IntGaugeVec = int_gauges(
        "volume_manager_selinux_volume_context_mismatch_errors_total",
        "Times that a pod waited as another pod has its volume with another SELinux label.",
        &["volume_plugin", "access_mode"]);
    /// The same of volumes that are not mounted with a label yet.
    SELINUX_VOLUME_WARNINGS: IntGaugeVec = int_gauges(
        "volume_manager_selinux_volume_context_mismatch_warnings_total",
        "Times that pods have one volume with several SELinux labels, which will matter one day.",
        &["volume_plugin", "access_mode"]);
    /// Volumes that pods came to want with a label.
    SELINUX_ADMITTED: IntGaugeVec = int_gauges(
        "volume_manager_selinux_volumes_admitted_total",
        "Times that a volume was to be mounted with an SELinux label.", &["volume_plugin", "access_mode"]);
    /// Volumes of pods that the first look after the start found on the disk.
    RECONSTRUCTED: IntCounter = counter(
        "reconstruct_volume_operations_total", "Volumes of pods that were found on the disk at the start.");
    /// Those of them that do not say which they are.
    RECONSTRUCTED_ERRORS: IntCounter = counter(
        "reconstruct_volume_operations_errors_total",
        "Volumes of pods that were found on the disk at the start and do not say which they are.");
    /// Tries to take a volume from a pod that does not say which it is.
    FORCE_CLEANED: IntCounter = counter(
        "force_cleaned_failed_volume_operations_total",
        "Tries to take a volume from a pod that does not say which it is.");
    /// Those of them that failed.
    FORCE_CLEANED_ERRORS: IntCounter = counter(
        "force_cleaned_failed_volume_operation_errors_total",
        "Failed tries to take a volume from a pod that does not say which it is.");
    /// Folders of pods that nobody knows any more, taken away in the last period.
    ORPHANS_CLEANED: IntGauge = int_gauge(
        "kubelet_orphan_pod_cleaned_volumes",
        "Folders of pods that nobody knows any more, taken away with their volumes in the last period.");
    /// Those of them that are still there.
    ORPHANS_CLEANED_ERRORS: IntGauge = int_gauge(
        "kubelet_orphan_pod_cleaned_volumes_errors",
        "Folders of pods that nobody knows any more which could not be taken away in the last period.");
    /// Seconds of a look at what a volume takes. Label: metric_source (`du`, `fsquota`, `statfs`, `block`, or the name of a driver).
    COLLECTION: HistogramVec = histograms(
        "kubelet_volume_metric_collection_duration_seconds", "Time that it took to find out what a volume takes.",
        &["metric_source"], buckets::DEFAULT);
}

/// Notes a call to a CSI driver. `code`: of gRPC; `None`: the driver was not reached by it.
pub fn observe_call(driver: &str, method: &str, code: Option<&str>, is_migrated: bool, watch: &Stopwatch) {
    let (code, method) = (code.unwrap_or("unknown-non-grpc"), format!("/csi.v1.Node/{method}"));
    CSI_OPERATION.with_label_values(&[driver, code, &method, bool_label(is_migrated)]).observe(watch.seconds());
}

/// As labels have it.
#[must_use]
pub fn bool_label(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}
