//! Volumes made of objects: what is in them, with which rights, and how they follow their objects.

use serde_json::{Value, json};

use crate::node::{
    PODS, create, delete, make, pod, shell, start, wait, wait_gone, wait_output, wait_reasons, wait_running,
};

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[test]
fn files_have_the_contents_and_rights_that_were_asked_for() {
    let node = start();
    make(&node, "configmaps", &config_map("settings", json!({"a": "one", "b": "two", "c": "three"})));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
        "stringData": {"password": "s3cr3t"}});
    make(&node, "secrets", &secret);
    let spec = json!({
        "securityContext": {"fsGroup": 4321},
        "volumes": [
            {"name": "all", "configMap": {"name": "settings", "defaultMode": 0o640,
                "items": [{"key": "a", "path": "deep/er/a"}, {"key": "b", "path": "b", "mode": 0o400}]}},
            {"name": "keys", "secret": {"secretName": "keys"}},
            {"name": "none", "configMap": {"name": "absent", "optional": true}},
            {"name": "mixed", "projected": {"sources": [
                {"secret": {"name": "keys", "items": [{"key": "password", "path": "secret/pw"}]}},
                {"configMap": {"name": "settings", "items": [{"key": "c", "path": "c"}]}},
                {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
        ],
        "containers": [shell("main", "\
            cat /all/deep/er/a /all/b /keys/password /mixed/secret/pw /mixed/c /mixed/labels /sub/b | tr '\\n' ' '; echo; \
            stat -L -c '%n %a %g' /all/deep/er/a /all/b /keys/password; ls /none | wc -l; \
            readlink /all/b; readlink /all/..data | cut -c1-4; touch /all/x 2>&1; mount | grep -c 'on /keys type tmpfs'; \
            echo end; exec sleep 1000", json!({"volumeMounts": [
                {"name": "all", "mountPath": "/all"}, {"name": "keys", "mountPath": "/keys"},
                {"name": "none", "mountPath": "/none"}, {"name": "mixed", "mountPath": "/mixed"},
                {"name": "all", "mountPath": "/sub/b", "subPath": "b"}]}))],
    });
    create(&node, &pod("reads", spec));
    let pod = wait_running(&node, "reads");
    let text = wait_output(&node, &pod, "its files", |t| t.contains("end"));
    let lines: Vec<&str> = text.lines().collect();
    for words in ["one", "two", "s3cr3t", "three", "app=\"reads\""] {
        assert!(lines[0].contains(words), "{words}:\n{text}");
    }
    // The group may read what the owner may; a group for files adds its right.
    for line in ["/all/deep/er/a 640 4321", "/all/b 440 4321", "/keys/password 644 4321"] {
        assert!(lines.contains(&line), "{line}:\n{text}");
    }
    assert!(lines.contains(&"0") && lines.contains(&"..data/b") && lines.contains(&"..20"), "{text}");
    assert!(text.contains("Read-only file system"), "{text}");
    assert!(lines.contains(&"1"), "secrets live in memory:\n{text}");
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let dir = node.bed.dir().join("node/pods").join(uid);
    assert!(dir.join("volumes/kubernetes.io~configmap/all/b").exists(), "{}", dir.display());
    delete(&node, "reads");
    wait_gone(&node, "reads");
    testbed::wait_until("its folder to go", crate::node::SOON, || {
        if dir.exists() { Err(dir.display().to_string()) } else { Ok(()) }
    })
    .expect("removed with its mounts");
}

#[test]
fn a_running_pod_sees_its_objects_change() {
    let node = start();
    make(&node, "configmaps", &config_map("live", json!({"k": "first", "old": "x"})));
    let fixed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fixed"}, "immutable": true,
        "data": {"k": "fixed"}});
    make(&node, "configmaps", &fixed);
    let script = "while :; do now=\"$(cat /live/k) $(ls /live | tr '\\n' ' ')$(cat /live/sub 2>/dev/null) $(cat /sub/k) $(cat /labels/l)\"; \
                  [ \"$now\" = \"$last\" ] || echo \"$now\"; last=\"$now\"; sleep 0.2; done";
    let mounts = json!({"volumeMounts": [{"name": "live", "mountPath": "/live"},
        {"name": "live", "mountPath": "/sub/k", "subPath": "k"}, {"name": "labels", "mountPath": "/labels"},
        {"name": "fixed", "mountPath": "/fixed"}]});
    let spec = json!({
        "volumes": [
            {"name": "live", "configMap": {"name": "live"}}, {"name": "fixed", "configMap": {"name": "fixed"}},
            {"name": "labels", "downwardAPI": {"items": [
                {"path": "l", "fieldRef": {"fieldPath": "metadata.labels['app']"}}]}}],
        "containers": [shell("main", script, mounts)],
    });
    create(&node, &pod("looks", spec));
    let pod = wait_running(&node, "looks");
    wait_output(&node, &pod, "the first contents", |t| t.contains("first k old  first looks"));
    let change = json!({"data": {"k": "second", "new": "y", "old": null}});
    node.cluster.admin().patch("/api/v1/namespaces/default/configmaps/live", &change).expect("patched");
    // A mounted file (subPath) keeps what it had.
    wait_output(&node, &pod, "the second contents", |t| t.contains("second k new  first looks"));
    let label = json!({"metadata": {"labels": {"app": "renamed"}}});
    node.cluster.admin().patch(&format!("{PODS}/looks"), &label).expect("patched");
    let text = wait_output(&node, &pod, "the new label", |t| t.contains("second k new  first renamed"));
    assert!(text.lines().count() <= 3, "no half-written state was ever seen:\n{text}");
    let asked = node.cluster.requests_by(&node.user()).expect("audit");
    let watches =
        |name: &str| asked.iter().filter(|r| r.verb == "watch" && r.uri.contains(&format!("name%3D{name}&"))).count();
    assert!(watches("fixed") <= 1, "what cannot change is not watched again and again");
}

#[test]
fn a_pod_waits_for_the_volume_whose_object_is_missing() {
    let node = start();
    let mounts = json!({"volumeMounts": [{"name": "late", "mountPath": "/late"}]});
    let spec = json!({"volumes": [{"name": "late", "configMap": {"name": "late"}}],
        "containers": [shell("main", "echo $(cat /late/k); exec sleep 1000", mounts)]});
    create(&node, &pod("waits", spec));
    wait_reasons(&node, "waits", &["FailedMount"]);
    wait(&node, "waits", "to be told as creating", |p| {
        (crate::node::state(p, "waiting")["reason"] == "ContainerCreating").then_some(())
    });
    make(&node, "configmaps", &config_map("late", json!({"k": "arrived"})));
    let pod = node.wait_pod("waits", "to run", 3 * crate::node::SOON, |p| {
        (crate::node::condition(p, "Ready")["status"] == "True").then(|| p.clone())
    });
    let pod = pod.unwrap_or_else(|e| panic!("{e}"));
    wait_output(&node, &pod, "the value", |t| t.contains("arrived"));
}
