//! Volumes. How many there are is computed at the scrape.

use crate::buckets;
use crate::family::histograms;

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
}
