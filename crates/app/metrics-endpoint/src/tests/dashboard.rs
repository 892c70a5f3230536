//! `config/grafana-bosun.json` asks for nothing that nobody tells.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::catalogue;

const DASHBOARD: &str = include_str!("../../../../../config/grafana-bosun.json");
/// What stands before a bracket in PromQL and is no metric.
const WORDS: [&str; 22] = [
    "sum",
    "max",
    "min",
    "avg",
    "rate",
    "increase",
    "by",
    "without",
    "histogram_quantile",
    "topk",
    "clamp_min",
    "on",
    "le",
    "group_left",
    "ignoring",
    "and",
    "or",
    "unless",
    "label_values",
    "changes",
    "time",
    "bool",
];

fn expressions(of: &Value, into: &mut Vec<String>) {
    match of {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "expr" || key == "query" || key == "definition" => {
                        into.push(text.clone())
                    }
                    other => expressions(other, into),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|v| expressions(v, into)),
        _ => {}
    }
}

/// Names outside of braces, brackets and label lists, with the labels that selectors and `by` name.
fn names(expr: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::new());
    let mut rest = expr;
    let mut of_labels = false;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || matches!(c, '{' | '}' | '"' | '[' | ')' | '$'))
    {
        rest = &rest[at..];
        let first = rest.as_bytes()[0];
        let len = match first {
            b'"' => rest[1..].find('"').unwrap() + 2,
            b'[' => rest.find(']').unwrap() + 1,
            b'{' | b'}' | b')' => {
                of_labels = first == b'{';
                1
            }
            b'$' => 1 + rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len() - 1),
            _ => {
                let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                let word = &rest[..len];
                if word == "by" || word == "without" || word == "label_values" {
                    of_labels = word != "label_values";
                } else if of_labels {
                    labels.insert(word.to_owned());
                } else if !WORDS.contains(&word) {
                    names.insert(word.to_owned());
                }
                len
            }
        };
        rest = &rest[len..];
    }
    (names, labels)
}

#[test]
fn the_reader_of_expressions_tells_metrics_from_labels() {
    let (n, l) = names("sum by (actor, le) (rate(a_total{group=~\"x|y\"}[5m])) / on(instance) b{c=\"$d\"}");
    assert_eq!(n.into_iter().collect::<Vec<_>>(), ["a_total", "b", "instance"]);
    assert_eq!(l.into_iter().collect::<Vec<_>>(), ["actor", "c", "group", "le"]);
}

#[test]
fn every_metric_and_label_of_the_dashboard_exists() {
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for family in catalogue() {
        let labels: BTreeSet<String> = family.labels.iter().map(|l| (*l).to_owned()).collect();
        for suffix in if family.kind == metrics::Kind::Histogram { &["_bucket", "_sum", "_count"][..] } else { &[""] } {
            known.insert(format!("{}{suffix}", family.name), labels.clone());
        }
    }
    let mut all = Vec::new();
    expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut all);
    // The choice of a data source is no expression.
    all.retain(|e| e != "prometheus");
    assert!(all.len() >= 12, "{all:?}");
    // Prometheus adds these.
    let everywhere = ["job", "instance", "le", "node"];
    for expr in &all {
        let (names, labels) = names(expr);
        let metrics: Vec<&String> = names.iter().filter(|n| !everywhere.contains(&n.as_str())).collect();
        assert!(!metrics.is_empty(), "{expr}");
        for name in &metrics {
            assert!(known.contains_key(*name), "nobody tells {name}: {expr}");
        }
        for label in labels.iter().filter(|l| !everywhere.contains(&l.as_str())) {
            assert!(metrics.iter().any(|m| known[*m].contains(label)), "no label {label}: {expr}");
        }
    }
}
