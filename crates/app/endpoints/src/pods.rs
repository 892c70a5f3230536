//! `/pods` (interfaces 3.2): all known pods as their sources have them; static pods with the status that StatusManager has.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use contract::config_sources::Source;
use contract::lookup::{FoundPod, PodLookup};
use futures::stream;
use model::core::Pod;
use model::json;
use serde_json::{Value, json};

use crate::deps::Shared;
use crate::respond;

/// Written pod by pod, as the client reads: a full node never stands in memory twice.
pub(crate) async fn pods(State(deps): Shared) -> Response {
    let lookup = deps.lookup.clone();
    respond::json(list(lookup.all().into_iter().map(move |found| pod(&lookup, &found))))
}

/// A `PodList` around items that are made one by one.
pub(crate) fn list(items: impl Iterator<Item = Value> + Send + 'static) -> Body {
    const HEAD: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":"#;
    let mut items = items.peekable();
    if items.peek().is_none() {
        return Body::from(format!("{HEAD}null}}\n"));
    }
    let mut first = true;
    let items = items.map(move |item| {
        let open: &str = if std::mem::take(&mut first) { "[" } else { "," };
        Bytes::from(format!("{open}{item}"))
    });
    let all = std::iter::once(Bytes::from_static(HEAD.as_bytes())).chain(items).chain([Bytes::from_static(b"]}\n")]);
    Body::from_stream(stream::iter(all.map(Ok::<_, Infallible>)))
}

fn pod(lookup: &PodLookup, found: &FoundPod) -> Value {
    // As the API has it, also where a resize is not granted.
    let source = found.desired.wanted.as_deref().unwrap_or(found.pod());
    let is_static = found.desired.source != Source::Api;
    let status = is_static.then(|| lookup.status.get(&found.uid)).flatten();
    match status {
        Some(row) => written(&Pod {
            metadata: source.metadata.clone(),
            spec: source.spec.clone(),
            status: Some((*row.status).clone()),
        }),
        None => written(source),
    }
}

/// As Go writes it: what is no pointer there is always there, empty or null.
pub(crate) fn written(pod: &Pod) -> Value {
    // A pod that came from JSON is JSON.
    let mut value = json::value(pod).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        // An item carries neither: the list does.
        fields.remove("apiVersion");
        fields.remove("kind");
        for part in ["metadata", "spec", "status"] {
            fields.entry(part).or_insert_with(|| json!({}));
        }
    }
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("containers").or_insert(Value::Null);
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            each(spec.get_mut(list), "resources", &json!({}));
        }
    }
    if let Some(status) = value.get_mut("status") {
        for at in ["lastProbeTime", "lastTransitionTime"] {
            each(status.get_mut("conditions"), at, &Value::Null);
        }
        for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
            for part in ["state", "lastState"] {
                each(status.get_mut(list), part, &json!({}));
            }
        }
    }
    value
}

/// Gives each object of a list a field that it lacks.
fn each(list: Option<&mut Value>, field: &str, empty: &Value) {
    for entry in list.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(entry) = entry.as_object_mut() {
            entry.entry(field).or_insert_with(|| empty.clone());
        }
    }
}
