//! Node selector and required node affinity.

use model::core::{NodeSelectorRequirement, NodeSelectorTerm, Pod};

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
    required.is_none_or(|selector| selector.node_selector_terms.iter().any(|term| term_selects(term, node)))
}

/// All requirements of a term must hold; a term without any selects nothing, nor does one with a broken requirement.
fn term_selects(term: &NodeSelectorTerm, node: &NodeFacts) -> bool {
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let field = |key: &str| if key == "metadata.name" { node.name.as_str() } else { "" };
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|r| label_fits(r, node.labels.get(&r.key).map(String::as_str)))
        && fields.iter().all(|r| field_fits(r, field(&r.key)))
}

fn label_fits(wanted: &NodeSelectorRequirement, label: Option<&str>) -> bool {
    let values = wanted.values.as_deref().unwrap_or_default();
    let listed = |l: &str| values.iter().any(|v| v == l);
    match wanted.operator.as_str() {
        "In" => label.is_some_and(listed),
        "NotIn" => !values.is_empty() && !label.is_some_and(listed),
        "Exists" => values.is_empty() && label.is_some(),
        "DoesNotExist" => values.is_empty() && label.is_none(),
        "Gt" => numbers(values, label).is_some_and(|(bound, label)| label > bound),
        "Lt" => numbers(values, label).is_some_and(|(bound, label)| label < bound),
        _ => false,
    }
}

/// The one bound and the label as whole numbers.
fn numbers(values: &[String], label: Option<&str>) -> Option<(i64, i64)> {
    let [bound] = values else { return None };
    Some((bound.parse().ok()?, label?.parse().ok()?))
}

/// Fields know `In` and `NotIn` with exactly one value.
fn field_fits(wanted: &NodeSelectorRequirement, field: &str) -> bool {
    let [value] = wanted.values.as_deref().unwrap_or_default() else { return false };
    match wanted.operator.as_str() {
        "In" => value == field,
        "NotIn" => value != field,
        _ => false,
    }
}
