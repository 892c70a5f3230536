//! Lifecycle hooks.

use crate::family::counter;

families! { MAIN;
    /// Sleep hooks cut short.
    SLEEP_TERMINATED_EARLY: IntCounter = counter(
        "kubelet_sleep_action_terminated_early_total", "Sleep hooks that ended before their time.");
    /// Hooks that went over HTTP after HTTPS got an HTTP answer.
    HTTP_FALLBACKS: IntCounter = counter(
        "kubelet_lifecycle_handler_http_fallbacks_total", "Lifecycle hooks over HTTPS that succeeded over HTTP.");
}
