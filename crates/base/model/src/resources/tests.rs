use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
}

fn c(requests: Value, limits: Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
}

fn sidecar(requests: Value) -> Value {
    json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": requests}})
}

fn text(l: &ResourceList) -> Vec<String> {
    l.iter().map(|(k, v)| format!("{k}={v}")).collect()
}

#[test]
fn qos_class_table() {
    let both = json!({"cpu": "1", "memory": "1Gi"});
    for (name, spec, class) in [
        ("nothing", json!({"containers": [c(json!({}), json!({}))]}), QosClass::BestEffort),
        (
            "zero amounts count as nothing",
            json!({"containers": [c(json!({"cpu": "0"}), json!({"memory": "0"}))]}),
            QosClass::BestEffort,
        ),
        (
            "only other resources",
            json!({"containers": [c(json!({"ephemeral-storage": "1Gi"}), json!({}))]}),
            QosClass::BestEffort,
        ),
        ("limits equal requests", json!({"containers": [c(both.clone(), both.clone())]}), QosClass::Guaranteed),
        (
            "same amounts in other notation",
            json!({"containers": [c(json!({"cpu": "1000m", "memory": "1024Mi"}), both.clone())]}),
            QosClass::Guaranteed,
        ),
        (
            "one of two containers has nothing",
            json!({"containers": [c(both.clone(), both.clone()), c(json!({}), json!({}))]}),
            QosClass::Burstable,
        ),
        (
            "requests below limits",
            json!({"containers": [c(json!({"cpu": "1", "memory": "1Mi"}), both.clone())]}),
            QosClass::Burstable,
        ),
        (
            "memory limit missing",
            json!({"containers": [c(json!({"cpu": "1"}), json!({"cpu": "1"}))]}),
            QosClass::Burstable,
        ),
        (
            "init container without limits",
            json!({"initContainers": [c(json!({}), json!({}))], "containers": [c(both.clone(), both.clone())]}),
            QosClass::Burstable,
        ),
        (
            "init container alone requests",
            json!({"initContainers": [c(json!({"cpu": "1m"}), json!({}))], "containers": [c(json!({}), json!({}))]}),
            QosClass::Burstable,
        ),
        (
            "limits not defaulted into requests",
            json!({"containers": [c(json!({}), both.clone())]}),
            QosClass::Burstable,
        ),
        (
            "pod level decides alone, equal",
            json!({"resources": {"requests": both, "limits": both}, "containers": [c(json!({"cpu": "1m"}), json!({}))]}),
            QosClass::Guaranteed,
        ),
        (
            "pod level decides alone, requests only",
            json!({"resources": {"requests": both}, "containers": [c(both.clone(), both.clone())]}),
            QosClass::Burstable,
        ),
    ] {
        assert_eq!(qos_class(&pod(spec)), class, "{name}");
    }
}

#[test]
fn the_class_in_the_status_wins() {
    let p: Pod =
        serde_json::from_value(json!({"spec": {"containers": []}, "status": {"qosClass": "Guaranteed"}})).unwrap();
    assert_eq!(qos_class(&p), QosClass::Guaranteed);
    assert_eq!(computed_qos_class(&p), QosClass::BestEffort);
}

#[test]
fn init_containers_and_sidecars_peak_as_they_start_in_order() {
    // node-and-resources 10.8 (edge 8): A 500m, S 100m (after A), B 1000m, apps 300m -> 1100m.
    let p = pod(json!({
        "initContainers": [c(json!({"cpu": "500m"}), json!({})), sidecar(json!({"cpu": "100m"})), c(json!({"cpu": "1"}), json!({}))],
        "containers": [c(json!({"cpu": "100m"}), json!({})), c(json!({"cpu": "200m"}), json!({}))],
    }));
    assert_eq!(text(&pod_requests(&p)), ["cpu=1100m"]);
}

#[test]
fn request_aggregation_table() {
    for (name, spec, requests) in [
        (
            "apps add up",
            json!({"containers": [c(json!({"cpu": "1", "memory": "1Gi"}), json!({})), c(json!({"cpu": "500m"}), json!({}))]}),
            vec!["cpu=1500m", "memory=1Gi"],
        ),
        (
            "sidecar counts with the apps",
            json!({"initContainers": [sidecar(json!({"cpu": "1"}))], "containers": [c(json!({"cpu": "1"}), json!({}))]}),
            vec!["cpu=2"],
        ),
        (
            "a small init container changes nothing",
            json!({"initContainers": [c(json!({"cpu": "1"}), json!({}))], "containers": [c(json!({"cpu": "2"}), json!({}))]}),
            vec!["cpu=2"],
        ),
        (
            "each resource peaks on its own",
            json!({"initContainers": [c(json!({"cpu": "3", "memory": "1Mi"}), json!({}))], "containers": [c(json!({"cpu": "2", "memory": "2Mi"}), json!({}))]}),
            vec!["cpu=3", "memory=2Mi"],
        ),
        (
            "overhead comes on top",
            json!({"overhead": {"cpu": "100m", "memory": "8Mi"}, "containers": [c(json!({"cpu": "2"}), json!({}))]}),
            vec!["cpu=2100m", "memory=8Mi"],
        ),
        (
            "pod level overrides what it names",
            json!({"resources": {"requests": {"cpu": "200m"}}, "containers": [c(json!({"cpu": "50m", "memory": "1Mi"}), json!({}))]}),
            vec!["cpu=200m", "memory=1Mi"],
        ),
        (
            "pod level names only what it may",
            json!({"resources": {"requests": {"cpu": "200m", "example.com/x": "9"}}, "containers": [c(json!({"example.com/x": "1"}), json!({}))]}),
            vec!["cpu=200m", "example.com/x=1"],
        ),
        ("a text that is no quantity is absent", json!({"containers": [c(json!({"cpu": "many"}), json!({}))]}), vec![]),
    ] {
        assert_eq!(text(&pod_requests(&pod(spec))), requests, "{name}");
    }
}

#[test]
fn overhead_raises_only_limits_that_exist() {
    let p =
        pod(json!({"overhead": {"cpu": "100m", "memory": "8Mi"}, "containers": [c(json!({}), json!({"cpu": "1"}))]}));
    assert_eq!(text(&pod_limits(&p)), ["cpu=1100m"]);
}

#[test]
fn every_container_must_limit_unless_the_pod_does() {
    let one = json!({"containers": [c(json!({}), json!({"cpu": "1"})), c(json!({}), json!({}))]});
    assert!(!every_container_limits(&pod(one.clone()), CPU));
    let mut level = one;
    level["resources"] = json!({"limits": {"cpu": "2"}});
    assert!(every_container_limits(&pod(level.clone()), CPU));
    assert!(!every_container_limits(&pod(level), MEMORY));
}
