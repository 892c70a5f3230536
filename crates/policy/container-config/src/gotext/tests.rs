use model::core::{ContainerPort, LifecycleHandler};
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn ports_are_written_in_gos_order_and_without_empty_fields() {
    let ports: Vec<ContainerPort> = serde_json::from_value(json!([
        {"name": "http", "containerPort": 8080, "hostPort": 18080, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP", "hostPort": 18053, "hostIP": "127.0.0.1"},
        {"containerPort": 1, "name": "", "hostPort": 0, "hostIP": ""},
    ]))
    .expect("ports");
    assert_eq!(
        ports_json(&ports),
        r#"[{"name":"http","hostPort":18080,"containerPort":8080,"protocol":"TCP"},{"hostPort":18053,"containerPort":53,"protocol":"UDP","hostIP":"127.0.0.1"},{"containerPort":1}]"#
    );
}

#[test]
fn handlers_are_written_in_gos_order() {
    let rows = [
        (
            "exec",
            json!({"exec": {"command": ["sh", "-c", "sleep 1"]}}),
            r#"{"exec":{"command":["sh","-c","sleep 1"]}}"#,
        ),
        ("empty exec", json!({"exec": {}}), r#"{"exec":{}}"#),
        (
            "http",
            json!({"httpGet": {"httpHeaders": [{"name": "A", "value": "b"}], "scheme": "HTTP", "host": "h", "port": "web", "path": "/x"}}),
            r#"{"httpGet":{"path":"/x","port":"web","host":"h","scheme":"HTTP","httpHeaders":[{"name":"A","value":"b"}]}}"#,
        ),
        ("http, number", json!({"httpGet": {"port": 80}}), r#"{"httpGet":{"port":80}}"#),
        ("tcp", json!({"tcpSocket": {"host": "h", "port": 1}}), r#"{"tcpSocket":{"port":1,"host":"h"}}"#),
        ("sleep", json!({"sleep": {"seconds": 0}}), r#"{"sleep":{"seconds":0}}"#),
        (
            "html characters",
            json!({"exec": {"command": ["a>b && c<d", "\u{2028}"]}}),
            r#"{"exec":{"command":["a\u003eb \u0026\u0026 c\u003cd","\u2028"]}}"#,
        ),
    ];
    for (row, handler, want) in rows {
        let handler: LifecycleHandler = serde_json::from_value(handler).expect("a handler");
        assert_eq!(handler_json(&handler), want, "{row}");
    }
}

#[test]
fn quotes_as_go_does() {
    let rows = [
        ("plain", "abc", "\"abc\""),
        ("quotes", "say \"hi\" it's", "\"say \\\"hi\\\" it's\""),
        ("backslash", "a\\b", "\"a\\\\b\""),
        ("named controls", "\u{7}\u{8}\u{c}\n\r\t\u{b}", "\"\\a\\b\\f\\n\\r\\t\\v\""),
        ("other controls", "\u{0}\u{1b}\u{7f}", "\"\\x00\\x1b\\x7f\""),
        ("letters of others", "h\u{e9} \u{4e16}", "\"h\u{e9} \u{4e16}\""),
        ("no-break space", "\u{a0}", "\"\\u00a0\""),
        ("private use, high", "\u{10fffd}", "\"\\U0010fffd\""),
        ("combining mark", "\u{301}", "\"\u{301}\""),
    ];
    for (row, text, want) in rows {
        assert_eq!(quote(text), want, "{row}");
    }
}

proptest! {
    #[test]
    fn a_quoted_text_is_one_line(text in any::<String>()) {
        let quoted = quote(&text);
        prop_assert!(!quoted.chars().any(char::is_control));
        prop_assert!(quoted.len() >= 2 && quoted.starts_with('"') && quoted.ends_with('"'));
    }
}
