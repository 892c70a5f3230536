//! Taints and tolerations.

use model::core::{Pod, Taint, Toleration};

/// Whether the toleration covers the taint. An empty effect or key covers every one; without an operator the values must
/// be equal. The numeric operators of newer API versions cover nothing while their gate is off.
#[must_use]
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let covers = |wanted: Option<&str>, has: &str| wanted.is_none_or(|w| w.is_empty() || w == has);
    if !covers(toleration.effect.as_deref(), &taint.effect) || !covers(toleration.key.as_deref(), &taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default(),
        "Exists" => true,
        _ => false,
    }
}

/// Whether a `NoExecute` taint stands that the pod does not tolerate. Other effects are the scheduler's.
pub(crate) fn untolerated(pod: &Pod, taints: &[Taint]) -> bool {
    let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_deref()).unwrap_or_default();
    let evicting = taints.iter().filter(|t| t.effect == "NoExecute");
    evicting.into_iter().any(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
}
