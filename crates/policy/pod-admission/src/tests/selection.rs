//! Node name, selector and affinity.

use super::*;
use model::core::{Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

fn requirement(key: &str, operator: &str, values: &[&str]) -> NodeSelectorRequirement {
    let values = (!values.is_empty()).then(|| values.iter().map(|v| (*v).to_owned()).collect());
    NodeSelectorRequirement { key: key.into(), operator: operator.into(), values }
}

fn labels(all: Vec<NodeSelectorRequirement>) -> NodeSelectorTerm {
    NodeSelectorTerm { match_expressions: Some(all), match_fields: None }
}

fn fields(all: Vec<NodeSelectorRequirement>) -> NodeSelectorTerm {
    NodeSelectorTerm { match_expressions: None, match_fields: Some(all) }
}

fn selecting(terms: Vec<NodeSelectorTerm>) -> Pod {
    pod(|p| {
        let required = Some(NodeSelector { node_selector_terms: terms });
        let node_affinity =
            NodeAffinity { required_during_scheduling_ignored_during_execution: required, ..Default::default() };
        spec(p).affinity = Some(Affinity { node_affinity: Some(node_affinity), ..Default::default() });
    })
}

#[test]
fn every_operator_of_node_affinity() {
    let one = |key: &str, operator: &str, values: &[&str]| vec![labels(vec![requirement(key, operator, values)])];
    let field = |operator: &str, values: &[&str]| vec![fields(vec![requirement("metadata.name", operator, values)])];
    let table: Vec<(&str, Vec<NodeSelectorTerm>, bool)> = vec![
        ("In, listed", one("disk", "In", &["hdd", "ssd"]), true),
        ("In, not listed", one("disk", "In", &["hdd"]), false),
        ("In, no such label", one("zone", "In", &["a"]), false),
        ("NotIn, listed", one("disk", "NotIn", &["ssd"]), false),
        ("NotIn, not listed", one("disk", "NotIn", &["hdd"]), true),
        ("NotIn, no such label", one("zone", "NotIn", &["a"]), true),
        ("NotIn without values is broken", one("disk", "NotIn", &[]), false),
        ("Exists", one("disk", "Exists", &[]), true),
        ("Exists, no such label", one("zone", "Exists", &[]), false),
        ("Exists with values is broken", one("disk", "Exists", &["ssd"]), false),
        ("DoesNotExist", one("zone", "DoesNotExist", &[]), true),
        ("DoesNotExist, but it does", one("disk", "DoesNotExist", &[]), false),
        ("Gt, above", one("cores", "Gt", &["7"]), true),
        ("Gt, equal", one("cores", "Gt", &["8"]), false),
        ("Lt, below", one("cores", "Lt", &["9"]), true),
        ("Lt, equal", one("cores", "Lt", &["8"]), false),
        ("Gt of a label that is no number", one("disk", "Gt", &["1"]), false),
        ("Gt with two bounds is broken", one("cores", "Gt", &["1", "2"]), false),
        ("unknown operator", one("disk", "Like", &["s"]), false),
        ("name In", field("In", &["node-a"]), true),
        ("name In, another", field("In", &["node-b"]), false),
        ("name NotIn", field("NotIn", &["node-b"]), true),
        ("name NotIn, this one", field("NotIn", &["node-a"]), false),
        ("two names are broken", field("In", &["node-a", "node-b"]), false),
        ("names know no Exists", field("Exists", &["node-a"]), false),
        ("no term at all selects nothing", vec![], false),
        ("an empty term selects nothing", vec![NodeSelectorTerm::default()], false),
        (
            "all of a term must hold",
            vec![labels(vec![requirement("disk", "Exists", &[]), requirement("zone", "Exists", &[])])],
            false,
        ),
        (
            "one term is enough",
            vec![labels(vec![requirement("zone", "Exists", &[])]), labels(vec![requirement("disk", "Exists", &[])])],
            true,
        ),
    ];
    for (what, terms, fits) in table {
        assert_eq!(reason(&selecting(terms), &[]), if fits { "admitted" } else { "NodeAffinity" }, "{what}");
    }
}

#[test]
fn selector_and_affinity_must_both_fit() {
    let mut p = selecting(vec![labels(vec![requirement("disk", "Exists", &[])])]);
    spec(&mut p).node_selector = Some([("disk".into(), "hdd".into())].into());
    assert_eq!(reason(&p, &[]), "NodeAffinity");
}

#[test]
fn only_affinity_alone_asks_for_a_fresh_node() {
    let astray = |edit: fn(&mut PodSpec)| {
        let mut p = pod(|p| spec(p).node_selector = Some([("no".into(), "such".into())].into()));
        edit(spec(&mut p));
        admit(&p, [].iter(), &node()).unwrap_err()
    };
    let alone = astray(|_| ());
    assert_eq!(alone.message, "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
    assert!(alone.with_fresh_node);
    assert!(!astray(|s| s.node_name = Some("node-b".into())).with_fresh_node);
}

#[test]
fn a_pod_for_another_node_is_refused() {
    let p = pod(|p| spec(p).node_name = Some("node-b".into()));
    let r = admit(&p, [].iter(), &node()).unwrap_err();
    assert_eq!((r.reason.as_str(), r.with_fresh_node), ("NodeName", false));
    assert_eq!(r.message, "Predicate NodeName failed: node(s) didn't match the requested node name");
    assert_eq!(reason(&pod(|p| spec(p).node_name = Some("node-a".into())), &[]), "admitted");
}
