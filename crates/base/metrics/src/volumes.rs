//! Volumes. How many there are is computed at the scrape.

use crate::buckets;
use crate::family::{counter, gauge, histograms};

families! { MAIN;
    /// Seconds of an operation. Labels in this order: migrated (`false`), operation_name (volume_mount, volume_unmount,
    /// ...), status (success, fail-unknown), volume_plugin (`kubernetes.io/empty-dir`, ...).
    STORAGE_OPERATION: HistogramVec = histograms(
        "storage_operation_duration_seconds", "Time that an operation on a volume took.",
        &["migrated", "operation_name", "status", "volume_plugin"], buckets::STORAGE);
    /// Seconds of an operation from start to end. Labels: operation_name, plugin_name.
    VOLUME_OPERATION: HistogramVec = histograms(
        "volume_operation_total_seconds", "Time from the start of an operation on a volume to its end.",
        &["operation_name", "plugin_name"], buckets::STORAGE);
    /// Seconds of measuring a volume. Label: metric_source.
    METRIC_COLLECTION: HistogramVec = histograms(
        "kubelet_volume_metric_collection_duration_seconds", "Time that measuring a volume took.", &["metric_source"],
        buckets::DEFAULT);
    /// Volumes of pods that are gone, cleaned up in the last round.
    ORPHANS_CLEANED: Gauge = gauge(
        "kubelet_orphan_pod_cleaned_volumes", "Folders of volumes of pods that are gone, seen in the last round.");
    /// Those of them that could not be cleaned up.
    ORPHAN_ERRORS: Gauge = gauge(
        "kubelet_orphan_pod_cleaned_volumes_errors",
        "Folders of volumes of pods that are gone, which the last round could not remove.");
    /// Volumes taken up again after a restart.
    RECONSTRUCTIONS: IntCounter = counter(
        "reconstruct_volume_operations_total", "Volumes found on disk at start, taken up again.");
    /// Those of them that could not be.
    RECONSTRUCTION_ERRORS: IntCounter = counter(
        "reconstruct_volume_operations_errors_total", "Volumes found on disk at start that could not be taken up again.");
    /// Volumes that could not be taken up again and were taken down instead.
    FORCE_CLEANED: IntCounter = counter(
        "force_cleaned_failed_volume_operations_total", "Volumes taken down since they could not be taken up again.");
    /// Those of them that could not be taken down.
    FORCE_CLEAN_ERRORS: IntCounter = counter(
        "force_cleaned_failed_volume_operation_errors_total", "Volumes that could neither be taken up again nor down.");
}
