//! Shapes beside those that a kubelet 1.36.2 gave (`tests/golden`, cgroup v1): paths and types of the summary, names, types,
//! labels and time stamps of the metrics. Each difference stands in a table with its reason, as in docs/compat.md; one that
//! does not stand there fails, and so does one that is no longer seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fakes::stats::Cgroups;
use serde_json::Value;

use super::scene::Scene;

fn golden(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/kubelet-1.36.2/_node");
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Asks twice: rates and volumes are there the second time.
fn second_answer(cgroups: Cgroups, path: &'static str) -> String {
    actor::testing::run(1, move |kernel| async move {
        let scene = Scene::new(&kernel, cgroups, 2);
        scene.get(path).await;
        scene.pass(Duration::from_secs(20)).await;
        scene.get(path).await
    })
}

/// What a difference is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
enum Side {
    /// The kubelet has it, we do not.
    Missing,
    /// We have it, the kubelet did not.
    Extra,
}
use Side::{Extra, Missing};

/// Compares two sets; `listed` says which differences are meant: what begins with the text.
fn compare(of: &str, theirs: &BTreeSet<String>, ours: &BTreeSet<String>, listed: &[(Side, &str)]) {
    let missing = theirs.difference(ours).map(|p| (Missing, p));
    let extra = ours.difference(theirs).map(|p| (Extra, p));
    let mut seen = BTreeSet::new();
    let mut unlisted = Vec::new();
    for (side, what) in missing.chain(extra) {
        match listed.iter().find(|(s, prefix)| *s == side && what.starts_with(prefix)) {
            Some(row) => _ = seen.insert(*row),
            None => unlisted.push((side, what)),
        }
    }
    let stale: Vec<_> = listed.iter().filter(|row| !seen.contains(*row)).collect();
    assert!(unlisted.is_empty() && stale.is_empty(), "{of}: not listed {unlisted:#?}, listed but not seen {stale:#?}");
}

fn shape(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(map) => return map.iter().for_each(|(k, v)| shape(v, &format!("{path}.{k}"), out)),
        Value::Array(list) => {
            list.iter().for_each(|v| shape(v, &format!("{path}[]"), out));
            "list"
        }
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    out.insert(format!("{path} {kind}"));
}

/// On both kinds of cgroups.
const SUMMARY: &[(Side, &str)] = &[
    // The recording was made 10 s after the pods were: the kubelet's own numbers of sandboxes were not there yet.
    (Extra, ".pods[].network"),
    (Extra, ".pods[].process_stats"),
    // The recorded pods have no volumes that are measured.
    (Extra, ".pods[].volume"),
    // Pods of the files have a limit of swap.
    (Extra, ".pods[].swap.swapAvailableBytes"),
    (Extra, ".node.systemContainers[].swap.swapAvailableBytes"),
];

/// v1 has no pressure of single cgroups: the kubelet writes zeros that nobody measured.
const SUMMARY_V1: &[(Side, &str)] = &[
    (Missing, ".node.systemContainers[].cpu.psi"),
    (Missing, ".node.systemContainers[].memory.psi"),
    (Missing, ".node.systemContainers[].io"),
    (Missing, ".pods[].cpu.psi"),
    (Missing, ".pods[].memory.psi"),
    (Missing, ".pods[].io"),
    (Missing, ".pods[].containers[].io"),
];

/// v2 has it of containers as well.
const SUMMARY_V2: &[(Side, &str)] = &[
    (Extra, ".pods[].containers[].cpu.psi"),
    (Extra, ".pods[].containers[].memory.psi"),
    (Extra, ".pods[].containers[].io.psi"),
];

#[test]
fn the_summary_has_the_shape_that_a_kubelet_gives_it() {
    let mut theirs = BTreeSet::new();
    shape(&serde_json::from_str(&golden("stats-summary.json")).unwrap(), "", &mut theirs);
    for (cgroups, listed) in [(Cgroups::V1, SUMMARY_V1), (Cgroups::V2, SUMMARY_V2)] {
        let mut ours = BTreeSet::new();
        let text = second_answer(cgroups, "/stats/summary");
        shape(&serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")), "", &mut ours);
        compare(&format!("{cgroups:?}"), &theirs, &ours, &[SUMMARY, listed].concat());
    }
}

/// `name type labels stamped` of each family of a text.
fn families(text: &str) -> BTreeSet<String> {
    let mut kinds = BTreeMap::new();
    let mut labels: BTreeMap<&str, (BTreeSet<&str>, bool)> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            kinds.extend(rest.split_once(' '));
            continue;
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (series, value) = line.split_once("} ").or(line.split_once(' ')).unwrap();
        let (name, list) = series.split_once('{').unwrap_or((series, ""));
        let row = labels.entry(name).or_default();
        row.0.extend(list.split("\",").filter_map(|l| Some(l.split_once("=\"")?.0)));
        row.1 = value.contains(' ');
    }
    let line = |(name, (labels, stamped)): (&str, (BTreeSet<&str>, bool))| {
        let labels: Vec<&str> = labels.into_iter().collect();
        format!("{name} {} {} {}", kinds[name], labels.join(","), if stamped { "yes" } else { "no" })
    };
    labels.into_iter().map(line).collect()
}

#[test]
fn resource_metrics_are_those_of_a_kubelet() {
    let golden = golden("metrics_resource.names.tsv");
    let theirs = golden.lines().skip(1).map(|l| l.replace('\t', " ")).collect();
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        let ours = families(&second_answer(cgroups, "/metrics/resource"));
        compare(&format!("{cgroups:?}"), &theirs, &ours, &[]);
    }
}

const CADVISOR: &[(Side, &str)] = &[
    // Needs a reader of scheduler load by netlink that the kubelet does not start: its rows are zeros.
    (Missing, "container_cpu_load_average_10s "),
    (Missing, "container_cpu_load_d_average_10s "),
    (Missing, "container_tasks_state "),
    // docker's health checks; a kubelet has none.
    (Missing, "container_health_state "),
    // Topology of s390 and persistent memory: no file of this kernel tells of them.
    (Missing, "machine_cpu_books "),
    (Missing, "machine_cpu_drawers "),
    (Missing, "machine_nvm_"),
    // The recorded machine counted no traffic of disks per cgroup.
    (Extra, "container_blkio_device_usage_total "),
    (Extra, "container_fs_reads_bytes_total "),
    (Extra, "container_fs_writes_bytes_total "),
    // Of the machine on v1, of every cgroup on v2; the kubelet shows none on v1.
    (Extra, "container_pressure_"),
];

#[test]
fn cadvisor_metrics_are_those_of_a_kubelet() {
    let golden = golden("metrics_cadvisor.names.tsv");
    let cut = |line: &str| line.rsplit_once(' ').unwrap().0.trim_end().to_owned();
    let theirs = golden.lines().skip(1).map(|l| l.trim_end().replace('\t', " ").trim_end().to_owned()).collect();
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        let text = second_answer(cgroups, "/metrics/cadvisor");
        let families = families(&text);
        let ours = families.iter().map(|f| cut(f)).collect();
        compare(&format!("{cgroups:?}"), &theirs, &ours, CADVISOR);
        let unstamped: Vec<_> = families.iter().filter(|f| f.ends_with(" no")).map(|f| f.split(' ').next()).collect();
        let without = ["cadvisor_version_info", "container_scrape_error", "machine_scrape_error"].map(Some);
        assert_eq!(unstamped, without);
    }
}
