//! Volumes. How many there are is computed at the scrape.

use crate::buckets;
use crate::family::histograms;

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
}
