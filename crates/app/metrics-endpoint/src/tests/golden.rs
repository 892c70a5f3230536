//! Names, kinds, labels and buckets against a kubelet 1.36.2; `differences.tsv` says why where they differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue;

const GOLDEN: &str = include_str!("../../../../../tests/golden/kubelet-1.36.2/_node/metrics.names.tsv");
const DIFFERENCES: &str = include_str!("differences.tsv");

/// Kind, labels, buckets.
type Shape = (String, BTreeSet<String>, Vec<f64>);

fn golden() -> BTreeMap<String, Shape> {
    let rows = GOLDEN.lines().skip(1).map(|line| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        let (name, kind, labels, buckets) = (cell(), cell(), cell(), cell());
        let labels = labels.split(',').filter(|l| !l.is_empty()).map(str::to_owned).collect();
        // Gauges have words there, which are values of a label.
        let bounds = buckets.split(' ').filter(|b| kind == "histogram" && !b.is_empty() && *b != "+Inf");
        (name.to_owned(), (kind.to_owned(), labels, bounds.map(|b| b.parse().unwrap()).collect()))
    });
    rows.collect()
}

fn ours() -> BTreeMap<String, Shape> {
    let shape = |d: &metrics::Declared| {
        (d.kind.name().to_owned(), d.labels.iter().map(|l| (*l).to_owned()).collect(), d.buckets.clone())
    };
    catalogue().iter().map(|d| (d.name.to_owned(), shape(d))).collect()
}

fn same(a: &Shape, b: &Shape) -> bool {
    let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-9 * x.abs();
    a.0 == b.0 && a.1 == b.1 && a.2.len() == b.2.len() && a.2.iter().zip(&b.2).all(near)
}

/// `missing`, `extra` or `differs`, by name.
fn found() -> BTreeMap<String, &'static str> {
    let (golden, ours) = (golden(), ours());
    let names: BTreeSet<&String> = golden.keys().chain(ours.keys()).collect();
    let what = |name: &String| match (golden.get(name), ours.get(name)) {
        (Some(_), None) => Some("missing"),
        (None, Some(_)) => Some("extra"),
        (Some(theirs), Some(own)) if !same(theirs, own) => Some("differs"),
        _ => None,
    };
    names.into_iter().filter_map(|name| Some((name.clone(), what(name)?))).collect()
}

/// (what, name or prefix with `*`, reason).
fn listed() -> Vec<(&'static str, &'static str, &'static str)> {
    let rows = DIFFERENCES.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        assert!(cells.len() == 3 && !cells[2].is_empty(), "{line:?}: what, name, reason");
        (cells[0], cells[1], cells[2])
    });
    rows.collect()
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

#[test]
fn every_difference_from_a_kubelet_is_listed_with_its_reason_and_every_listed_one_is_there() {
    let (found, listed) = (found(), listed());
    let unlisted: Vec<_> =
        found.iter().filter(|(name, what)| !listed.iter().any(|(w, p, _)| w == *what && fits(p, name))).collect();
    assert!(unlisted.is_empty(), "not in differences.tsv: {unlisted:#?}");
    let gone: Vec<_> =
        listed.iter().filter(|(what, p, _)| !found.iter().any(|(name, w)| w == what && fits(p, name))).collect();
    assert!(gone.is_empty(), "listed, and not so: {gone:#?}");
}

#[test]
fn two_thirds_and_more_of_what_a_kubelet_tells_of_itself_is_told() {
    let golden = golden();
    let own = |prefix: &str| golden.keys().filter(|n| n.starts_with(prefix)).count();
    let missing = found().iter().filter(|(n, what)| **what == "missing" && n.starts_with("kubelet_")).count();
    assert!(missing * 3 < own("kubelet_"), "{missing} of {}", own("kubelet_"));
}
