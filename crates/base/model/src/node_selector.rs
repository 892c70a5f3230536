//! Which nodes a selector of terms takes: that of a pod's affinity, and that of a volume's.

use std::collections::BTreeMap;

use crate::core::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

/// Whether one of the terms takes a node of this name with these labels.
#[must_use]
pub fn selects(selector: &NodeSelector, name: &str, labels: &BTreeMap<String, String>) -> bool {
    selector.node_selector_terms.iter().any(|term| term_selects(term, name, labels))
}

/// All requirements of a term must hold; a term without any selects nothing, nor does one with a broken requirement.
fn term_selects(term: &NodeSelectorTerm, name: &str, node: &BTreeMap<String, String>) -> bool {
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let field = |key: &str| if key == "metadata.name" { name } else { "" };
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|r| label_fits(r, node.get(&r.key).map(String::as_str)))
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
