use serde_json::json;

use super::*;
use crate::testing::status;

fn running(extra: Value) -> Value {
    let mut value = json!({"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}],
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [
            {"type": "x/gate", "status": "True"},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "m",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [{"name": "app", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "lastState": {}, "state": {"waiting": {}}}]});
    for (key, v) in extra.as_object().unwrap() {
        value[key] = v.clone();
    }
    value
}

#[test]
fn each_kind_of_difference_has_its_form() {
    let ready = json!([{"type": "x/gate", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"}]);
    let rows = [
        ("nothing", json!({}), json!({}), None),
        ("a value", json!({}), json!({"phase": "Failed"}), Some(json!({"phase": "Failed"}))),
        ("a value that goes", json!({"reason": "Evicted"}), json!({}), Some(json!({"reason": null}))),
        (
            "a condition",
            json!({}),
            json!({"conditions": ready}),
            Some(json!({
                "$setElementOrder/conditions": [{"type": "x/gate"}, {"type": "Ready"}],
                "conditions": [{"type": "Ready", "status": "True", "reason": null, "message": null,
                    "lastTransitionTime": "2026-01-02T00:00:00Z"}]})),
        ),
        (
            "a condition that goes, by its key alone",
            json!({}),
            json!({"conditions": [{"type": "x/gate", "status": "True"}]}),
            Some(json!({
                "$setElementOrder/conditions": [{"type": "x/gate"}],
                "conditions": [{"$patch": "delete", "type": "Ready"}]})),
        ),
        (
            "a second address",
            json!({}),
            json!({"podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]}),
            Some(json!({
                "$setElementOrder/podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
                "podIPs": [{"ip": "fd00::7"}]})),
        ),
        ("all addresses go", json!({}), json!({"podIPs": []}), Some(json!({"podIPs": null}))),
        (
            "containers are replaced whole",
            json!({}),
            json!({"containerStatuses": [{"name": "app", "image": "i", "imageID": "", "ready": false,
                "restartCount": 1, "lastState": {}, "state": {"waiting": {}}}]}),
            Some(json!({"containerStatuses": [{"name": "app", "image": "i", "imageID": "", "ready": false,
                "restartCount": 1, "state": {"waiting": {}}}]})),
        ),
        (
            "a field of an object",
            json!({"resources": {"requests": {"cpu": "1"}}}),
            json!({"resources": {"requests": {"cpu": "2"}}}),
            Some(json!({"resources": {"requests": {"cpu": "2"}}})),
        ),
        (
            "the order of conditions alone is none",
            json!({"conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "True"}]}),
            json!({"conditions": [{"type": "b", "status": "True"}, {"type": "a", "status": "True"}]}),
            None,
        ),
        (
            "empty and absent are the same",
            json!({"reason": "", "containerStatuses": [], "hostIPs": []}),
            json!({"containerStatuses": []}),
            None,
        ),
        (
            "resources of which none are set",
            json!({}),
            json!({"resources": {}, "containerStatuses": [{"name": "app", "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "lastState": {}, "state": {"waiting": {}}, "resources": {}}]}),
            Some(json!({"resources": {}, "containerStatuses": [{"name": "app", "image": "i", "imageID": "",
                "ready": false, "restartCount": 0, "state": {"waiting": {}}, "resources": {}}]})),
        ),
        ("the same, as the API has them", json!({"resources": {}}), json!({"resources": {}}), None),
    ];
    for (name, old, new, expected) in rows {
        assert_eq!(status_patch(&status(running(old)), &status(running(new))), expected, "{name}");
    }
}

#[test]
fn a_first_status_carries_everything() {
    let wanted = status(running(json!({})));
    let patch = status_patch(&status(json!({"phase": "Pending"})), &wanted).unwrap();
    assert_eq!(patch["phase"], "Running");
    assert_eq!(patch["conditions"].as_array().unwrap().len(), 2);
    assert_eq!(patch["containerStatuses"][0]["state"], json!({"waiting": {}}));
}

#[test]
fn waiting_without_a_reason_and_running_are_told_apart() {
    let running_state = json!({"containerStatuses": [{"name": "app", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": {"running": {}}}]});
    let patch = status_patch(&status(running(json!({}))), &status(running(running_state)));
    assert_eq!(patch.unwrap()["containerStatuses"][0]["state"], json!({"running": {}}));
}
