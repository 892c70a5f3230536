use serde_json::json;

use super::*;
use crate::fixture;

fn field(path: &str, version: Option<&str>) -> Result<String, FieldError> {
    let mut pod = fixture::pod(json!({"nodeName": "n1", "serviceAccountName": "sa"}));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert("quoted".to_owned(), "a\"b\n".to_owned());
    let ips = |ips: [&str; 2]| ips.map(|ip| ip.parse().expect("ip"));
    let selector = ObjectFieldSelector { api_version: version.map(str::to_owned), field_path: path.to_owned() };
    let input =
        FieldInput { pod: &pod, host_ips: &ips(["10.0.0.1", "fd00::1"]), pod_ips: &ips(["10.1.0.5", "fd00::5"]) };
    env_field(&selector, &input)
}

#[test]
fn every_field_of_the_book_is_there() {
    let rows = [
        ("metadata.name", "web"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "x"),
        ("metadata.labels['missing']", ""),
        ("metadata.annotations['note']", "hello"),
        ("metadata.labels", "app=\"x\"\nquoted=\"a\\\"b\\n\"\nz=\"q\""),
        ("metadata.annotations", "note=\"hello\""),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "sa"),
        ("status.hostIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1,fd00::1"),
        ("status.podIP", "10.1.0.5"),
        ("status.podIPs", "10.1.0.5,fd00::5"),
    ];
    for (path, want) in rows {
        assert_eq!(field(path, Some("v1")).as_deref(), Ok(want), "{path}");
        assert_eq!(field(path, None).as_deref(), Ok(want), "{path} without a version");
    }
}

#[test]
fn other_fields_are_refused() {
    let rows = [
        ("unknown", field("spec.containers", None), FieldError::Unsupported("spec.containers".to_owned())),
        ("key of something else", field("metadata.name['x']", None), FieldError::Subscript("metadata.name".to_owned())),
        ("half a key", field("metadata.labels['x", None), FieldError::Unsupported("metadata.labels['x".to_owned())),
        ("another version", field("metadata.name", Some("v2")), FieldError::Version("v2".to_owned())),
    ];
    for (row, got, want) in rows {
        assert_eq!(got, Err(want), "{row}");
    }
}

#[test]
fn a_node_without_an_address_is_an_error_for_the_host_fields_only() {
    let pod = fixture::pod(json!({}));
    let input = FieldInput { pod: &pod, host_ips: &[], pod_ips: &[] };
    let get = |path: &str| env_field(&ObjectFieldSelector { api_version: None, field_path: path.to_owned() }, &input);
    assert_eq!(get("status.hostIP"), Err(FieldError::NoHostIp));
    assert_eq!(get("status.hostIPs"), Err(FieldError::NoHostIp));
    assert_eq!(get("status.podIP").as_deref(), Ok(""));
}

#[test]
fn an_empty_map_is_an_empty_text() {
    assert_eq!(format_map(&BTreeMap::new()), "");
}
