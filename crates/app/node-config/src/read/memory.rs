//! Memory that is kept for pods, or for some of them.

use serde_json::Value;

use crate::config::{MemoryQos, NodeConfig};
use crate::error::ConfigError;
use crate::reader::Reader;

/// `memoryThrottlingFactor` of a configuration that does not say it.
const THROTTLING_FACTOR: f64 = 0.9;

/// Rules of the gate MemoryQoS. Without it a factor has no effect, as in a kubelet, and no memory can be kept.
pub(super) fn qos(r: &mut Reader<'_>, c: &mut NodeConfig) {
    const POLICY: &str = "memoryReservationPolicy";
    let factor = r.fraction("memoryThrottlingFactor");
    let tiered_reservation = r.word(POLICY, &["None", "TieredReservation"]).as_deref() == Some("TieredReservation");
    if c.feature_gates.enabled("MemoryQoS") {
        let throttling_factor = factor.unwrap_or(THROTTLING_FACTOR);
        c.limits.memory_qos = Some(MemoryQos { throttling_factor, tiered_reservation });
    } else if tiered_reservation {
        let error = ConfigError::new(POLICY, "needs the feature gate MemoryQoS, which is off by default");
        r.findings.error(error.value(&Value::from("TieredReservation")).allowed("None"));
    }
}

/// Percentages of what a QoS class requests; of memory alone.
pub(super) fn reserved(r: &mut Reader<'_>, c: &mut NodeConfig) {
    const NAME: &str = "qosReserved";
    let fields = r.object(NAME).unwrap_or_default();
    if !fields.is_empty() && !c.feature_gates.enabled("QOSReserved") {
        r.findings.error(ConfigError::new(NAME, "needs the feature gate QOSReserved, which is off by default"));
        return;
    }
    for (resource, value) in &fields {
        let at = format!("{NAME}.{resource}");
        if resource != "memory" {
            r.findings.error(ConfigError::new(at, "cannot be reserved for a QoS class").allowed("memory"));
        } else if let Some(text) = r.findings.text(&at, value) {
            c.limits.qos_reserved_memory = percent(&text);
            if c.limits.qos_reserved_memory.is_none() {
                let error = ConfigError::new(at, "is no percentage").value(value);
                r.findings.error(error.allowed("0% to 100%, in whole percents"));
            }
        }
    }
}

fn percent(text: &str) -> Option<i64> {
    text.strip_suffix('%')?.trim_end_matches('%').parse().ok().filter(|n| (0..=100).contains(n))
}
