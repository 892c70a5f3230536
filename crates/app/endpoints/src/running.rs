//! `/runningpods/` (interfaces 3.2): what the runtime runs, wanted or not.

use axum::extract::State;
use axum::response::Response;
use model::runtime::{ContainerState, PodObservation};
use serde_json::{Value, json};

use crate::deps::Shared;
use crate::pods;
use crate::respond;

pub(crate) async fn running_pods(State(deps): Shared) -> Response {
    let rows = deps.lookup.runtime.snapshot();
    respond::json(pods::list(rows.into_values().filter_map(|row| pod(&row.pod))))
}

/// A pod with a ready sandbox or a running container; of its containers the running ones.
fn pod(observed: &PodObservation) -> Option<Value> {
    let running: Vec<Value> = observed
        .containers
        .iter()
        .filter(|c| c.state == ContainerState::Running)
        .map(|c| json!({ "name": c.name, "image": c.image, "resources": {} }))
        .collect();
    if running.is_empty() && !observed.sandboxes.iter().any(|s| s.ready) {
        return None;
    }
    let containers = if running.is_empty() { Value::Null } else { Value::from(running) };
    Some(json!({
        "metadata": { "name": observed.name, "namespace": observed.namespace, "uid": observed.uid.as_str() },
        "spec": { "containers": containers },
        "status": {},
    }))
}
