//! Requests to the API server.

use crate::buckets;
use crate::family::{counters, histograms};

families! { MAIN;
    /// Requests made. Labels in this order: code (HTTP status, `<error>` when there was none), host, method.
    REQUESTS: IntCounterVec = counters(
        "rest_client_requests_total", "Requests made of the API server, by status code.", &["code", "host", "method"]);
    /// Seconds until the head of the answer. Labels: host, verb (the HTTP method).
    DURATION: HistogramVec = histograms(
        "rest_client_request_duration_seconds", "Time that a request of the API server took.", &["host", "verb"],
        buckets::REST);
    /// Bytes sent. Labels: host, verb.
    REQUEST_SIZE: HistogramVec = histograms(
        "rest_client_request_size_bytes", "Size of bodies sent to the API server.", &["host", "verb"],
        buckets::REST_BYTES);
    /// Bytes received. Labels: host, verb.
    RESPONSE_SIZE: HistogramVec = histograms(
        "rest_client_response_size_bytes", "Size of bodies received from the API server.", &["host", "verb"],
        buckets::REST_BYTES);
    /// Seconds that a request waited for the limit on requests. Labels: host, verb.
    RATE_LIMITER_DURATION: HistogramVec = histograms(
        "rest_client_rate_limiter_duration_seconds", "Time that requests waited for the limit of their rate.",
        &["host", "verb"], buckets::REST);
    /// Requests sent again. Labels: code, host, verb.
    RETRIES: IntCounterVec = counters(
        "rest_client_request_retries_total", "Requests of the API server that were sent again.", &["code", "host", "verb"]);
}
