//! Certificates. How long they last is computed at the scrape.

use crate::buckets;
use crate::family::{counter, histogram, int_gauges};

families! { MAIN;
    /// Certificates of pods. Labels: signer_name, state (not_yet_issued, denied, failed, fresh, overdue_for_refresh, expired).
    POD_CERTIFICATES: IntGaugeVec = int_gauges(
        "kubelet_podcertificate_states", "Certificates that volumes of pods stand for.", &["signer_name", "state"]);
    /// Requests for a client certificate that failed.
    CLIENT_RENEW_ERRORS: IntCounter = counter(
        "kubelet_certificate_manager_client_expiration_renew_errors", "Renewals of the client certificate that failed.");
    /// Requests for a serving certificate that failed.
    SERVER_RENEW_ERRORS: IntCounter = counter(
        "kubelet_server_expiration_renew_errors", "Renewals of the serving certificate that failed.");
    /// Seconds that the serving certificate just replaced was in use.
    SERVER_ROTATION: Histogram = histogram(
        "kubelet_certificate_manager_server_rotation_seconds",
        "Time that the serving certificate was in use when it was replaced.", buckets::ROTATION);
}
