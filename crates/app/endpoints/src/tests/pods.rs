use std::collections::BTreeMap;

use contract::config_sources::Source;
use model::core::{Pod, PodStatus};
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};
use serde_json::{Value, json};

use super::fixture::{Node, pod};

const PODS: &str = include_str!("golden/pods.json");
const RUNNING: &str = include_str!("golden/runningpods.json");
const STATIC: &str = include_str!("golden/static-pod.json");

fn by_uid(list: &Value) -> BTreeMap<String, Value> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|pod| (pod["metadata"]["uid"].as_str().unwrap().to_owned(), pod.clone())).collect()
}

#[tokio::test]
async fn no_pods_are_null() {
    let answer = Node::new().get("/pods").await;
    assert_eq!(answer.text(), "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":null}\n");
    assert_eq!((answer.code, answer.header("content-type")), (200, "application/json"));
}

#[tokio::test]
async fn pods_of_the_cluster_are_written_as_a_kubelet_writes_them() {
    let node = Node::new();
    let recorded: Value = serde_json::from_str(PODS).unwrap();
    for (uid, value) in by_uid(&recorded) {
        node.add(&uid, pod(value), Source::Api);
    }
    for path in ["/pods", "/pods/"] {
        let ours = node.get(path).await.json();
        assert_eq!(by_uid(&ours), by_uid(&recorded));
        assert_eq!(ours["kind"], "PodList");
    }
}

/// The recorded pod without what Go writes for nothing.
fn bare(mut value: Value) -> Value {
    let lists = [
        ("/spec/containers", "resources"),
        ("/status/containerStatuses", "lastState"),
        ("/status/conditions", "lastProbeTime"),
    ];
    for (list, field) in lists {
        for entry in value.pointer_mut(list).and_then(Value::as_array_mut).unwrap() {
            assert!(entry.as_object_mut().unwrap().remove(field).is_some(), "{list} {field}");
        }
    }
    value
}

#[tokio::test]
async fn a_static_pod_has_the_status_that_the_node_keeps_and_the_empty_fields_of_go() {
    let recorded: Value = serde_json::from_str(STATIC).unwrap();
    let node = Node::new();
    let mut manifest = pod(bare(recorded.clone()));
    let status = manifest.status.take().unwrap();
    let uid = PodUid::from(recorded["metadata"]["uid"].as_str().unwrap());
    node.add(uid.as_str(), manifest, Source::File);
    node.wiring.put(uid, fakes::status_entry(&Pod::default(), status));
    assert_eq!(node.get("/pods").await.json()["items"][0], recorded);
}

fn named(name: &str) -> Pod {
    pod(json!({"metadata": {"name": name, "namespace": "ns"}, "spec": {"containers": [{"name": "c"}]}}))
}

#[tokio::test]
async fn a_pod_of_the_cluster_has_the_status_that_was_last_seen_there() {
    let node = Node::new();
    node.add("u", named("p"), Source::Api);
    let own = PodStatus { phase: Some("Running".to_owned()), ..PodStatus::default() };
    node.wiring.put(PodUid::from("u"), fakes::status_entry(&named("p"), own));
    let item = node.get("/pods").await.json()["items"][0].clone();
    assert_eq!(item["status"], json!({}));
    assert_eq!(item["spec"]["containers"], json!([{"name": "c", "resources": {}}]));
    assert!(item.get("kind").is_none() && item.get("apiVersion").is_none());
}

fn container(name: &str, state: ContainerState) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp(1),
        started_at: Timestamp(1),
        image: "sha256:fa09".to_owned(),
        ..ContainerObservation::new(format!("id-{name}"), name, "s", state)
    }
}

fn observe(node: &Node, name: &str, ready: bool, containers: Vec<ContainerObservation>) {
    let uid = PodUid::from(format!("uid-{name}"));
    let mut observed = PodObservation::empty(uid, "gold", name);
    observed.containers = containers;
    observed.sandboxes =
        vec![SandboxObservation { created_at: Timestamp(1), ..SandboxObservation::new("s", 0, ready) }];
    fakes::observe(&node.wiring, observed);
}

/// Keys by path, and the kind of each value.
fn shape(value: &Value, at: &str, out: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    out.insert(at.to_owned(), kind);
    value.as_array().into_iter().flatten().for_each(|v| shape(v, &format!("{at}[]"), out));
    value.as_object().into_iter().flatten().for_each(|(k, v)| shape(v, &format!("{at}.{k}"), out));
}

#[tokio::test]
async fn running_pods_have_the_shape_that_a_kubelet_gives_them() {
    let node = Node::new();
    observe(
        &node,
        "plain",
        true,
        vec![container("app", ContainerState::Running), container("old", ContainerState::Exited)],
    );
    let answer = node.get("/runningpods/").await;
    let (mut ours, mut recorded) = (BTreeMap::new(), BTreeMap::new());
    let golden: Value = serde_json::from_str(RUNNING).unwrap();
    let shown = answer.json();
    shape(&shown, "", &mut ours);
    shape(&golden, "", &mut recorded);
    assert_eq!(ours, recorded);
    let item = &shown["items"][0];
    assert_eq!(item["metadata"], json!({"name": "plain", "namespace": "gold", "uid": "uid-plain"}));
    assert_eq!(item["spec"]["containers"], json!([{"name": "app", "image": "sha256:fa09", "resources": {}}]));
}

#[tokio::test]
async fn what_does_not_run_is_not_among_the_running_pods() {
    let node = Node::new();
    observe(&node, "done", false, vec![container("app", ContainerState::Exited)]);
    assert_eq!(node.get("/runningpods/").await.json()["items"], Value::Null);
    observe(&node, "waits", true, vec![container("app", ContainerState::Created)]);
    let items = node.get("/runningpods/").await.json()["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!(items[0]["spec"], json!({"containers": null}));
    let moved = node.get("/runningpods").await;
    assert_eq!((moved.code, moved.header("location")), (301, "/runningpods/"));
}
