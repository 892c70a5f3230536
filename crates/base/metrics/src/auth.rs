//! TokenReview and SubjectAccessReview, asked of the API server.

use crate::buckets;
use crate::family::{counters, histograms};

families! { MAIN;
    /// TokenReviews sent. Label: code (HTTP status, `<error>` when there was none).
    AUTHN_REQUESTS: IntCounterVec = counters(
        "apiserver_delegated_authn_request_total", "TokenReviews asked for, by status code.", &["code"]);
    /// Seconds of a TokenReview. Label: code.
    AUTHN_DURATION: HistogramVec = histograms(
        "apiserver_delegated_authn_request_duration_seconds", "Time that a TokenReview took, by status code.",
        &["code"], buckets::DELEGATED);
    /// SubjectAccessReviews sent. Label: code.
    AUTHZ_REQUESTS: IntCounterVec = counters(
        "apiserver_delegated_authz_request_total", "SubjectAccessReviews asked for, by status code.", &["code"]);
    /// Seconds of a SubjectAccessReview. Label: code.
    AUTHZ_DURATION: HistogramVec = histograms(
        "apiserver_delegated_authz_request_duration_seconds", "Time that a SubjectAccessReview took, by status code.",
        &["code"], buckets::DELEGATED);
}
