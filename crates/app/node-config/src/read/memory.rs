//! Memory that is kept for pods.

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
