//! Node selector and required node affinity.

use model::core::Pod;
use model::node_selector;

use crate::facts::NodeFacts;

/// Whether `spec.nodeSelector` and the required node affinity both select the node.
pub(crate) fn selects(pod: &Pod, node: &NodeFacts) -> bool {
    let Some(spec) = &pod.spec else { return true };
    if spec.node_selector.iter().flatten().any(|(k, v)| node.labels.get(k) != Some(v)) {
        return false;
    }
    let required = spec
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref())
        .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_none_or(|selector| node_selector::selects(selector, &node.name, &node.labels))
}
