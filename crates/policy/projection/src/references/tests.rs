//! One row per place where a pod can name an object.

use model::core::Pod;
use serde_json::{Value, json};

use super::{references, service_account};

fn with_spec(spec: Value) -> Pod {
    let mut spec = spec;
    let fields = spec.as_object_mut().unwrap();
    fields.entry("containers").or_insert(json!([]));
    serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})).unwrap()
}

fn found(spec: Value) -> Vec<String> {
    let list = references(&with_spec(spec));
    list.into_iter().map(|r| format!("{} {}/{}", r.kind.as_str(), r.namespace, r.name)).collect()
}

fn container(fields: Value) -> Value {
    let mut c = json!({"name": "c"});
    c.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!([c])
}

fn volume(source: Value) -> Value {
    let mut v = json!({"name": "v"});
    v.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    json!({"volumes": [v]})
}

#[test]
fn every_place_that_names_an_object_is_seen() {
    let env_from =
        json!({"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b", "optional": true}}]});
    let env = json!({"env": [
        {"name": "x", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
        {"name": "y", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}},
        {"name": "z", "value": "plain"},
    ]});
    let projected = json!({"projected": {"sources": [
        {"configMap": {"name": "a"}}, {"secret": {"name": "b"}}, {"downwardAPI": {}},
        {"serviceAccountToken": {"path": "token"}},
    ]}});
    let both = ["ConfigMap ns/a", "Secret ns/b"];
    let rows: Vec<(&str, Value, Vec<&str>)> = vec![
        ("nothing", json!({}), vec![]),
        ("pull secrets", json!({"imagePullSecrets": [{"name": "b"}, {"name": ""}]}), vec!["Secret ns/b"]),
        ("envFrom", json!({"containers": container(env_from.clone())}), both.into()),
        ("env", json!({"containers": container(env.clone())}), both.into()),
        ("init containers", json!({"initContainers": container(env.clone())}), both.into()),
        ("ephemeral containers", json!({"ephemeralContainers": container(env_from)}), both.into()),
        ("configMap volume", volume(json!({"configMap": {"name": "a"}})), vec!["ConfigMap ns/a"]),
        ("secret volume", volume(json!({"secret": {"secretName": "b"}})), vec!["Secret ns/b"]),
        ("projected", volume(projected), vec!["ConfigMap ns/a", "Secret ns/b"]),
        (
            "trust bundles",
            volume(json!({"projected": {"sources": [{"clusterTrustBundle": {"path": "p", "name": "x"}}]}})),
            vec!["ClusterTrustBundle /"],
        ),
        (
            "certificates",
            volume(json!({"projected": {"sources": [{}, {"podCertificate": {"keyType": "k", "signerName": "s"}}]}})),
            vec!["PodCertificate ns//v/1"],
        ),
        ("csi", volume(json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "b"}}})), vec!["Secret ns/b"]),
        ("azureFile", volume(json!({"azureFile": {"secretName": "b", "shareName": "s"}})), vec!["Secret ns/b"]),
        (
            "iscsi",
            volume(json!({"iscsi": {"iqn": "i", "lun": 0, "targetPortal": "t", "secretRef": {"name": "b"}}})),
            vec!["Secret ns/b"],
        ),
        (
            "rbd",
            volume(json!({"rbd": {"image": "i", "monitors": [], "secretRef": {"name": "b"}}})),
            vec!["Secret ns/b"],
        ),
        ("emptyDir", volume(json!({"emptyDir": {}})), vec![]),
    ];
    for (name, spec, expected) in rows {
        assert_eq!(found(spec), expected, "{name}");
    }
}

#[test]
fn an_object_that_is_named_twice_is_one_reference() {
    let spec = json!({
        "imagePullSecrets": [{"name": "s"}, {"name": "s"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
    });
    assert_eq!(found(spec), ["Secret ns/s"]);
}

#[test]
fn a_pod_without_an_account_has_that_of_its_namespace() {
    assert_eq!(service_account(&with_spec(json!({}))), "default");
    assert_eq!(service_account(&with_spec(json!({"serviceAccountName": "robot"}))), "robot");
}
