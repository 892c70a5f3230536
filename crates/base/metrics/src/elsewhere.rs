//! What managers in processes of their own have counted: it is told with what the node counts itself.
//!
//! A scrape asks each of them and gives the answer to [`take`], which replaces the one before. Counters never fall by that: what a
//! process had counted when it was last asked stays when it has gone, but for series that end with what they are about. What it counted
//! after that is lost, as with any process that ends between two scrapes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::proto::{Bucket, Counter, Histogram, Metric, MetricFamily, MetricType};

use crate::{Declared, Families, Kind, MAIN, PROBES, SLIS};

/// Families of the node into which a manager counts, by its role. It may have any number of its own beside them.
pub const COUNTED: &[(&str, &[&str])] = &[
    (
        "ImageManager",
        &[
            "bosun_pod_start_phase_seconds",
            "kubelet_credential_provider_plugin_duration",
            "kubelet_credential_provider_plugin_errors_total",
            "kubelet_image_garbage_collected_total",
            "kubelet_image_manager_ensure_image_requests_total",
            "kubelet_image_pull_duration_seconds",
            "kubelet_imagemanager_image_mustpull_checks_total",
            "kubelet_imagemanager_ondisk_pulledrecords",
            "kubelet_imagemanager_ondisk_pullintents",
            "kubelet_runtime_operations_duration_seconds",
            "kubelet_runtime_operations_errors_total",
            "kubelet_runtime_operations_total",
        ],
    ),
    ("ProbeManager", &["prober_probe_duration_seconds", "prober_probe_total"]),
    ("StatusManager", &[]),
    (
        "VolumeManager",
        &[
            "bosun_pod_start_phase_seconds",
            "csi_operations_seconds",
            "force_cleaned_failed_volume_operation_errors_total",
            "force_cleaned_failed_volume_operations_total",
            "kubelet_orphan_pod_cleaned_volumes",
            "kubelet_orphan_pod_cleaned_volumes_errors",
            "reconstruct_volume_operations_errors_total",
            "reconstruct_volume_operations_total",
            "storage_operation_duration_seconds",
            "volume_manager_selinux_pod_context_mismatch_errors_total",
            "volume_manager_selinux_pod_context_mismatch_warnings_total",
            "volume_manager_selinux_volume_context_mismatch_errors_total",
            "volume_manager_selinux_volume_context_mismatch_warnings_total",
            "volume_manager_selinux_volumes_admitted_total",
            "volume_operation_total_seconds",
        ],
    ),
];

/// Families of a program's own that are told, and series of all that it says: what is more is refused.
const MOST_FAMILIES: usize = 200;
const MOST_SERIES: usize = 20_000;

static ALL: Mutex<Elsewhere> = Mutex::new(Elsewhere(BTreeMap::new()));

/// By role.
struct Elsewhere(BTreeMap<&'static str, Counts>);

/// What came of one role's processes.
#[derive(Default)]
struct Counts {
    /// The process that was asked last.
    life: u64,
    /// What that one says of the node's families.
    now: Vec<MetricFamily>,
    /// And of families of its own.
    own: Vec<MetricFamily>,
    /// What those before it said last, of counters that do not end.
    kept: Vec<MetricFamily>,
}

fn all() -> MutexGuard<'static, Elsewhere> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Families of all registries that something is counted into.
fn declared() -> BTreeMap<&'static str, Declared> {
    [&*MAIN, &*PROBES, &*SLIS].into_iter().flat_map(|all| all.declared()).map(|d| (d.name, d)).collect()
}

/// What the process `life` that serves `role` has counted so far. Answers how many of its families were refused: such as the role
/// does not count, of another form than the node's, malformed or too many.
pub fn take(role: &'static str, life: u64, families: Vec<MetricFamily>) -> usize {
    let declared = declared();
    all().take(&declared, (role, life), families)
}

/// Nobody elsewhere serves `role` now.
pub fn is_away(role: &'static str) {
    all().is_away(role);
}

/// Families that only programs elsewhere have, by name. Of several with one name one is told.
#[must_use]
pub fn own() -> Vec<MetricFamily> {
    all().own()
}

/// Readings of now of these families of the node, by name, with what is counted elsewhere of them.
#[must_use]
pub fn gathered(families: &Families) -> Vec<MetricFamily> {
    let (here, all) = (families.gather(), all());
    // On most nodes nobody was ever elsewhere.
    if all.0.is_empty() { here } else { all.join(here, &families.declared()) }
}

impl Elsewhere {
    fn take(
        &mut self,
        declared: &BTreeMap<&'static str, Declared>,
        (role, life): (&'static str, u64),
        families: Vec<MetricFamily>,
    ) -> usize {
        let said = families.len();
        let counted = COUNTED.iter().find(|(name, _)| *name == role).map_or(&[][..], |(_, families)| families);
        let (mut names, mut series) = (BTreeSet::new(), 0);
        let good = families.into_iter().filter(|family| {
            series += family.get_metric().len();
            let form = match declared.get(family.name()) {
                Some(declared) => counted.contains(&declared.name) && is_of_form(family, declared),
                None => is_well_formed(family),
            };
            form && series <= MOST_SERIES && names.insert(family.name().to_owned())
        });
        let (now, mut own): (Vec<_>, Vec<_>) = good.partition(|family| declared.contains_key(family.name()));
        own.truncate(MOST_FAMILIES);
        let taken = now.len() + own.len();
        let counts = self.0.entry(role).or_default();
        if counts.life != life {
            counts.retire();
        }
        *counts = Counts { life, now, own, kept: std::mem::take(&mut counts.kept) };
        said - taken
    }

    fn is_away(&mut self, role: &'static str) {
        if let Some(counts) = self.0.get_mut(role) {
            counts.retire();
        }
    }

    fn own(&self) -> Vec<MetricFamily> {
        let mut all: Vec<MetricFamily> = self.0.values().flat_map(|counts| counts.own.iter().cloned()).collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all.dedup_by(|a, b| a.name() == b.name());
        all
    }

    fn join(&self, mut gathered: Vec<MetricFamily>, declared: &[Declared]) -> Vec<MetricFamily> {
        let is_mine = |family: &&MetricFamily| declared.iter().any(|d| d.name == family.name());
        for counts in self.0.values() {
            for family in counts.kept.iter().chain(&counts.now).filter(is_mine) {
                add(&mut gathered, family);
            }
        }
        gathered.sort_by(|a, b| a.name().cmp(b.name()));
        gathered
    }
}

impl Counts {
    /// The process is gone. What ends with the thing that it is about (probes) goes with it, as do readings.
    fn retire(&mut self) {
        let ends = PROBES.declared();
        for family in std::mem::take(&mut self.now) {
            if family.get_field_type() != MetricType::GAUGE && !ends.iter().any(|d| d.name == family.name()) {
                add(&mut self.kept, &family);
            }
        }
        self.own.clear();
        self.life = 0;
    }
}

fn add(all: &mut Vec<MetricFamily>, more: &MetricFamily) {
    let Some(family) = all.iter_mut().find(|family| family.name() == more.name()) else {
        all.push(more.clone());
        return;
    };
    let kind = family.get_field_type();
    for metric in more.get_metric() {
        let same = |m: &&mut Metric| m.get_label() == metric.get_label();
        match family.mut_metric().iter_mut().find(same) {
            Some(mine) => add_to(mine, metric, kind),
            None => family.mut_metric().push(metric.clone()),
        }
    }
}

/// Counters and observations add up; of a reading that of the manager who serves is true.
fn add_to(mine: &mut Metric, other: &Metric, kind: MetricType) {
    match kind {
        MetricType::COUNTER => {
            let mut sum = Counter::default();
            sum.set_value(mine.get_counter().get_value() + other.get_counter().get_value());
            mine.set_counter(sum);
        }
        MetricType::HISTOGRAM => {
            let (a, b) = (mine.get_histogram(), other.get_histogram());
            let mut sum = Histogram::default();
            sum.set_sample_count(a.get_sample_count().saturating_add(b.get_sample_count()));
            sum.set_sample_sum(a.get_sample_sum() + b.get_sample_sum());
            let buckets = a.get_bucket().iter().zip(b.get_bucket()).map(|(a, b)| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(a.upper_bound());
                bucket.set_cumulative_count(a.cumulative_count().saturating_add(b.cumulative_count()));
                bucket
            });
            sum.set_bucket(buckets.collect());
            mine.set_histogram(sum);
        }
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => mine.set_gauge(other.get_gauge().clone()),
    }
}

/// Whether its series are such as the node's own are: kind, names of labels, bounds, and numbers that one can have counted.
fn is_of_form(family: &MetricFamily, declared: &Declared) -> bool {
    let kind = match declared.kind {
        Kind::Counter => MetricType::COUNTER,
        Kind::Gauge => MetricType::GAUGE,
        Kind::Histogram => MetricType::HISTOGRAM,
    };
    let mut labels = declared.labels.to_vec();
    labels.sort_unstable();
    family.get_field_type() == kind
        && family.get_metric().iter().all(|metric| {
            let bounds = metric.get_histogram().get_bucket().iter().map(Bucket::upper_bound);
            metric.get_label().iter().map(|l| l.name()).eq(labels.iter().copied())
                && (kind != MetricType::HISTOGRAM || bounds.eq(declared.buckets.iter().copied()))
                && is_counted(metric, kind)
        })
}

/// Whether a family of somebody's own can be told at all.
fn is_well_formed(family: &MetricFamily) -> bool {
    let kind = family.get_field_type();
    is_name(family.name(), true)
        && family.help().len() <= 1024
        && family.get_metric().iter().all(|metric| {
            let labels = metric.get_label();
            let bounds: Vec<f64> = metric.get_histogram().get_bucket().iter().map(Bucket::upper_bound).collect();
            labels.len() <= 16
                && labels.iter().all(|l| is_name(l.name(), false) && l.name() != "le" && l.value().len() <= 1024)
                && labels.windows(2).all(|two| two[0].name() != two[1].name())
                && bounds.windows(2).all(|two| two[0] < two[1])
                && is_counted(metric, kind)
        })
}

/// Of counters and observations: no number that nobody counts.
fn is_counted(metric: &Metric, kind: MetricType) -> bool {
    let counts = metric.get_histogram();
    let cumulated: Vec<u64> = counts.get_bucket().iter().map(Bucket::cumulative_count).collect();
    match kind {
        MetricType::COUNTER => metric.get_counter().get_value().is_finite() && metric.get_counter().get_value() >= 0.0,
        MetricType::HISTOGRAM => {
            cumulated.is_sorted()
                && cumulated.last().is_none_or(|last| *last <= counts.get_sample_count())
                && counts.get_sample_sum().is_finite()
        }
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => true,
    }
}

/// As Prometheus has names: of families colons may be in them.
fn is_name(name: &str, of_family: bool) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || (of_family && c == ':');
    name.len() <= 200 && name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests;
