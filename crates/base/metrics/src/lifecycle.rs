//! Lifecycle hooks.

use crate::family::counter;

families! { MAIN;
    /// HTTPS hooks that were tried again over HTTP.
    HTTP_FALLBACKS: IntCounter = counter(
        "kubelet_lifecycle_handler_http_fallbacks_total", "HTTPS hooks that were tried again over HTTP.");
    /// Sleep hooks cut short.
    SLEEP_TERMINATED_EARLY: IntCounter = counter(
        "kubelet_sleep_action_terminated_early_total", "Sleep hooks that ended before their time.");
}
