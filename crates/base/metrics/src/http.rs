//! Requests that the node serves.

use crate::buckets;
use crate::family::{counters, histograms, int_gauges};

/// Labels of a request: `method` and `path` (first segment, or `metrics/<x>`) are `other` when unknown, `server_type` is
/// `readonly` or `readwrite`, `long_running` is `true` or `false`.
const REQUEST: &[&str] = &["method", "path", "server_type", "long_running"];

families! { MAIN;
    /// Requests taken. Labels in this order: method, path, server_type, long_running.
    REQUESTS: IntCounterVec = counters("kubelet_http_requests_total", "Requests served, of all servers of the node.", REQUEST);
    /// Seconds until the answer was complete; labels as [`REQUESTS`].
    DURATION: HistogramVec = histograms(
        "kubelet_http_requests_duration_seconds", "Time that serving a request took.", REQUEST, buckets::DEFAULT);
    /// Requests under way; labels as [`REQUESTS`].
    INFLIGHT: IntGaugeVec = int_gauges("kubelet_http_inflight_requests", "Requests being served now.", REQUEST);
    /// WebSocket streams terminated here. Label: subresource (exec, attach, portforward).
    WEBSOCKET_STREAMS: IntCounterVec = counters(
        "kubelet_websocket_streaming_requests_total", "Streaming requests that came over WebSocket.", &["subresource"]);
}
