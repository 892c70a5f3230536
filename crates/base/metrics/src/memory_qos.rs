//! Memory that is kept for pods. A kubelet has these families with its gate MemoryQoS only, so [`show`] is called by whoever
//! knows the gates.

use crate::family::int_gauge;

families! { MAIN;
    /// Bytes of `memory.min` of guaranteed pods.
    MIN_BYTES: IntGauge = int_gauge(
        "kubelet_memory_qos_node_memory_min_bytes", "Bytes of guaranteed pods that the kernel never takes away.");
    /// Bytes of `memory.low` of burstable pods.
    LOW_BYTES: IntGauge = int_gauge(
        "kubelet_memory_qos_node_memory_low_bytes", "Bytes of burstable pods that the kernel takes away last.");
}

/// Registers the families: from now on they are told, 0 at first.
pub fn show() {
    declare();
}
