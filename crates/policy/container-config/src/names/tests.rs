use serde_json::json;

use super::*;
use crate::fixture;

#[test]
fn a_sandbox_carries_the_pods_labels_and_its_identity() {
    let mut pod = fixture::pod(json!({}));
    pod.metadata.labels.get_or_insert_default().insert(LABEL_POD_NAME.to_owned(), "liar".to_owned());
    let labels = sandbox_labels(&pod);
    let want = [("app", "x"), (LABEL_POD_NAME, "web"), (LABEL_POD_NAMESPACE, "ns"), (LABEL_POD_UID, "u-1"), ("z", "q")];
    assert_eq!(labels, want.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    assert_eq!(sandbox_annotations(&pod), BTreeMap::from([("note".to_owned(), "hello".to_owned())]));
}

#[test]
fn a_container_carries_four_labels_and_none_of_the_pod() {
    let pod = fixture::pod(json!({}));
    let labels = container_labels(&pod, &fixture::container(json!({})));
    let want =
        [(LABEL_CONTAINER_NAME, "app"), (LABEL_POD_NAME, "web"), (LABEL_POD_NAMESPACE, "ns"), (LABEL_POD_UID, "u-1")];
    assert_eq!(labels, want.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
}

#[test]
fn annotations_of_a_container_follow_the_book() {
    let bare = fixture::container(json!({}));
    let full = fixture::container(json!({
        "terminationMessagePath": "/t", "terminationMessagePolicy": "File",
        "ports": [{"containerPort": 1}], "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
    }));
    let mut deleted = fixture::pod(json!({"terminationGracePeriodSeconds": 30}));
    deleted.metadata.deletion_grace_period_seconds = Some(5);
    let none = BTreeMap::new();
    let rows = [
        ("hash in lower-case hex", CONTAINER_HASH, Some("8e45cbd0")),
        ("restart count", RESTART_COUNT, Some("3")),
        ("message path", TERMINATION_MESSAGE_PATH, Some("/t")),
        ("message policy", TERMINATION_MESSAGE_POLICY, Some("File")),
        ("grace of the deletion", DELETION_GRACE_PERIOD, Some("5")),
        ("grace of the spec", TERMINATION_GRACE_PERIOD, Some("30")),
        ("preStop", PRE_STOP_HANDLER, Some(r#"{"sleep":{"seconds":1}}"#)),
        ("ports", CONTAINER_PORTS, Some(r#"[{"containerPort":1}]"#)),
    ];
    let got = container_annotations(&deleted, &full, 3, 0x8e45_cbd0, &none);
    for (row, key, want) in rows {
        assert_eq!(got.get(key).map(String::as_str), want, "{row}");
    }
    assert_eq!(got.len(), rows.len());
    let keys: Vec<_> = container_annotations(&fixture::pod(json!({})), &bare, 0, 1, &none).into_keys().collect();
    let want = [CONTAINER_HASH, RESTART_COUNT, TERMINATION_MESSAGE_PATH, TERMINATION_MESSAGE_POLICY];
    assert_eq!(keys, want, "what is not set is not there");
}

#[test]
fn the_nodes_own_annotations_win_over_those_of_device_plugins() {
    let extra = BTreeMap::from([(RESTART_COUNT.to_owned(), "99".to_owned()), ("gpu".to_owned(), "0".to_owned())]);
    let got = container_annotations(&fixture::pod(json!({})), &fixture::container(json!({})), 2, 1, &extra);
    assert_eq!((got[RESTART_COUNT].as_str(), got["gpu"].as_str()), ("2", "0"));
}

#[test]
fn logs_are_named_after_pod_and_restart_count() {
    assert_eq!(pod_log_dir("/var/log/pods/", &fixture::pod(json!({}))), "/var/log/pods/ns_web_u-1");
    assert_eq!(container_log_path("app", 4), "app/4.log");
}
