//! Pods that had to go.

use crate::buckets;
use crate::family::{counters, histograms};

families! { MAIN;
    /// Pods evicted. Label: eviction_signal (`memory.available` and its like, `emptydirfs.limit`, `ephemeralpodfs.limit`,
    /// `ephemeralcontainerfs.limit`).
    EVICTIONS: IntCounterVec = counters(
        "kubelet_evictions", "Pods evicted, by what ran short.", &["eviction_signal"]);
    /// Seconds between an observation and the eviction that it led to. Label: eviction_signal.
    STATS_AGE: HistogramVec = histograms(
        "kubelet_eviction_stats_age_seconds", "Age of the observation that an eviction rests on.",
        &["eviction_signal"], buckets::DEFAULT);
}
