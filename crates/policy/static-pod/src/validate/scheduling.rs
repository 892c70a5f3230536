//! Tolerations and node affinity: what of scheduling a node itself looks at.

use model::core::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration};

use super::faults::Faults;
use super::names::Rule;

const REQUIRED: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate(spec: &PodSpec, faults: &mut Faults) {
    for (i, t) in spec.tolerations.iter().flatten().enumerate() {
        toleration(&format!("spec.tolerations[{i}]"), t, faults);
    }
    let Some(affinity) = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()) else { return };
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        if required.node_selector_terms.is_empty() {
            faults.required(format!("{REQUIRED}.nodeSelectorTerms"), "needs at least one term");
        }
        for (i, t) in required.node_selector_terms.iter().enumerate() {
            term(&format!("{REQUIRED}.nodeSelectorTerms[{i}]"), t, faults);
        }
    }
    for (i, p) in affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten().enumerate() {
        faults.in_range(format!("{PREFERRED}[{i}].weight"), p.weight.into(), 1, 100);
        term(&format!("{PREFERRED}[{i}].preference"), &p.preference, faults);
    }
}

fn toleration(path: &str, t: &Toleration, faults: &mut Faults) {
    let key = t.key.as_deref().unwrap_or_default();
    let operator = t.operator.as_deref().unwrap_or_default();
    if !key.is_empty() {
        faults.name(format!("{path}.key"), key, Rule::Qualified);
    } else if operator != "Exists" {
        faults.invalid(format!("{path}.operator"), operator, "must be Exists when key is empty");
    }
    faults.one_of(format!("{path}.operator"), operator, &["", "Equal", "Exists"]);
    let value = t.value.as_deref().unwrap_or_default();
    if operator == "Exists" && !value.is_empty() {
        faults.invalid(format!("{path}.value"), value, "must be empty when operator is Exists");
    } else if !value.is_empty() {
        faults.name(format!("{path}.value"), value, Rule::LabelValue);
    }
    let effect = t.effect.as_deref().unwrap_or_default();
    faults.one_of(format!("{path}.effect"), effect, &["", "NoSchedule", "PreferNoSchedule", "NoExecute"]);
    if t.toleration_seconds.is_some() && effect != "NoExecute" {
        faults.invalid(format!("{path}.effect"), effect, "must be NoExecute when tolerationSeconds is set");
    }
}

fn term(path: &str, term: &NodeSelectorTerm, faults: &mut Faults) {
    for (i, r) in term.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        faults.name(format!("{path}.key"), &r.key, Rule::Qualified);
        requirement(&path, r, faults);
    }
    for (i, r) in term.match_fields.iter().flatten().enumerate() {
        let path = format!("{path}.matchFields[{i}]");
        faults.one_of(format!("{path}.key"), &r.key, &["metadata.name"]);
        faults.one_of(format!("{path}.operator"), &r.operator, &["In", "NotIn"]);
        if r.values.as_ref().is_none_or(|v| v.len() != 1) {
            faults.required(format!("{path}.values"), "must hold exactly one value");
        }
    }
}

fn requirement(path: &str, r: &NodeSelectorRequirement, faults: &mut Faults) {
    let values = r.values.as_deref().unwrap_or_default();
    faults.one_of(format!("{path}.operator"), &r.operator, &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    match r.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            faults.required(format!("{path}.values"), "must be given when operator is In or NotIn");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            faults.forbidden(format!("{path}.values"), "may not be given when operator is Exists or DoesNotExist");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            faults.required(format!("{path}.values"), "must hold exactly one value when operator is Gt or Lt");
        }
        _ => {}
    }
}
