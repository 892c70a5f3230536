use serde_json::json;

use super::*;

fn pod(status: serde_json::Value) -> Pod {
    let asks = json!({ "requests": { "cpu": "2", "memory": "1Gi" }, "limits": { "cpu": "4" } });
    let json = json!({
        "spec": {
            "resources": { "requests": { "cpu": "5" } },
            "containers": [{ "name": "a", "resources": asks }, { "name": "b", "resources": asks }],
            "initContainers": [{ "name": "i", "resources": asks }],
        },
        "status": status,
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn what_was_granted_is_what_the_status_tells_of_containers_and_pod() {
    let granted = |status| allocation(&pod(status), Resizable::default());
    assert_eq!(granted(json!({})), None, "nothing is told");
    let told = json!({ "name": "a", "allocatedResources": { "cpu": "1", "memory": "1Gi" },
        "resources": { "requests": { "cpu": "900m" }, "limits": { "cpu": "3" } } });
    let waits = json!({ "name": "b" });
    let status = json!({ "containerStatuses": [told, waits], "initContainerStatuses": [{ "name": "i" }],
        "allocatedResources": { "cpu": "3", "memory": "2Gi" } });
    let granted = serde_json::to_value(granted(status).unwrap()).unwrap();
    let a = json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "3" } });
    let expected = json!({ "ContainerResources": { "a": a }, "PodLevelResources": { "requests": { "cpu": "3" } } });
    assert_eq!(granted, expected);
}

#[test]
fn a_resize_that_waits_is_what_its_condition_says() {
    let condition = |status: &str, reason: &str| {
        pending(&pod(json!({ "conditions": [{ "type": "PodResizePending", "status": status, "reason": reason,
            "message": "m", "observedGeneration": 7, "lastTransitionTime": "1970-01-01T00:00:09Z" }] })))
    };
    let told = |infeasible| PendingResize {
        infeasible,
        message: "m".to_owned(),
        generation: 7,
        since: Timestamp::from_secs(9),
    };
    assert_eq!(condition("True", "Deferred"), Some(told(false)));
    assert_eq!(condition("True", "Infeasible"), Some(told(true)));
    assert_eq!(condition("False", "Deferred"), None);
    assert_eq!(pending(&pod(json!({}))), None);
}
