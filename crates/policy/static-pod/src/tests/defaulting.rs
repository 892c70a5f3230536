use std::collections::BTreeSet;

use super::*;
use crate::{collapse, first_of_each};

/// A pod with one container, changed at some paths.
fn minimal(changes: Changes<'_>) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "c", "image": "x:1"}]}});
    for (path, value) in changes {
        put(&mut pod, path, value.clone());
    }
    pod
}

#[test]
fn sets_what_the_api_server_would_have_set() {
    let probe = json!({"httpGet": {"port": 80}});
    let cases: &[(&str, Changes<'_>, &str, Value)] = &[
        ("restart policy", &[], "/spec/restartPolicy", json!("Always")),
        ("empty restart policy", &[("spec.restartPolicy", json!(""))], "/spec/restartPolicy", json!("Always")),
        ("DNS policy", &[], "/spec/dnsPolicy", json!("ClusterFirst")),
        ("scheduler", &[], "/spec/schedulerName", json!("default-scheduler")),
        ("grace", &[], "/spec/terminationGracePeriodSeconds", json!(30)),
        (
            "grace 0 stays",
            &[("spec.terminationGracePeriodSeconds", json!(0))],
            "/spec/terminationGracePeriodSeconds",
            json!(0),
        ),
        ("security context", &[], "/spec/securityContext", json!({})),
        ("service links", &[], "/spec/enableServiceLinks", json!(true)),
        (
            "service links off stay",
            &[("spec.enableServiceLinks", json!(false))],
            "/spec/enableServiceLinks",
            json!(false),
        ),
        ("pull policy of a tag", &[], "/spec/containers/0/imagePullPolicy", json!("IfNotPresent")),
        (
            "pull policy of latest",
            &[("spec.containers.0.image", json!("x:latest"))],
            "/spec/containers/0/imagePullPolicy",
            json!("Always"),
        ),
        (
            "pull policy without tag",
            &[("spec.containers.0.image", json!("host:5000/x"))],
            "/spec/containers/0/imagePullPolicy",
            json!("Always"),
        ),
        (
            "pull policy of a digest",
            &[("spec.containers.0.image", json!("x@sha256:0123"))],
            "/spec/containers/0/imagePullPolicy",
            json!("IfNotPresent"),
        ),
        (
            "pull policy of an id",
            &[("spec.containers.0.image", json!("ab".repeat(32)))],
            "/spec/containers/0/imagePullPolicy",
            json!("IfNotPresent"),
        ),
        ("message path", &[], "/spec/containers/0/terminationMessagePath", json!("/dev/termination-log")),
        ("message policy", &[], "/spec/containers/0/terminationMessagePolicy", json!("File")),
        ("resources", &[], "/spec/containers/0/resources", json!({})),
        (
            "port protocol",
            &[("spec.containers.0.ports", json!([{"containerPort": 1}]))],
            "/spec/containers/0/ports/0/protocol",
            json!("TCP"),
        ),
        (
            "host port",
            &[("spec.hostNetwork", json!(true)), ("spec.containers.0.ports", json!([{"containerPort": 81}]))],
            "/spec/containers/0/ports/0/hostPort",
            json!(81),
        ),
        (
            // Edge 7.
            "requests from limits",
            &[(
                "spec.containers.0.resources",
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}),
            )],
            "/spec/containers/0/resources/requests",
            json!({"cpu": "500m", "memory": "1Gi"}),
        ),
        (
            "amounts rounded up to milli",
            &[("spec.containers.0.resources.requests", json!({"cpu": "1u"}))],
            "/spec/containers/0/resources/requests/cpu",
            json!("1m"),
        ),
        (
            "canonical amounts",
            &[("spec.containers.0.resources.requests", json!({"cpu": 0.5}))],
            "/spec/containers/0/resources/requests/cpu",
            json!("500m"),
        ),
        (
            "fieldRef version",
            &[(
                "spec.containers.0.env",
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            )],
            "/spec/containers/0/env/0/valueFrom/fieldRef/apiVersion",
            json!("v1"),
        ),
        (
            "probe timeout",
            &[("spec.containers.0.livenessProbe", probe.clone())],
            "/spec/containers/0/livenessProbe/timeoutSeconds",
            json!(1),
        ),
        (
            "probe period",
            &[("spec.containers.0.livenessProbe", probe.clone())],
            "/spec/containers/0/livenessProbe/periodSeconds",
            json!(10),
        ),
        (
            "probe success",
            &[("spec.containers.0.livenessProbe", probe.clone())],
            "/spec/containers/0/livenessProbe/successThreshold",
            json!(1),
        ),
        (
            "probe failure",
            &[("spec.containers.0.livenessProbe", probe.clone())],
            "/spec/containers/0/livenessProbe/failureThreshold",
            json!(3),
        ),
        (
            "probe path and scheme",
            &[("spec.containers.0.livenessProbe", probe)],
            "/spec/containers/0/livenessProbe/httpGet",
            json!({"port": 80, "path": "/", "scheme": "HTTP"}),
        ),
        (
            "probe grpc service",
            &[("spec.containers.0.livenessProbe", json!({"grpc": {"port": 80}}))],
            "/spec/containers/0/livenessProbe/grpc/service",
            json!(""),
        ),
        (
            "hook scheme",
            &[("spec.containers.0.lifecycle", json!({"preStop": {"httpGet": {"port": 80}}}))],
            "/spec/containers/0/lifecycle/preStop/httpGet",
            json!({"port": 80, "path": "/", "scheme": "HTTP"}),
        ),
        ("volume without source", &[("spec.volumes", json!([{"name": "v"}]))], "/spec/volumes/0/emptyDir", json!({})),
        (
            "hostPath type",
            &[("spec.volumes", json!([{"name": "v", "hostPath": {"path": "/x"}}]))],
            "/spec/volumes/0/hostPath/type",
            json!(""),
        ),
        (
            "downwardAPI mode",
            &[("spec.volumes", json!([{"name": "v", "downwardAPI": {}}]))],
            "/spec/volumes/0/downwardAPI/defaultMode",
            json!(420),
        ),
        (
            "projected mode",
            &[("spec.volumes", json!([{"name": "v", "projected": {"sources": []}}]))],
            "/spec/volumes/0/projected/defaultMode",
            json!(420),
        ),
        (
            "image volume",
            &[("spec.volumes", json!([{"name": "v", "image": {"reference": "a:latest"}}]))],
            "/spec/volumes/0/image/pullPolicy",
            json!("Always"),
        ),
        (
            "iscsi interface",
            &[("spec.volumes", json!([{"name": "v", "iscsi": {"targetPortal": "h", "iqn": "i", "lun": 0}}]))],
            "/spec/volumes/0/iscsi/iscsiInterface",
            json!("default"),
        ),
        (
            "pod-level requests from containers",
            &[
                ("spec.resources.limits", json!({"cpu": "2"})),
                ("spec.containers.0.resources.requests", json!({"cpu": "1", "memory": "1Mi"})),
            ],
            "/spec/resources/requests",
            json!({"cpu": "1", "memory": "1Mi"}),
        ),
        (
            "pod-level requests from limits",
            &[("spec.resources.limits", json!({"cpu": "2"}))],
            "/spec/resources/requests",
            json!({"cpu": "2"}),
        ),
        ("namespace", &[], "/metadata/namespace", json!("default")),
        ("name", &[], "/metadata/name", json!("web-node-a")),
        ("node", &[("spec.nodeName", json!("other"))], "/spec/nodeName", json!("node-a")),
        ("phase", &[], "/status/phase", json!("Pending")),
        ("toleration", &[], "/spec/tolerations", json!([{"operator": "Exists", "effect": "NoExecute"}])),
        (
            "toleration once",
            &[("spec.tolerations", json!([{"operator": "Exists", "effect": "NoExecute"}]))],
            "/spec/tolerations",
            json!([{"operator": "Exists", "effect": "NoExecute"}]),
        ),
        (
            "fixed uid",
            &[("metadata.uid", json!("my-uid"))],
            "/metadata/annotations/kubernetes.io~1config.hash",
            json!("my-uid"),
        ),
    ];
    for (name, changes, pointer, expected) in cases {
        let manifest = read_json(&minimal(changes)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let pod = serde_json::to_value(&manifest.pod).unwrap();
        assert_eq!(pod.pointer(pointer), Some(expected), "{name}");
    }
}

#[test]
fn a_pod_from_a_url_gets_no_toleration() {
    let origin = Origin { node_name: "node-a", source: Source::Url("http://x/") };
    let manifest = read_manifest(minimal(&[]).to_string().as_bytes(), &origin).unwrap();
    assert_eq!(manifest.pod.spec.unwrap().tolerations, None);
}

#[test]
fn the_suffix_of_the_name_is_the_node_name_in_lower_case() {
    let origin = Origin { node_name: "Node-A", source: Source::File("/x") };
    let pod = read_manifest(minimal(&[]).to_string().as_bytes(), &origin).unwrap().pod;
    assert_eq!(pod.metadata.name.as_deref(), Some("web-node-a"));
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("Node-A"));
}

#[test]
fn a_pod_without_name_is_refused() {
    for name in [Value::Null, json!("")] {
        let error = read_json(&minimal(&[("metadata.name", name)])).unwrap_err();
        assert!(error.to_string().contains("metadata.name: required value is missing: name is needed for the pod"));
    }
}

fn uid(text: &str, origin: &Origin<'_>) -> String {
    read_manifest(text.as_bytes(), origin).unwrap().pod.metadata.uid.unwrap()
}

#[test]
fn the_uid_changes_with_content_and_place_and_not_with_writing() {
    let yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: x:1}\n";
    let base = uid(yaml, &ORIGIN);
    assert_eq!(base.len(), 32);
    assert!(base.bytes().all(|b| b.is_ascii_hexdigit()));
    let same = [
        format!("# a comment\n\n{yaml}\n"),
        "kind: Pod\nspec: {containers: [{image: 'x:1', name: c}]}\nmetadata:\n  name: web\napiVersion: v1\n".to_owned(),
        minimal(&[]).to_string(),
        minimal(&[("spec.restartPolicy", json!("Always"))]).to_string(),
    ];
    for text in same {
        assert_eq!(uid(&text, &ORIGIN), base, "{text}");
    }
    let mut others = BTreeSet::from([base]);
    for change in [
        ("metadata.labels.a", json!("b")),
        ("spec.containers.0.image", json!("x:2")),
        ("spec.terminationGracePeriodSeconds", json!(31)),
        ("metadata.namespace", json!("default")),
    ] {
        assert!(others.insert(uid(&minimal(std::slice::from_ref(&change)).to_string(), &ORIGIN)), "{change:?}");
    }
    assert!(others.insert(uid(yaml, &Origin { node_name: "node-b", ..ORIGIN })));
    assert!(others.insert(uid(yaml, &Origin { source: Source::File("/other"), ..ORIGIN })));
    assert!(others.insert(uid(yaml, &Origin { source: Source::Url("/other"), ..ORIGIN })));
}

#[test]
fn the_uid_never_moves_between_releases() {
    // A change of this value restarts every static pod of every node that is upgraded.
    assert_eq!(uid(&minimal(&[]).to_string(), &ORIGIN), "5b73a8f6b8b6501c5ccf14d632a7781d");
}

#[test]
fn of_two_files_with_one_name_the_later_runs() {
    let pod = |image: &str| Box::new(read_json(&minimal(&[("spec.containers.0.image", json!(image))])).unwrap().pod);
    let other = Box::new(read_json(&minimal(&[("metadata.namespace", json!("other"))])).unwrap().pod);
    let (kept, shadowed) = collapse([("a", pod("x:1")), ("b", other), ("c", pod("x:2"))]);
    assert_eq!(kept.iter().map(|(from, _)| *from).collect::<Vec<_>>(), ["c", "b"]);
    assert_eq!(shadowed.len(), 1);
    assert_eq!((shadowed[0].from, shadowed[0].by, shadowed[0].full_name.as_str()), ("a", "c", "web-node-a_default"));
}

#[test]
fn of_a_set_that_repeats_a_name_the_first_stays() {
    let pod = |image: &str| Box::new(read_json(&minimal(&[("spec.containers.0.image", json!(image))])).unwrap().pod);
    let (kept, dropped) = first_of_each([pod("x:1"), pod("x:2")]);
    assert_eq!((kept.len(), dropped.len()), (1, 1));
    assert_eq!(kept[0].spec.as_ref().unwrap().containers[0].image.as_deref(), Some("x:1"));
}
