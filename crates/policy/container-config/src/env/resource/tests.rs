use serde_json::{Value, json};

use super::*;
use crate::fixture;

fn value(selector: Value, resources: Value, pod_resources: Value) -> Result<String, ResourceError> {
    let spec = json!({
        "resources": pod_resources,
        "containers": [
            {"name": "app", "resources": resources},
            {"name": "other", "resources": {"limits": {"cpu": "2"}}},
        ],
    });
    let pod = fixture::pod(spec);
    let own = model::pod::regular_containers(&pod)[0].clone();
    let selector = serde_json::from_value(selector).expect("a selector");
    container_resource(&selector, &pod, Some(&own), &fixture::node().allocatable)
}

#[test]
fn amounts_are_divided_and_rounded_up() {
    let limits = |l: Value| json!({"limits": l, "requests": {"cpu": "100m", "memory": "16Mi"}});
    let rows = [
        ("cores, rounded up", "limits.cpu", None, limits(json!({"cpu": "300m"})), "1"),
        ("millicores", "limits.cpu", Some("1m"), limits(json!({"cpu": "300m"})), "300"),
        ("divisor 0 is 1", "limits.cpu", Some("0"), limits(json!({"cpu": "1500m"})), "2"),
        ("bytes", "requests.memory", None, limits(json!({})), "16777216"),
        ("mebibytes", "requests.memory", Some("1Mi"), limits(json!({})), "16"),
        ("rounded up", "limits.memory", Some("1Gi"), limits(json!({"memory": "1025Mi"})), "2"),
        ("request of cpu", "requests.cpu", Some("1m"), limits(json!({})), "100"),
        ("no request is 0", "requests.ephemeral-storage", None, limits(json!({})), "0"),
        ("huge pages", "limits.hugepages-2Mi", Some("1Mi"), limits(json!({"hugepages-2Mi": "4Mi"})), "4"),
        ("no huge pages: not defaulted", "limits.hugepages-2Mi", None, limits(json!({})), "0"),
        ("allocatable cpu", "limits.cpu", None, json!({}), "4"),
        ("allocatable memory", "limits.memory", Some("1Gi"), json!({}), "8"),
        ("allocatable storage", "limits.ephemeral-storage", Some("1Gi"), json!({}), "100"),
        ("a limit of 0 counts as none", "limits.cpu", None, limits(json!({"cpu": "0"})), "4"),
    ];
    for (row, resource, divisor, resources, want) in rows {
        let mut selector = json!({"resource": resource});
        if let Some(divisor) = divisor {
            selector["divisor"] = json!(divisor);
        }
        assert_eq!(value(selector, resources, json!({})).as_deref(), Ok(want), "{row}");
    }
}

#[test]
fn limits_of_the_pod_come_before_those_of_the_node() {
    let pod = json!({"limits": {"cpu": "3"}});
    let get = |resource: &str, own: Value| value(json!({"resource": resource}), own, pod.clone());
    assert_eq!(get("limits.cpu", json!({})).as_deref(), Ok("3"));
    assert_eq!(get("limits.cpu", json!({"limits": {"cpu": "1"}})).as_deref(), Ok("1"));
    assert_eq!(get("limits.memory", json!({})).as_deref(), Ok("8589934592"));
}

#[test]
fn another_container_can_be_named() {
    let get = |name: &str| value(json!({"resource": "limits.cpu", "containerName": name}), json!({}), json!({}));
    assert_eq!(get("other").as_deref(), Ok("2"));
    assert_eq!(get("").as_deref(), Ok("4"));
    assert_eq!(get("none"), Err(ResourceError::NoContainer("none".to_owned())));
}

#[test]
fn other_resources_are_refused() {
    for resource in ["limits.gpu", "cpu", "usage.cpu", ""] {
        let want = ResourceError::Unsupported(resource.to_owned());
        assert_eq!(value(json!({"resource": resource}), json!({}), json!({})), Err(want), "{resource}");
    }
    let bad = json!({"limits": {"memory": "x"}});
    let got = value(json!({"resource": "limits.memory", "divisor": "y"}), bad, json!({}));
    assert_eq!(got, Err(ResourceError::Quantity("y".to_owned())), "an unreadable limit is defaulted, a divisor is not");
}
