//! Pods of the rounds in a cluster: how they are made, watched and waited for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{PAUSE_IMAGE, Seen, Watch, wait_until};

use super::super::pods::idle;

pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(super) fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "IfNotPresent"}],
        },
    })
}

pub(super) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// First moment at which each pod looks as `good` says.
pub(super) fn moments(seen: &[Seen], good: impl Fn(&Seen) -> bool) -> BTreeMap<String, Instant> {
    let mut out = BTreeMap::new();
    for event in seen.iter().filter(|e| good(e)) {
        let name = event.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        out.entry(name).or_insert(event.at);
    }
    out
}

pub(super) fn wait_for(
    watch: &Watch,
    what: &str,
    prefix: &str,
    count: usize,
    good: fn(&Seen) -> bool,
) -> anyhow::Result<()> {
    wait_until(what, Duration::from_secs(180), || {
        let there = watch.look(|seen| moments(seen, |e| is_named(e, prefix) && good(e)).len());
        if there >= count {
            return Ok(());
        }
        // The moment is noted when the word comes; looking often would only cost what the starts need.
        idle(Duration::from_millis(if count > 30 { 250 } else { 20 }));
        Err(format!("{there} of {count}"))
    })?;
    Ok(())
}

fn is_named(e: &Seen, prefix: &str) -> bool {
    e.object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix))
}

pub(super) fn ready(e: &Seen) -> bool {
    e.kind != "DELETED" && is_ready(&e.object)
}

pub(super) fn gone(e: &Seen) -> bool {
    e.kind == "DELETED"
}
