//! Whose tokens.

use serde_json::{Value, json};

use super::fs_user;
use crate::fixture::with_spec;

#[test]
fn users_table() {
    let c = |user: Value| json!({"name": "c", "securityContext": {"runAsUser": user}});
    let none = json!({"name": "c"});
    let rows: [(&str, Value, Value, Value, Option<u32>); 8] = [
        ("no containers", json!(null), json!([]), json!([]), None),
        ("nobody says", json!(null), json!([]), json!([none]), None),
        ("the pod says", json!(7), json!([none]), json!([none]), Some(7)),
        ("all say the same", json!(null), json!([c(json!(5))]), json!([c(json!(5)), c(json!(5))]), Some(5)),
        ("two differ", json!(null), json!([]), json!([c(json!(5)), c(json!(6))]), None),
        ("an init container differs", json!(null), json!([c(json!(0))]), json!([c(json!(5))]), None),
        ("one says nothing", json!(null), json!([]), json!([c(json!(5)), none]), None),
        ("a container wins over the pod", json!(7), json!([]), json!([c(json!(5))]), Some(5)),
    ];
    for (name, of_pod, init, regular, expected) in rows {
        let pod = with_spec(json!({
            "securityContext": {"runAsUser": of_pod}, "initContainers": init, "containers": regular,
            "ephemeralContainers": [{"name": "e"}],
        }));
        assert_eq!(fs_user(&pod), expected, "{name}");
    }
}
