//! How the node learns of changes in the runtime: relists and event streams. The kubelet's component of that name is gone
//! here; what it measured is not.

use crate::buckets;
use crate::family::{counter, gauge, histogram};

families! { MAIN;
    /// Seconds of a relist.
    RELIST_DURATION: Histogram = histogram(
        "kubelet_pleg_relist_duration_seconds", "Time that a relist of the runtime took.", buckets::DEFAULT);
    /// Seconds between starts of relists.
    RELIST_INTERVAL: Histogram = histogram(
        "kubelet_pleg_relist_interval_seconds", "Time between the starts of two relists.", buckets::DEFAULT);
    /// Seconds of reading one pod.
    POD_RELIST_DURATION: Histogram = histogram(
        "kubelet_pleg_pod_relist_duration_seconds", "Time that reading one pod from the runtime took.", buckets::DEFAULT);
    /// Unix time of the last relist's start.
    LAST_SEEN: Gauge = gauge("kubelet_pleg_last_seen_seconds", "Start of the last relist, in unix seconds.");
    /// Events lost.
    DISCARDED: IntCounter = counter("kubelet_pleg_discard_events", "Events that were lost for want of room.");
    /// Event streams that broke.
    STREAM_ERRORS: IntCounter = counter(
        "kubelet_evented_pleg_connection_error_count", "Event streams that broke or could not be opened.");
    /// Event streams opened.
    STREAM_SUCCESSES: IntCounter = counter(
        "kubelet_evented_pleg_connection_success_count", "Event streams that were opened.");
    /// Seconds between an event and its handling.
    STREAM_LATENCY: Histogram = histogram(
        "kubelet_evented_pleg_connection_latency_seconds", "Age of an event of the runtime when it is handled.",
        buckets::DEFAULT);
}
