//! Volumes. How many there are is computed at the scrape.

use crate::buckets;
use crate::family::{histograms, int_gauges};

families! { MAIN;
    /// Seconds of an operation. Labels in this order: migrated (`false`), operation_name (volume_mount, volume_unmount,
    /// ...), status (success, fail-unknown), volume_plugin (`kubernetes.io/empty-dir`, ...).
    STORAGE_OPERATION: HistogramVec = histograms(
        "storage_operation_duration_seconds", "Time that an operation on a volume took.",
        &["migrated", "operation_name", "status", "volume_plugin"], buckets::STORAGE);
    /// Seconds until a volume that a pod wants is mounted. Labels: operation_name (`overall_volume_mount`), plugin_name.
    VOLUME_OPERATION: HistogramVec = histograms(
        "volume_operation_total_seconds", "Time from the start of an operation on a volume to its end.",
        &["operation_name", "plugin_name"], buckets::STORAGE);
    /// Seconds of a call to a CSI driver. Labels: driver_name, grpc_status_code (`OK`, ..., `unknown-non-grpc`), method_name
    /// (`/csi.v1.Node/NodeStageVolume`, ...), migrated (`false`).
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
}
