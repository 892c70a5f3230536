use std::collections::BTreeMap;

use model::core::Node;
use serde_json::json;

use crate::csi::{with_driver, without_driver};
use crate::patch;

fn node(annotation: Option<&str>, labels: serde_json::Value) -> Node {
    let annotations = annotation.map(|a| json!({ "csi.volume.kubernetes.io/nodeid": a, "other": "x" }));
    serde_json::from_value(json!({ "metadata": { "name": "n", "annotations": annotations, "labels": labels } }))
        .unwrap()
}

fn zone(value: &str) -> BTreeMap<String, String> {
    [("zone".to_owned(), value.to_owned())].into()
}

#[test]
fn a_driver_is_noted_beside_others_and_said_once() {
    let old = node(Some(r#"{"a.b":"1"}"#), json!({}));
    let new = with_driver(&old, "c.d", "2", &zone("z")).unwrap().unwrap();
    assert_eq!(
        patch(&old, &new),
        Some(json!({ "metadata": {
            "annotations": { "csi.volume.kubernetes.io/nodeid": r#"{"a.b":"1","c.d":"2"}"# },
            "labels": { "zone": "z" },
        } }))
    );
    assert_eq!(with_driver(&new, "c.d", "2", &zone("z")), Ok(None));
    assert_eq!(
        with_driver(&node(None, json!(null)), "c.d", "2", &BTreeMap::new())
            .unwrap()
            .unwrap()
            .metadata
            .labels
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a_label_of_another_value_and_an_annotation_that_is_no_map_are_failures() {
    let old = node(None, json!({ "zone": "y" }));
    let words =
        "detected topology value collision: driver reported \"zone\":\"z\" but existing label is \"zone\":\"y\"";
    assert_eq!(with_driver(&old, "c.d", "2", &zone("z")), Err(words.to_owned()));
    let broken = node(Some("[]"), json!({}));
    for said in [with_driver(&broken, "a", "1", &BTreeMap::new()), without_driver(&broken, "a")] {
        assert!(
            said.unwrap_err()
                .starts_with("failed to parse node's \"csi.volume.kubernetes.io/nodeid\" annotation value (\"[]\")")
        );
    }
}

#[test]
fn the_last_driver_takes_the_annotation_with_it_and_leaves_the_labels() {
    let old = node(Some(r#"{"a.b":"1"}"#), json!({ "zone": "z" }));
    let new = without_driver(&old, "a.b").unwrap().unwrap();
    let gone = json!({ "metadata": { "annotations": { "csi.volume.kubernetes.io/nodeid": null } } });
    assert_eq!(patch(&old, &new), Some(gone));
    assert_eq!(without_driver(&new, "a.b"), Ok(None));
}
