//! The four conditions that a node writes (node-and-resources 8.4). Others are left alone.

use model::Timestamp;
use model::core::{NodeCondition, NodeStatus};
use model::event::{EventObject, EventType, NodeEvent};
use model::node::Pressure;
use model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};

use crate::facts::{Facts, Plan};

struct Words {
    /// Reason and message while there is pressure; the event without `Kubelet`.
    under: (&'static str, &'static str, &'static str),
    /// The same without pressure.
    free: (&'static str, &'static str, &'static str),
}

const fn words(pressure: Pressure) -> Words {
    match pressure {
        Pressure::Memory => Words {
            under: (
                "KubeletHasInsufficientMemory",
                "kubelet has insufficient memory available",
                "NodeHasInsufficientMemory",
            ),
            free: ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
        },
        Pressure::Disk => Words {
            under: ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
            free: ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
        },
        Pressure::Pid => Words {
            under: ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
            free: ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
        },
    }
}

/// Pressure conditions first, `Ready` last of those that are new.
pub(crate) fn set(plan: &Plan, status: &mut NodeStatus, facts: &Facts, now: Timestamp, events: &mut Vec<NodeEvent>) {
    let missing = missing_capacity(plan, status);
    let all = status.conditions.get_or_insert_default();
    for kind in Pressure::ALL {
        let under = facts.pressures.contains(&kind);
        let words = words(kind);
        let (reason, message, told) = if under { words.under } else { words.free };
        let condition = find(all, kind.as_str());
        condition.last_heartbeat_time = now.to_api();
        let wanted = if under { "True" } else { "False" };
        if condition.status != wanted {
            condition.status = wanted.to_owned();
            condition.reason = Some(reason.to_owned());
            condition.message = Some(message.to_owned());
            condition.last_transition_time = now.to_api();
            events.push(event(plan, told));
        }
    }
    ready(plan, all, facts, missing, now, events);
}

fn find<'a>(all: &'a mut Vec<NodeCondition>, kind: &str) -> &'a mut NodeCondition {
    let at = all.iter().position(|c| c.type_ == kind).unwrap_or_else(|| {
        all.push(NodeCondition { type_: kind.to_owned(), status: "Unknown".to_owned(), ..NodeCondition::default() });
        all.len() - 1
    });
    &mut all[at]
}

fn ready(
    plan: &Plan,
    all: &mut Vec<NodeCondition>,
    facts: &Facts,
    missing: Option<String>,
    now: Timestamp,
    events: &mut Vec<NodeEvent>,
) {
    let errors: Vec<String> = facts.not_ready.iter().cloned().chain(missing).collect();
    let (status, reason, message) = match aggregate(&errors) {
        None => ("True", "KubeletReady", "kubelet is posting ready status".to_owned()),
        Some(text) => ("False", "KubeletNotReady", text),
    };
    let known = all.iter().any(|c| c.type_ == "Ready");
    let condition = find(all, "Ready");
    if condition.status != status {
        condition.last_transition_time = now.to_api();
        if known {
            events.push(event(plan, if status == "True" { "NodeReady" } else { "NodeNotReady" }));
        }
    }
    condition.status = status.to_owned();
    condition.reason = Some(reason.to_owned());
    condition.message = Some(message);
    condition.last_heartbeat_time = now.to_api();
}

/// One error stands bare, several in brackets, each once; `None`: there are none.
#[must_use]
pub fn aggregate(errors: &[String]) -> Option<String> {
    let mut told: Vec<&str> = Vec::new();
    for e in errors {
        if !told.contains(&e.as_str()) {
            told.push(e);
        }
    }
    match told.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

fn missing_capacity(plan: &Plan, status: &NodeStatus) -> Option<String> {
    let there = |name: &str| status.capacity.as_ref().is_some_and(|c| c.contains_key(name));
    let disk = plan.local_storage.then_some(EPHEMERAL_STORAGE);
    let missing: Vec<&str> = [CPU, MEMORY, "pods"].into_iter().chain(disk).filter(|n| !there(n)).collect();
    (!missing.is_empty()).then(|| format!("missing node capacity for resources: {}", missing.join(", ")))
}

/// An event about the node: `Node X status is now: R`.
#[must_use]
pub fn event(plan: &Plan, reason: &'static str) -> NodeEvent {
    let message = format!("Node {} status is now: {reason}", plan.name);
    NodeEvent { kind: EventType::Normal, reason: reason.into(), message, object: EventObject::Node }
}
