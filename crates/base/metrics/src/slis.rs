//! Health checks as service level indicators; a registry of their own (`/metrics/slis`).

use crate::family::{counters, int_gauges};

families! { SLIS;
    /// Last result of a check: 1 good, 0 bad. Labels: name, type (`healthz`).
    HEALTHCHECK: IntGaugeVec = int_gauges(
        "kubernetes_healthcheck", "Last result of each health check: 1 when it was good.", &["name", "type"]);
    /// Results of checks. Labels: name, type, status (success, error).
    HEALTHCHECKS: IntCounterVec = counters(
        "kubernetes_healthchecks_total", "Results of each health check.", &["name", "type", "status"]);
}

/// Adds the result of a `healthz` check.
pub fn checked(name: &str, good: bool) {
    HEALTHCHECK.with_label_values(&[name, "healthz"]).set(i64::from(good));
    let status = if good { "success" } else { "error" };
    HEALTHCHECKS.with_label_values(&[name, "healthz", status]).inc();
}

/// Forgets all results (`DELETE /metrics/slis`).
pub fn reset() {
    HEALTHCHECK.reset();
    HEALTHCHECKS.reset();
}
