//! Credential provider plugins.

use crate::buckets;
use crate::family::{counters, histograms, int_gauges};

families! { MAIN;
    /// Seconds of a plugin's run. Label: plugin_name.
    PLUGIN_DURATION: HistogramVec = histograms(
        "kubelet_credential_provider_plugin_duration", "Time that a credential provider took, in seconds.",
        &["plugin_name"], buckets::DEFAULT);
    /// Runs that failed. Label: plugin_name.
    PLUGIN_ERRORS: IntCounterVec = counters(
        "kubelet_credential_provider_plugin_errors_total", "Runs of a credential provider that failed.", &["plugin_name"]);
    /// 1. Label: hash (`sha256:<hex>`) of the configuration in force.
    CONFIG_INFO: IntGaugeVec = int_gauges(
        "kubelet_credential_provider_config_info", "Hash of the credential provider configuration in force.", &["hash"]);
}
