//! Eviction pressure (node-and-resources 3.8).

use model::core::{Pod, Taint};
use model::node::Pressure;
use model::pod::is_critical;
use model::resources::{QosClass, qos_class};

use crate::rejection::Rejection;
use crate::taints::tolerates;

pub(crate) fn check(pod: &Pod, pressures: &[Pressure]) -> Result<(), Rejection> {
    if pressures.is_empty() || is_critical(pod) {
        return Ok(());
    }
    if pressures == [Pressure::Memory] && (qos_class(pod) != QosClass::BestEffort || tolerates_memory_pressure(pod)) {
        return Ok(());
    }
    let names: Vec<_> = pressures.iter().map(|p| p.as_str()).collect();
    Err(Rejection::new("Evicted", format!("The node had condition: [{}]. ", names.join(" "))))
}

fn tolerates_memory_pressure(pod: &Pod) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_deref()).unwrap_or_default();
    tolerations.iter().any(|t| tolerates(t, &taint))
}
