use model::k8s_openapi::jiff::Timestamp;
use ports::api::Method;
use serde_json::{Value, json};

use super::super::target::{FieldSelector, Target};
use super::{Ask, Store};

fn ask<'a>(method: Method, path: &'a str, query: &'a [(String, String)], body: Value) -> Ask<'a> {
    Ask { method, path, query, body, now: Timestamp::UNIX_EPOCH }
}

#[test]
fn a_watch_from_a_forgotten_version_has_expired() {
    let mut store = Store::default();
    let target = Target::parse("/api/v1/nodes").unwrap();
    store.answer(&ask(Method::Post, "/api/v1/nodes", &[], json!({ "metadata": { "name": "a" } }))).unwrap();
    assert_eq!(store.changes(&target, &FieldSelector::default(), 0).unwrap().len(), 1);
    store.compact();
    assert!(store.changes(&target, &FieldSelector::default(), 1).unwrap_err().is_gone());
    assert!(store.changes(&target, &FieldSelector::default(), store.version()).unwrap().is_empty());
}

#[test]
fn lists_come_in_pages() {
    let mut store = Store::default();
    for name in ["a", "b", "c"] {
        store.answer(&ask(Method::Post, "/api/v1/nodes", &[], json!({ "metadata": { "name": name } }))).unwrap();
    }
    let mut query = vec![("limit".to_owned(), "2".to_owned())];
    let first = store.answer(&ask(Method::Get, "/api/v1/nodes", &query, Value::Null)).unwrap();
    query.push(("continue".to_owned(), first["metadata"]["continue"].as_str().unwrap().to_owned()));
    let second = store.answer(&ask(Method::Get, "/api/v1/nodes", &query, Value::Null)).unwrap();
    assert_eq!((first["items"].as_array().unwrap().len(), second["items"].as_array().unwrap().len()), (2, 1));
    assert!(second["metadata"].get("continue").is_none());
}

#[test]
fn an_object_that_leaves_a_selection_is_deleted_for_its_watch() {
    let mut store = Store::default();
    let target = Target::parse("/api/v1/pods").unwrap();
    let one = Target::parse("/api/v1/namespaces/d/pods/a").unwrap();
    let fields = FieldSelector::parse("spec.nodeName=n1");
    for node in ["n1", "n1", "n2"] {
        store.seed(&one, json!({ "metadata": { "name": "a" }, "spec": { "nodeName": node } }), Timestamp::UNIX_EPOCH);
    }
    let events: Vec<_> = store.changes(&target, &fields, 0).unwrap().iter().map(|c| format!("{:?}", c.event)).collect();
    assert_eq!(events, ["Added", "Modified", "Deleted"]);
}

#[test]
fn paths_and_selectors_are_understood() {
    let rows = [
        ("/api/v1/namespaces/kube-system", ("namespaces", "", Some("kube-system"), None)),
        ("/api/v1/namespaces/d/pods/a/status", ("pods", "d", Some("a"), Some("status"))),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
            ("leases", "kube-node-lease", Some("n"), None),
        ),
        ("/api/v1/nodes/n/status", ("nodes", "", Some("n"), Some("status"))),
        ("/api/v1/pods", ("pods", "", None, None)),
    ];
    for (path, (resource, namespace, name, sub)) in rows {
        let target = Target::parse(path).unwrap();
        let found =
            (target.resource.as_str(), target.namespace.as_str(), target.name.as_deref(), target.sub.as_deref());
        assert_eq!(found, (resource, namespace, name, sub), "{path}");
    }
    assert_eq!(Target::parse("/healthz"), None);
    let fields = FieldSelector::parse("metadata.name=a,spec.clusterIP!=None");
    assert!(fields.takes(&json!({ "metadata": { "name": "a" }, "spec": {} })));
    assert!(!fields.takes(&json!({ "metadata": { "name": "a" }, "spec": { "clusterIP": "None" } })));
}
