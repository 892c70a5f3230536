//! Credential provider plugins.

use crate::buckets;
use crate::family::{counters, histograms};

families! { MAIN;
    /// Seconds of a plugin's run. Label: plugin_name.
    PLUGIN_DURATION: HistogramVec = histograms(
        "kubelet_credential_provider_plugin_duration", "Time that a credential provider took, in seconds.",
        &["plugin_name"], buckets::DEFAULT);
    /// Runs that failed. Label: plugin_name.
    PLUGIN_ERRORS: IntCounterVec = counters(
        "kubelet_credential_provider_plugin_errors_total", "Runs of a credential provider that failed.", &["plugin_name"]);
}
