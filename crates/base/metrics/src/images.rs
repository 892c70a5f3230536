//! Pulls, records of pulls, garbage.

use crate::buckets;
use crate::family::{counter, counters, histograms, int_gauge};

families! { MAIN;
    /// Seconds of a pull. Label: image_size_in_bytes, see [`size_bucket`].
    PULL_DURATION: HistogramVec = histograms(
        "kubelet_image_pull_duration_seconds", "Time that a pull took, by size of the image.",
        &["image_size_in_bytes"], buckets::IMAGE_PULL);
    /// Images removed. Label: reason (age, space).
    GARBAGE_COLLECTED: IntCounterVec = counters(
        "kubelet_image_garbage_collected_total", "Images removed as garbage.", &["reason"]);
    /// Asks for an image. Labels: pull_policy, present_locally, pull_required (`unknown`, `true`, `false`).
    ENSURE_REQUESTS: IntCounterVec = counters(
        "kubelet_image_manager_ensure_image_requests_total", "Asks that an image be there before its container starts.",
        &["pull_policy", "present_locally", "pull_required"]);
    /// Whether a pod may use an image that is there. Label: result (credentialPolicyAllowed, credentialRecordFound,
    /// mustAuthenticate, error).
    MUST_PULL_CHECKS: IntCounterVec = counters(
        "kubelet_imagemanager_image_mustpull_checks_total", "Decisions on whether a present image must be pulled again.",
        &["result"]);
    /// Records of pulls on disk.
    PULLED_RECORDS: IntGauge = int_gauge("kubelet_imagemanager_ondisk_pulledrecords", "Records of pulls on disk.");
    /// Intents to pull on disk.
    PULL_INTENTS: IntGauge = int_gauge("kubelet_imagemanager_ondisk_pullintents", "Intents to pull on disk.");
    /// Image volumes asked for.
    VOLUMES_REQUESTED: IntCounter = counter("kubelet_image_volume_requested_total", "Image volumes asked for.");
    /// Image volumes mounted.
    VOLUMES_MOUNTED: IntCounter = counter("kubelet_image_volume_mounted_succeed_total", "Image volumes mounted.");
    /// Image volumes not mounted.
    VOLUME_ERRORS: IntCounter = counter(
        "kubelet_image_volume_mounted_errors_total", "Image volumes that could not be mounted.");
}

/// Label `image_size_in_bytes`: a size belongs to a bucket when it is greater than the lower bound. Zero: unknown.
#[must_use]
pub fn size_bucket(bytes: u64) -> &'static str {
    const MB: u64 = 1024 * 1024;
    const GB: u64 = 1024 * MB;
    const BUCKETS: [(u64, &str); 12] = [
        (100 * GB, "GT100GB"),
        (60 * GB, "60GB-100GB"),
        (40 * GB, "40GB-60GB"),
        (30 * GB, "30GB-40GB"),
        (20 * GB, "20GB-30GB"),
        (10 * GB, "10GB-20GB"),
        (5 * GB, "5GB-10GB"),
        (GB, "1GB-5GB"),
        (500 * MB, "500MB-1GB"),
        (100 * MB, "100MB-500MB"),
        (10 * MB, "10MB-100MB"),
        (0, "0-10MB"),
    ];
    BUCKETS.iter().find(|(lower, _)| bytes > *lower).map_or("", |(_, name)| name)
}
