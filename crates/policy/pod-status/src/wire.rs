//! The strategic merge patch that turns the status in the API into the one that should be there (pod-lifecycle 9.8).

use model::core::{PodCondition, PodStatus};
use model::strategic_merge;
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Lists of a pod status that the API merges by a key; every other list is replaced whole.
const MERGED: [(&str, &str); 4] =
    [("conditions", "type"), ("podIPs", "ip"), ("hostIPs", "ip"), ("resourceClaimStatuses", "name")];

/// States of a container, and resources that are in force: empty ones say something too.
const TELLING: [&str; 4] = ["waiting", "running", "terminated", "resources"];
/// Required texts: sent even when they are empty.
const REQUIRED: [&str; 3] = ["name", "image", "imageID"];

/// The patch of the `status` field, `None` when both say the same. An order of list elements alone is no difference.
///
/// What only the API's copy has is taken away with `null` or `$patch: delete`; what neither has is not touched, so that
/// fields and conditions which this node does not know survive.
#[must_use]
pub fn status_patch(api: &PodStatus, wanted: &PodStatus) -> Option<Value> {
    let (old, new) = apart(api, wanted);
    let (old, new) = (fields(&old), fields(&new));
    let mut patch = strategic_merge::fields(&old, &new);
    let list = |of: &Map<String, Value>, field: &str| of.get(field).and_then(Value::as_array).cloned();
    for (field, key) in MERGED {
        if let Some(wanted) = list(&new, field) {
            patch.remove(field);
            let is = list(&old, field).unwrap_or_default();
            strategic_merge::insert_elements(&mut patch, field, key, &is, &wanted);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Both without what they have in common: mostly one condition and one container of all that a status says. A condition that is
/// the same in both keeps its type alone, which the order of the list is told by.
fn apart(api: &PodStatus, wanted: &PodStatus) -> (PodStatus, PodStatus) {
    let (mut old, mut new) = (PodStatus::default(), PodStatus::default());
    macro_rules! take {
        ($($field:ident)*) => {
            // No field is forgotten.
            let PodStatus { conditions, $($field: _),* } = wanted;
            $(if api.$field != wanted.$field {
                (old.$field, new.$field) = (api.$field.clone(), wanted.$field.clone());
            })*
            if api.conditions != *conditions {
                (old.conditions, new.conditions) = (unlike(&api.conditions, conditions), unlike(conditions, &api.conditions));
            }
        };
    }
    take!(allocated_resources container_statuses ephemeral_container_statuses extended_resource_claim_status host_ip host_ips
        init_container_statuses message node_allocatable_resource_claim_statuses nominated_node_name observed_generation phase
        pod_ip pod_ips qos_class reason resize resource_claim_statuses resources start_time);
    (old, new)
}

fn unlike(these: &Option<Vec<PodCondition>>, those: &Option<Vec<PodCondition>>) -> Option<Vec<PodCondition>> {
    let others = those.as_deref().unwrap_or_default();
    let plain = |c: &PodCondition| match others.contains(c) {
        true => PodCondition { type_: c.type_.clone(), ..PodCondition::default() },
        false => c.clone(),
    };
    these.as_ref().map(|list| list.iter().map(plain).collect())
}

/// Fields of a status in one form: the API answers with empty values where this node leaves a field out.
fn fields(status: &PodStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(mut map)) => {
            prune(&mut map);
            map
        }
        // A typed status always is an object.
        _ => Map::new(),
    }
}

fn prune(map: &mut Map<String, Value>) {
    map.retain(|key, value| {
        match value {
            Value::Object(inner) => prune(inner),
            Value::Array(list) => list.iter_mut().filter_map(Value::as_object_mut).for_each(prune),
            _ => {}
        }
        match value {
            Value::Null => false,
            Value::Object(inner) => !inner.is_empty() || TELLING.contains(&key.as_str()),
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty() || REQUIRED.contains(&key.as_str()),
            _ => true,
        }
    });
}
