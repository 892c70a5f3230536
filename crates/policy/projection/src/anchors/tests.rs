//! Rows of selectors, and of what is in a file.

use std::collections::BTreeMap;

use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Selector, normalised};
use crate::pem;

fn selector(value: Value) -> LabelSelector {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_selector_takes_what_all_its_terms_take() {
    let labels = BTreeMap::from([("env".to_owned(), "prod".to_owned()), ("tier".to_owned(), "db".to_owned())]);
    let term = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let rows = [
        ("empty", json!({}), true),
        ("a label", json!({"matchLabels": {"env": "prod"}}), true),
        ("another value", json!({"matchLabels": {"env": "test"}}), false),
        ("one of two labels", json!({"matchLabels": {"env": "prod", "x": "y"}}), false),
        ("in", json!({"matchExpressions": [term("env", "In", &["test", "prod"])]}), true),
        ("in nothing", json!({"matchExpressions": [term("env", "In", &[])]}), false),
        ("absent is in nothing", json!({"matchExpressions": [term("x", "In", &["y"])]}), false),
        ("not in", json!({"matchExpressions": [term("env", "NotIn", &["test"])]}), true),
        ("in what it must not", json!({"matchExpressions": [term("env", "NotIn", &["prod"])]}), false),
        ("absent is not in", json!({"matchExpressions": [term("x", "NotIn", &["y"])]}), true),
        ("exists", json!({"matchExpressions": [{"key": "env", "operator": "Exists"}]}), true),
        ("does not exist", json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]}), false),
        ("absent", json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}), true),
        ("there", json!({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}), false),
        (
            "both kinds",
            json!({"matchLabels": {"tier": "db"}, "matchExpressions": [term("env", "In", &["test"])]}),
            false,
        ),
    ];
    for (what, value, wanted) in rows {
        assert_eq!(Selector::parse(Some(&selector(value))).unwrap().takes(&labels), wanted, "{what}");
    }
    assert!(!Selector::parse(None).unwrap().takes(&labels), "no selector takes nothing");
}

#[test]
fn selectors_that_nobody_can_mean_are_refused() {
    let odd = selector(json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}));
    let text = "while parsing label selector: \"Near\" is not a valid label selector operator";
    assert_eq!(Selector::parse(Some(&odd)).unwrap_err(), text);
    let of = |length: usize| selector(json!({"matchLabels": {"k": "v".repeat(length)}}));
    assert!(Selector::parse(Some(&of(102_398))).is_ok());
    let text = "label selector length (102401) is larger than 102400";
    assert_eq!(Selector::parse(Some(&of(102_399))).unwrap_err(), text);
}

#[test]
fn anchors_are_there_once_and_without_what_stood_around_them() {
    let of = |all: &[&str]| pem::certificates(&all.iter().map(|s| s.as_bytes().to_vec()).collect::<Vec<_>>());
    let first = format!("# comment\n{}", of(&["b", "a"]));
    let second = of(&["c", "a"]).replace("CERTIFICATE", "X");
    assert_eq!(normalised([first.as_str(), second.as_str()]), of(&["a", "b", "c"]));
    assert_eq!(normalised(["no anchor at all"]), "");
}

proptest! {
    #[test]
    fn the_order_of_bundles_does_not_matter(all in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..9), 0..9)) {
        let mut each: Vec<String> = all.iter().map(|der| pem::certificates([der])).collect();
        let text = normalised(each.iter().map(String::as_str));
        each.reverse();
        prop_assert_eq!(&normalised(each.iter().map(String::as_str)), &text);
        prop_assert_eq!(normalised([text.as_str()]), text);
    }
}
