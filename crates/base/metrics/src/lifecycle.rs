//! Lifecycle hooks.

use crate::family::counter;

families! { MAIN;
    /// Sleep hooks cut short.
    SLEEP_TERMINATED_EARLY: IntCounter = counter(
        "kubelet_sleep_action_terminated_early_total", "Sleep hooks that ended before their time.");
}
