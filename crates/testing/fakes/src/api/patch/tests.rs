use serde_json::{Value, json};

use super::{merge, strategic};

#[test]
fn strategic_patches_give_what_a_server_gives() {
    let rows: Vec<(&str, Value, Value, Value)> = vec![
        (
            "conditions are merged by type",
            json!({"conditions": [{"type": "Ready", "status": "True", "reason": "a"}, {"type": "Foreign", "status": "True"}]}),
            json!({"conditions": [{"type": "Ready", "status": "False"}]}),
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "a"}, {"type": "Foreign", "status": "True"}]}),
        ),
        (
            "a condition is deleted by directive",
            json!({"conditions": [{"type": "Ready"}, {"type": "Foreign"}]}),
            json!({"conditions": [{"$patch": "delete", "type": "Ready"}]}),
            json!({"conditions": [{"type": "Foreign"}]}),
        ),
        (
            "container statuses are replaced as a whole",
            json!({"containerStatuses": [{"name": "a", "ready": true}, {"name": "b"}]}),
            json!({"containerStatuses": [{"name": "a"}]}),
            json!({"containerStatuses": [{"name": "a"}]}),
        ),
        (
            "addresses are replaced when the patch says so",
            json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n"}]}),
            json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "InternalIP", "address": "fd00::2"}, {"$patch": "replace"}]}),
            json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}, {"type": "InternalIP", "address": "fd00::2"}]}),
        ),
        (
            "null removes a field",
            json!({"status": {"phase": "Running", "reason": "x"}}),
            json!({"status": {"reason": null}}),
            json!({"status": {"phase": "Running"}}),
        ),
        (
            "element order is set",
            json!({"conditions": [{"type": "A"}, {"type": "B"}]}),
            json!({"$setElementOrder/conditions": [{"type": "C"}, {"type": "A"}, {"type": "B"}], "conditions": [{"type": "C"}]}),
            json!({"conditions": [{"type": "C"}, {"type": "A"}, {"type": "B"}]}),
        ),
        (
            "finalizers are united and deleted one by one",
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}),
            json!({"finalizers": ["b", "c"]}),
        ),
        (
            "retained keys drop the others",
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"a": 1}}}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
            json!({"strategy": {"type": "Recreate"}}),
        ),
    ];
    for (name, mut object, patch, wanted) in rows {
        strategic(&mut object, &patch);
        assert_eq!(object, wanted, "{name}");
    }
}

#[test]
fn merge_patches_replace_lists_and_remove_nulls() {
    let mut object = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x"});
    merge(&mut object, &json!({"a": {"b": null, "c": [3]}, "e": {"f": null, "g": 1}}));
    assert_eq!(object, json!({"a": {"c": [3]}, "d": "x", "e": {"g": 1}}));
}
