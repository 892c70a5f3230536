use jiff::Timestamp;
use tracing::Level;

use super::fields::{Fields, Value};
use super::klog::{Head, Klog};

fn head(level: Level, logger: Option<&str>) -> Head<'_> {
    let at = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
    Head { at, level, file: "crates/managers/pod-worker/src/sync.rs", line: 42, logger }
}

fn fields() -> Fields {
    let text = |t: &str| Value::Text(t.to_owned());
    Fields {
        message: "a \"message\"".to_owned(),
        pairs: vec![("pod", text("ns/name")), ("count", Value::Bare("3".to_owned())), ("err", text("no\nway"))],
    }
}

#[test]
fn a_line_of_text_has_the_shape_that_scrapers_of_klog_parse() {
    let klog = Klog { json: false, pid: 1234 };
    let line = klog.text(&head(Level::WARN, Some("pod-worker/u1")), &fields());
    let (start, rest) = line.split_once(' ').unwrap();
    assert!(start.starts_with('W') && start.len() == 5, "{line}");
    let (time, rest) = rest.split_once(' ').unwrap();
    assert!(time.ends_with(":20.123456") && time.len() == 15, "{line}");
    assert_eq!(
        rest,
        r#"   1234 sync.rs:42] "a \"message\"" logger="pod-worker/u1" pod="ns/name" count=3 err="no\nway""#
    );
    let letters = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE].map(|l| {
        let line = klog.text(&head(l, None), &Fields::default());
        line.chars().next().unwrap()
    });
    assert_eq!(letters, ['E', 'W', 'I', 'I', 'I']);
}

#[test]
fn a_line_of_json_has_klog_s_keys() {
    assert_eq!(
        Klog::json(&head(Level::DEBUG, Some("a")), &fields()),
        r#"{"ts":1700000000123.456,"caller":"pod-worker/sync.rs:42","logger":"a","msg":"a \"message\"","v":4,"pod":"ns/name","count":3,"err":"no\nway"}"#
    );
    let line = Klog::json(&head(Level::ERROR, None), &fields());
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value.get("v"), None);
    assert_eq!(value["err"], "no\nway");
}

#[test]
fn a_field_never_takes_the_place_of_a_key_of_the_line() {
    let fields = Fields { message: "m".to_owned(), pairs: vec![("msg", Value::Text("x".to_owned()))] };
    let line = Klog::json(&head(Level::INFO, None), &fields);
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["msg"], &value["msg_"]), (&"m".into(), &"x".into()));
}
