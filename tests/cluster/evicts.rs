//! Pods that have to go, as the users of a cluster see it, beside what they see of a Go kubelet.
//!
//! The recording in `tests/golden/eviction` is a kubelet's. With a kubelet at hand (`KUBELET=PATH`) an ignored test makes it anew.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use testbed::{BosunOptions, ClusterNode, NodeOptions, wait_until};

use crate::beside::Agent;
use crate::node::{SOON, condition, create, kubectl, pod, shell, start_with, wait, wait_phase};

const RECORDING: &str = "tests/golden/eviction/kubelet-1.36.2.json";
/// Ends at once on SIGTERM, and not well: a kubelet says `Succeeded` of a pod that it evicts and that ends well.
const LASTS: &str = "trap 'exit 3' TERM; while :; do sleep 0.1; done";
/// A pass every ten seconds, volumes measured every two to four, and a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn node(agent: Agent, config: Value) -> ClusterNode {
    let bosun = BosunOptions { config, ..BosunOptions::default() };
    let mut node = start_with(NodeOptions { bosun, ..NodeOptions::default() });
    agent.serve(&mut node);
    node
}

/// What a pod says of its end, and its events about it.
fn told(node: &ClusterNode, name: &str) -> Value {
    let pod = wait(node, name, "to have failed", |pod| (pod["status"]["phase"] == "Failed").then(|| pod.clone()));
    let status = &pod["status"];
    let disrupted = condition(&pod, "DisruptionTarget");
    json!({
        "reason": status["reason"], "message": plain(&status["message"]),
        "disruption": disrupted.is_object().then(|| json!([disrupted["status"], disrupted["reason"], plain(&disrupted["message"])])),
        "events": events(node, name, "Evicted"),
    })
}

/// Message and annotations of events of one reason about an object, once there are any.
fn events(node: &ClusterNode, name: &str, reason: &str) -> Value {
    let selector = format!("involvedObject.name={name},reason={reason}");
    let list = || {
        let text = kubectl(node, &["get", "events", "-A", "--field-selector", &selector, "-o", "json"]);
        let list: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        if items.is_empty() { Err(format!("no event {reason}")) } else { Ok(items) }
    };
    let items = wait_until(&format!("{reason} of {name}"), SOON, list).unwrap_or_else(|e| panic!("{e}"));
    let of = |event: &Value| {
        let annotations: Map<String, Value> = event["metadata"]["annotations"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), plain(v)))
            .collect();
        json!({ "type": event["type"], "message": plain(&event["message"]), "annotations": annotations })
    };
    let mut all: Vec<Value> = items.iter().map(of).collect();
    all.dedup();
    json!(all)
}

/// A text without what was measured: amounts of memory and disk in use.
fn plain(text: &Value) -> Value {
    let Some(text) = text.as_str() else { return text.clone() };
    let measured = ["Threshold quantity: ", "available: ", "was using "];
    let mut out = text.to_owned();
    for phrase in measured {
        if let Some(at) = out.find(phrase).map(|at| at + phrase.len()) {
            let end = out[at..].find([',', '.', ' ']).map_or(out.len(), |n| at + n);
            out.replace_range(at..end, "N");
        }
    }
    let is_amount = out.starts_with(|c: char| c.is_ascii_digit()) && out.chars().all(|c| c.is_ascii_alphanumeric());
    json!(if is_amount { "N" } else { &out })
}

/// Pods that use more than they allow themselves.
fn over_limits(agent: Agent) -> Value {
    let node = node(agent, json!({"volumeStatsAggPeriod": "2s", "evictionHard": {"memory.available": "1Mi"}}));
    let limit = |mi: u64| json!({"resources": {"limits": {"ephemeral-storage": format!("{mi}Mi")}}});
    let writes = |to: &str, mi: u64, extra: Value| {
        let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
        let mut container = shell("main", &format!("head -c {} /dev/zero > {to}; {LASTS}", mi << 20), extra);
        container["volumeMounts"] = mount["volumeMounts"].clone();
        container
    };
    let with = |name: &str, containers: Value, volume: Value| {
        create(&node, &pod(name, json!({"containers": containers, "volumes": [{"name": "v", "emptyDir": volume}]})));
    };
    with("of-volume", json!([writes("/v/f", 3, json!({}))]), json!({"sizeLimit": "1Mi"}));
    with("of-memory-volume", json!([writes("/v/f", 3, json!({}))]), json!({"medium": "Memory", "sizeLimit": "8Mi"}));
    with("of-pod", json!([writes("/v/f", 9, limit(4))]), json!({}));
    let other = shell("other", LASTS, limit(50));
    with("of-container", json!([writes("/f", 9, limit(4)), other]), json!({}));
    with("within", json!([writes("/v/f", 1, limit(50))]), json!({"sizeLimit": "5Mi"}));
    let mut seen = Map::new();
    for name in ["of-volume", "of-pod", "of-container"] {
        seen.insert(name.to_owned(), told(&node, name));
    }
    for name in ["within", "of-memory-volume"] {
        wait_phase(&node, name, "Running");
    }
    Value::Object(seen)
}

/// A node that is short of memory from the beginning.
fn short_of_memory(agent: Agent) -> Value {
    let config = json!({"evictionHard": {"memory.available": "99%"}, "volumeStatsAggPeriod": "2s"});
    let node = node(agent, config);
    let pressed = |object: &Value| {
        let pressure = condition(object, "MemoryPressure");
        (pressure["status"] == "True").then(|| json!([pressure["reason"], pressure["message"]]))
    };
    let pressure = node.wait_node("to be short of memory", PATIENCE, pressed).unwrap_or_else(|e| panic!("{e}"));
    let requests = json!({"resources": {"requests": {"memory": "1Mi"}}});
    create(
        &node,
        &pod(
            "burstable",
            json!({"containers": [shell("main", &format!("head -c 20000000 /dev/zero | tail -c 20000000 | {{ sleep 1; {LASTS}; }}"), requests)]}),
        ),
    );
    let evicted = told(&node, "burstable");
    create(&node, &pod("best-effort", json!({"containers": [shell("main", LASTS, json!({}))]})));
    let refused = told(&node, "best-effort");
    let critical =
        json!({"priorityClassName": "system-node-critical", "containers": [shell("main", LASTS, json!({}))]});
    let mut critical = pod("critical", critical);
    critical["metadata"]["namespace"] = json!("default");
    create(&node, &critical);
    wait_phase(&node, "critical", "Running");
    if agent == Agent::Bosun {
        operators_see(&node);
    }
    json!({
        "pressure": pressure, "evicted": evicted, "refused": refused,
        "node": events(&node, "bed", "EvictionThresholdMet")[0]["message"],
    })
}

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RECORDING)
}

fn recorded(case: &str) -> Value {
    let text = std::fs::read_to_string(recording()).expect("the recording");
    serde_json::from_str::<Value>(&text).expect("JSON")[case].clone()
}

#[test]
fn pods_over_limits_of_their_own_go_with_the_words_of_a_kubelet() {
    let seen = over_limits(Agent::Bosun);
    assert_eq!(seen, recorded("limits"), "{seen:#}");
}

/// `bosun get pressure` beside what the API server has, on a node that is short.
fn operators_see(node: &ClusterNode) {
    let shown: Value = serde_json::from_str(&command(node, &["get", "pressure", "-o", "json"])).expect("JSON");
    let signals = shown["signals"].as_array().expect("signals");
    let memory = signals.iter().find(|s| s["signal"] == "memory.available").unwrap_or_else(|| panic!("{shown}"));
    let threshold = &memory["thresholds"][0];
    let since = threshold["crossedSinceNs"].as_i64();
    assert!(memory["available"].as_i64() < memory["capacity"].as_i64() && since.is_some(), "{shown}");
    assert_eq!(
        (&threshold["below"], &threshold["hard"], &threshold["due"]),
        (&json!("99%"), &json!(true), &json!(true))
    );
    assert_eq!(shown["conditions"], json!([{"condition": "MemoryPressure"}]), "{shown}");
    let victim = &shown["lastVictim"];
    assert_eq!(
        (&victim["pod"], &victim["signal"]),
        (&json!("default/burstable"), &json!("memory.available")),
        "{shown}"
    );
    assert!(victim["atNs"].as_i64() > since, "{shown}");
    let table = command(node, &["get", "pressure"]);
    let column = |line: &str, cell: &str| line.find(cell).unwrap_or_else(|| panic!("{cell}: {table}"));
    let line = |word: &str| table.lines().find(|l| l.starts_with(word)).unwrap_or_else(|| panic!("{word}: {table}"));
    assert_eq!(column(line("SIGNAL"), "THRESHOLD"), column(line("memory.available"), "< 99%"), "{table}");
    assert!(line("memory.available").contains("pods go"), "{table}");
    assert!(line("Last victim:").contains("default/burstable"), "{table}");
}

fn command(node: &ClusterNode, words: &[&str]) -> String {
    node.bosun.cli(words).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_node_short_of_memory_evicts_and_refuses_with_the_words_of_a_kubelet() {
    let seen = short_of_memory(Agent::Bosun);
    assert_eq!(seen, recorded("memory"), "{seen:#}");
}

#[cfg(feature = "kubelet")]
#[test]
fn record_the_evictions_of_a_kubelet() {
    let _tunables = crate::beside::Tunables::keep();
    let seen = json!({"limits": over_limits(Agent::Kubelet), "memory": short_of_memory(Agent::Kubelet)});
    let path = recording();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, serde_json::to_string_pretty(&seen).expect("JSON") + "\n").expect("the recording");
}
