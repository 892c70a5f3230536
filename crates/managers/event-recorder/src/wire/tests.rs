use model::PodUid;
use model::event::EventType;

use super::*;

fn line(object: EventObject) -> EventEntry {
    let (first, last) = (Timestamp::from_secs(1_767_225_600), Timestamp::from_secs(1_767_225_660));
    let (reason, message) = ("Pulled".to_owned(), "m".to_owned());
    EventEntry { kind: EventType::Normal, reason, message, object, count: 3, first, last, annotations: [].into() }
}

fn pod(field_path: &str) -> EventObject {
    let uid = PodUid::from("u1");
    EventObject::Pod { namespace: "ns".into(), name: "web".into(), uid, field_path: field_path.into() }
}

fn reporter() -> Reporter {
    Reporter { node_name: "n1".into() }
}

#[test]
fn an_event_of_a_container_as_the_api_stores_it() {
    let name = reporter().name(&pod(""), 0x18ab_cdef);
    assert_eq!(name, "web.18abcdef");
    assert_eq!(
        reporter().event(&name, &line(pod("spec.containers{app}")), Some("77")),
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.18abcdef", "namespace": "ns"},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "web", "uid": "u1",
                "resourceVersion": "77", "fieldPath": "spec.containers{app}"},
            "reason": "Pulled", "message": "m", "type": "Normal", "count": 3,
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z", "eventTime": null,
            "reportingComponent": "kubelet", "reportingInstance": "n1"})
    );
}

#[test]
fn annotations_are_stored_where_there_are_any() {
    let annotated = EventEntry { annotations: [("starved_resource".into(), "memory".into())].into(), ..line(pod("")) };
    let got = reporter().event("web.1", &annotated, None);
    assert_eq!(got["metadata"]["annotations"], json!({ "starved_resource": "memory" }));
    assert_eq!(reporter().event("web.1", &line(pod("")), None)["metadata"].get("annotations"), None);
}

#[test]
fn involved_objects() {
    let rows = [
        (
            "a pod",
            pod(""),
            Some("7"),
            json!({"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "web",
            "uid": "u1", "resourceVersion": "7"}),
            "ns",
        ),
        (
            "a static pod",
            pod(""),
            None,
            json!({"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "web",
            "uid": "u1"}),
            "ns",
        ),
        (
            "a claim",
            EventObject::Claim {
                namespace: "ns".into(),
                name: "data".into(),
                uid: "u2".into(),
                resource_version: "9".into(),
            },
            Some("9"),
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "ns", "name": "data",
            "uid": "u2", "resourceVersion": "9"}),
            "ns",
        ),
        (
            "the node, without a UID",
            EventObject::Node,
            None,
            json!({"apiVersion": "v1", "kind": "Node", "name": "n1"}),
            "default",
        ),
    ];
    for (name, object, version, involved, namespace) in rows {
        let event = reporter().event("x", &line(object.clone()), version);
        assert_eq!(event["involvedObject"], involved, "{name}");
        assert_eq!(event["metadata"]["namespace"], namespace, "{name}");
    }
    assert_eq!(reporter().name(&EventObject::Node, 255), "n1.ff");
}

#[test]
fn the_apis_own_type_reads_it() {
    let value = reporter().event("x", &line(pod("")), Some("7"));
    let event: model::core::Event = serde_json::from_value(value.clone()).unwrap();
    assert_eq!((event.count, event.reporting_component.as_deref()), (Some(3), Some("kubelet")));
    assert_eq!(event.involved_object.resource_version.as_deref(), Some("7"));
}

#[test]
fn a_repetition_changes_three_fields() {
    assert_eq!(
        reporter().repetition(&line(pod(""))),
        json!({"count": 3, "lastTimestamp": "2026-01-01T00:01:00Z", "message": "m"})
    );
}

#[test]
fn no_two_events_get_one_name() {
    assert_eq!(name_time(Timestamp(100), 0), 100);
    assert_eq!(name_time(Timestamp(100), 100), 101);
    assert_eq!(name_time(Timestamp(50), 101), 102, "a clock that was set back");
}
