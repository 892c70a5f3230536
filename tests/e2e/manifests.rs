//! A hundred broken manifests: each is told with its file, and none disturbs the others.

use serde_json::{Value, json};
use testbed::wait_until;

use crate::node::{Node, SOON, identity, pod, shell};

fn good(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "x"}, "annotations": {"note": "y"}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "hostNetwork": false,
            "volumes": [{"name": "work", "emptyDir": {}}],
            "containers": [{
                "name": "main", "image": testbed::BUSYBOX_IMAGES[0], "imagePullPolicy": "Never",
                "command": ["true"], "args": [], "env": [{"name": "A", "value": "b"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m"}},
                "volumeMounts": [{"name": "work", "mountPath": "/work"}],
            }],
        },
    })
}

/// Paths of all values in a document.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| pointers(v, &format!("{at}/{k}"), found)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, v)| pointers(v, &format!("{at}/{n}"), found)),
        _ => {}
    }
}

/// Wrong in type at each place of the document, wrong in value at some, and broken as text.
fn mutations() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut all = Vec::new();
    pointers(&good("x"), "", &mut all);
    let wrong_types = [json!("text"), json!(["list"]), json!({"a": {"b": 1}}), json!(-7), json!(true)];
    for pointer in all.iter().filter(|p| !p.is_empty()) {
        for (n, wrong) in wrong_types.iter().enumerate() {
            let mut document = good(&format!("m{}", texts.len()));
            if let Some(place) = document.pointer_mut(pointer) {
                *place = wrong.clone();
                texts.push((format!("{pointer} as {n}"), document.to_string()));
            }
        }
    }
    let values = [
        ("/metadata/name", json!("Not_A_Name")),
        ("/spec/containers/0/name", json!("UPPER")),
        ("/spec/containers/0/ports/0/containerPort", json!(99999)),
        ("/spec/containers/0/ports/0/protocol", json!("XTP")),
        ("/spec/containers/0/resources/limits/memory", json!("lots")),
        ("/spec/containers/0/volumeMounts/0/name", json!("nowhere")),
        ("/spec/containers/0/image", json!("")),
        ("/spec/restartPolicy", json!("Sometimes")),
        ("/spec/containers", json!([])),
        ("/kind", json!("Podd")),
        ("/apiVersion", json!("v9")),
    ];
    for (pointer, wrong) in values {
        let mut document = good(&format!("v{}", texts.len()));
        *document.pointer_mut(pointer).expect("place exists") = wrong;
        texts.push((format!("value at {pointer}"), document.to_string()));
    }
    let text = pod("cut", &format!("  containers:\n{}", shell("main", "true", "")));
    for end in (0..text.len()).step_by(text.len() / 12) {
        texts.push((format!("cut at {end}"), text[..end].to_owned()));
    }
    texts.push(("tabs".into(), text.replace("  ", "\t")));
    texts.push(("unclosed".into(), "{\"apiVersion\": \"v1\", ".into()));
    texts.push(("control bytes".into(), "\u{1}\u{2}\u{0}binary".into()));
    texts
}

#[test]
fn each_broken_manifest_is_told_with_its_file_and_disturbs_nobody() {
    let node = Node::start();
    let witness = format!("  containers:\n{}", shell("main", "exec sleep 1000", ""));
    node.put("witness", &witness);
    let before = identity(&node.wait_running("witness"));
    let pid = node.bosun.pid();
    // Every third of the many: enough kinds, and a test that ends.
    let chosen: Vec<_> = mutations().into_iter().enumerate().filter(|(n, _)| n % 3 == 0 || *n >= 150).collect();
    assert!(chosen.len() >= 100, "{}", chosen.len());
    for (n, (_, text)) in &chosen {
        node.bosun.put(&format!("broken-{n}.yaml"), text).expect("written");
    }
    // Each file is either accepted as a pod or refused with a reason, and nothing is silently skipped.
    let told = wait_until("each file to be told of", SOON, || {
        let told = node.bosun.get("manifests").map_err(|e| e.to_string())?;
        let knows = |n: &usize| {
            let mut paths = ["accepted", "refused"].iter().filter_map(|k| told[k].as_object()).flat_map(|m| m.keys());
            paths.any(|p| p.ends_with(&format!("/broken-{n}.yaml")))
        };
        let silent: Vec<_> = chosen.iter().filter(|(n, _)| !knows(n)).map(|(n, (what, _))| (n, what)).collect();
        if silent.is_empty() {
            Ok(told)
        } else {
            Err(format!("{} files: {silent:?}\n{}", silent.len(), node.bosun.log()))
        }
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let refused = told["refused"].as_object().expect("a map");
    assert!(refused.len() >= 100, "only {} are refused", refused.len());
    for (n, (what, _)) in &chosen {
        let Some((_, why)) = refused.iter().find(|(path, _)| path.ends_with(&format!("/broken-{n}.yaml"))) else {
            continue; // accepted: the value fits there
        };
        let errors: Vec<&str> = why["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert!(!errors.is_empty(), "{what}: refused without a reason");
        // The mutated key is named. (`/spec/containers/0 as 2` was mutated at `containers`.)
        if let Some(pointer) = what.split(" as ").next().filter(|p| p.starts_with('/')) {
            let key = pointer.split('/').rfind(|part| part.parse::<u8>().is_err()).unwrap_or_default();
            assert!(errors.iter().any(|e| e.contains(key)), "{what}: {errors:?}");
        }
    }
    node.put("late", &witness);
    node.wait_running("late");
    assert_eq!(identity(&node.wait_running("witness")), before, "the witness was disturbed");
    assert_eq!(node.bosun.pid(), pid, "same process");
}

#[test]
fn a_changed_manifest_replaces_the_pod() {
    let node = Node::start();
    node.put(
        "web",
        &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", "")),
    );
    let before = node.wait_running("web");
    node.put(
        "web",
        &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 2000", "")),
    );
    node.wait("web", "to be another pod", |p| {
        (p["metadata"]["uid"] != before["metadata"]["uid"] && p["status"]["phase"] == "Running").then_some(())
    });
}
