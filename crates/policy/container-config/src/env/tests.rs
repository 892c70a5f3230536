use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn objects() -> ObjectMap {
    let map = serde_json::from_value(json!({"data": {"a": "1", "bad-key": "x"}, "binaryData": {"bin": "AAEC"}}));
    let secret = serde_json::from_value(json!({"data": {"user": "dQ==", "raw": "/w=="}}));
    ObjectMap {
        config_maps: [
            ("cm".to_owned(), Ok(map.expect("a ConfigMap"))),
            ("broken".to_owned(), Err(LookupError::Failed("timed out waiting for the condition".to_owned()))),
        ]
        .into(),
        secrets: [("sec".to_owned(), Ok(secret.expect("a Secret")))].into(),
        files: [("e.env", Ok(Some("K='f'".to_owned()))), ("zz", Ok(None)), ("bad", Ok(Some("K=f".to_owned())))]
            .map(|(path, content)| (("v".to_owned(), path.to_owned()), content))
            .into(),
    }
}

fn with(pod: &Pod, container: &Container, objects: &dyn ObjectLookup) -> Result<Environment, EnvError> {
    let services = [
        fixture::service("ns", "db", "1.2.3.4", json!([{"port": 5432}])),
        fixture::service("ns", "x", "1.1.1.1", json!([])),
    ];
    let pod_ips = ["10.1.0.5".parse().expect("ip")];
    let node = fixture::node();
    environment(&EnvInput { pod, container, node: &node, services: Some(&services), objects, pod_ips: &pod_ips })
}

fn env(container: Value) -> Result<Environment, EnvError> {
    with(&fixture::pod(json!({"nodeName": "n1"})), &fixture::container(container), &objects())
}

fn text(env: &Environment) -> Vec<String> {
    let own = env.vars().iter().filter(|v| !v.name.starts_with("DB_") && !v.name.starts_with("X_"));
    own.map(|v| format!("{}={}", v.name, String::from_utf8_lossy(&v.value))).collect()
}

#[test]
fn variables_come_in_order_and_later_ones_win() {
    let rows = [
        ("literal", json!({"env": [{"name": "A", "value": "1"}]}), vec!["A=1"]),
        ("no value is empty", json!({"env": [{"name": "A"}]}), vec!["A="]),
        (
            "earlier ones are seen",
            json!({"env": [{"name": "B", "value": "1"}, {"name": "A", "value": "$(B)"}]}),
            vec!["B=1", "A=1"],
        ),
        (
            "later ones are not",
            json!({"env": [{"name": "A", "value": "$(B)"}, {"name": "B", "value": "1"}]}),
            vec!["A=$(B)", "B=1"],
        ),
        ("itself is not", json!({"env": [{"name": "A", "value": "$(A)x"}]}), vec!["A=$(A)x"]),
        (
            "redefined from itself",
            json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}),
            vec!["A=12"],
        ),
        ("services are seen", json!({"env": [{"name": "A", "value": "$(DB_SERVICE_HOST)"}]}), vec!["A=1.2.3.4"]),
        (
            "own before service",
            json!({"env": [{"name": "X_SERVICE_HOST", "value": "9"}, {"name": "A", "value": "$(X_SERVICE_HOST)"}]}),
            vec!["A=9"],
        ),
        ("escape", json!({"env": [{"name": "A", "value": "$$(B)"}]}), vec!["A=$(B)"]),
        ("envFrom", json!({"envFrom": [{"configMapRef": {"name": "cm"}}]}), vec!["a=1", "bad-key=x"]),
        (
            "prefix",
            json!({"envFrom": [{"prefix": "P_", "secretRef": {"name": "sec"}}]}),
            vec!["P_raw=\u{fffd}", "P_user=u"],
        ),
        (
            "later envFrom wins",
            json!({"envFrom": [{"configMapRef": {"name": "cm"}}, {"prefix": "", "configMapRef": {"name": "cm"}}], "env": [{"name": "a", "value": "2"}]}),
            vec!["a=2", "bad-key=x"],
        ),
        (
            "envFrom is seen by env",
            json!({"envFrom": [{"configMapRef": {"name": "cm"}}], "env": [{"name": "A", "value": "$(a)"}]}),
            vec!["a=1", "bad-key=x", "A=1"],
        ),
        (
            "optional envFrom",
            json!({"envFrom": [{"configMapRef": {"name": "none", "optional": true}}, {"secretRef": {"name": "none", "optional": true}}]}),
            vec![],
        ),
    ];
    for (row, container, want) in rows {
        assert_eq!(text(&env(container).expect(row)), want, "{row}");
    }
}

#[test]
fn values_come_begun_elsewhere() {
    let from = |v: Value| json!({"env": [{"name": "A", "valueFrom": v}]});
    let rows = [
        ("field", json!({"fieldRef": {"fieldPath": "spec.nodeName"}}), vec!["A=n1"]),
        ("pod address", json!({"fieldRef": {"fieldPath": "status.podIP"}}), vec!["A=10.1.0.5"]),
        ("resource", json!({"resourceFieldRef": {"resource": "limits.cpu"}}), vec!["A=4"]),
        ("config map key", json!({"configMapKeyRef": {"name": "cm", "key": "a"}}), vec!["A=1"]),
        ("secret key", json!({"secretKeyRef": {"name": "sec", "key": "user"}}), vec!["A=u"]),
        (
            "optional key is absent, not empty",
            json!({"configMapKeyRef": {"name": "cm", "key": "zz", "optional": true}}),
            vec![],
        ),
        ("optional map is absent", json!({"configMapKeyRef": {"name": "none", "key": "a", "optional": true}}), vec![]),
        ("optional secret is absent", json!({"secretKeyRef": {"name": "none", "key": "a", "optional": true}}), vec![]),
        ("file", json!({"fileKeyRef": {"volumeName": "v", "path": "e.env", "key": "K"}}), vec!["A=f"]),
        (
            "optional in a file",
            json!({"fileKeyRef": {"volumeName": "v", "path": "e.env", "key": "Z", "optional": true}}),
            vec![],
        ),
        (
            "optional file",
            json!({"fileKeyRef": {"volumeName": "v", "path": "zz", "key": "Z", "optional": true}}),
            vec![],
        ),
    ];
    for (row, source, want) in rows {
        assert_eq!(text(&env(from(source)).expect(row)), want, "{row}");
    }
}

#[test]
fn failures_say_what_is_missing() {
    let from = |v: Value| json!({"env": [{"name": "A", "valueFrom": v}]});
    let rows = [
        ("map", json!({"envFrom": [{"configMapRef": {"name": "nope"}}]}), "configmap \"nope\" not found"),
        ("secret", json!({"envFrom": [{"secretRef": {"name": "nope"}}]}), "secret \"nope\" not found"),
        (
            "key of a map",
            from(json!({"configMapKeyRef": {"name": "cm", "key": "k"}})),
            "couldn't find key k in ConfigMap ns/cm",
        ),
        (
            "binary data has no keys",
            from(json!({"configMapKeyRef": {"name": "cm", "key": "bin"}})),
            "couldn't find key bin in ConfigMap ns/cm",
        ),
        (
            "key of a secret",
            from(json!({"secretKeyRef": {"name": "sec", "key": "k"}})),
            "couldn't find key k in Secret ns/sec",
        ),
        (
            "optional forgives only absence",
            from(json!({"configMapKeyRef": {"name": "broken", "key": "k", "optional": true}})),
            "timed out waiting for the condition",
        ),
        ("field", from(json!({"fieldRef": {"fieldPath": "x"}})), "unsupported fieldPath: x"),
        (
            "file",
            from(json!({"fileKeyRef": {"volumeName": "v", "path": "zz", "key": "K"}})),
            "environment variable key \"K\" not found in file \"zz\" of volume \"v\"",
        ),
        (
            "a file in another form",
            from(json!({"fileKeyRef": {"volumeName": "v", "path": "bad", "key": "K", "optional": true}})),
            "couldn't parse env file \"bad\" of volume \"v\": line 1: the value is not in single quotes",
        ),
        (
            "a volume that is not there",
            from(json!({"fileKeyRef": {"volumeName": "w", "path": "p", "key": "K", "optional": true}})),
            "cannot find the volume \"w\" referenced by FileKeyRef",
        ),
    ];
    for (row, container, want) in rows {
        assert_eq!(env(container).expect_err(row).to_string(), want, "{row}");
    }
}

#[test]
fn a_node_without_api_server_has_no_objects_not_even_optional_ones() {
    let pod = fixture::pod(json!({}));
    let rows = [
        (
            "map",
            json!({"envFrom": [{"configMapRef": {"name": "cm", "optional": true}}]}),
            "couldn't get configMap ns/cm, no kubeClient defined",
        ),
        (
            "secret",
            json!({"envFrom": [{"secretRef": {"name": "s", "optional": true}}]}),
            "couldn't get secret ns/s, no kubeClient defined",
        ),
    ];
    for (row, container, want) in rows {
        let got = with(&pod, &fixture::container(container), &NoObjects);
        assert_eq!(got.expect_err(row).to_string(), want, "{row}");
    }
}

#[test]
fn services_fill_what_nobody_has_set() {
    let made = env(json!({"env": [{"name": "DB_SERVICE_HOST", "value": "mine"}]})).expect("an environment");
    assert_eq!(made.get("DB_SERVICE_HOST"), Some(b"mine".as_slice()));
    assert_eq!(made.get("DB_PORT"), Some(b"tcp://1.2.3.4:5432".as_slice()));
    let without = fixture::pod(json!({"enableServiceLinks": false}));
    assert_eq!(with(&without, &fixture::container(json!({})), &NoObjects), Ok(Environment::default()));
}

#[test]
fn services_must_be_known_unless_the_pod_is_static() {
    let container = fixture::container(json!({}));
    let node = fixture::node();
    let mut pod = fixture::pod(json!({}));
    let get = |pod: &Pod| {
        let input =
            EnvInput { pod, container: &container, node: &node, services: None, objects: &NoObjects, pod_ips: &[] };
        environment(&input)
    };
    assert_eq!(get(&pod), Err(EnvError::NoServicesYet));
    pod.metadata.annotations.get_or_insert_default().insert(pod::CONFIG_SOURCE.to_owned(), "file".to_owned());
    assert_eq!(get(&pod), Ok(Environment::default()));
    pod.spec.as_mut().expect("spec").enable_service_links = None;
    assert_eq!(get(&pod), Err(EnvError::NoServiceLinks));
}

#[test]
fn every_object_that_a_container_needs_is_named() {
    let container = fixture::container(json!({
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
        "env": [
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}},
            {"name": "Z", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
    }));
    use ObjectKind::{ConfigMap, Secret};
    let want = [(ConfigMap, "a"), (ConfigMap, "c"), (Secret, "b")].map(|(k, n)| (k, n.to_owned()));
    assert_eq!(referenced_objects(&container), BTreeSet::from(want));
}
