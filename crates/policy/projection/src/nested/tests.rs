//! Mounts inside of mounts.

use serde_json::json;

use super::nested_mount_points;
use crate::fixture::with_spec;

#[test]
fn mounts_inside_of_a_volume_are_found() {
    for (name, mounts, expected) in [
        ("alone", json!([["v", "/m"]]), vec![]),
        ("beside", json!([["v", "/m"], ["w", "/mount"]]), vec![]),
        ("below", json!([["v", "/m"], ["w", "/m/a/b"]]), vec!["a/b"]),
        ("below, spelled otherwise", json!([["v", "/m/"], ["w", "/m/./a/"]]), vec!["a"]),
        ("nested below", json!([["v", "/m"], ["w", "/m/a"], ["x", "/m/a/b"], ["y", "/m/ab"]]), vec!["a", "ab"]),
        ("of another volume", json!([["w", "/m"], ["v", "/m/a"]]), vec![]),
        ("out of it", json!([["v", "m"], ["w", "m/../../x"]]), vec![]),
    ] {
        let mounts: Vec<_> =
            mounts.as_array().unwrap().iter().map(|m| json!({"name": m[0], "mountPath": m[1]})).collect();
        let pod = with_spec(json!({"containers": [{"name": "c", "volumeMounts": mounts}]}));
        let got: Vec<_> = nested_mount_points(&pod, "v").into_iter().collect();
        assert_eq!(got, expected, "{name}");
    }
}
