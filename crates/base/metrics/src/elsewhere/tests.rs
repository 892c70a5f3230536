use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts};

use super::*;

const PROBE: &str = "ProbeManager";
const IMAGE: &str = "ImageManager";
const MUST_PULL: &str = "kubelet_imagemanager_image_mustpull_checks_total";
const INTENTS: &str = "kubelet_imagemanager_ondisk_pullintents";
const PULLS: &str = "kubelet_image_pull_duration_seconds";
const PROBES_MADE: &str = "prober_probe_total";

fn counter(name: &str, labels: &[(&str, &str)], count: u64) -> MetricFamily {
    let (names, values): (Vec<&str>, Vec<&str>) = labels.iter().copied().unzip();
    let family = IntCounterVec::new(Opts::new(name, "help"), &names).unwrap();
    family.with_label_values(&values).inc_by(count);
    family.collect().remove(0)
}

fn checks(count: u64) -> MetricFamily {
    counter(MUST_PULL, &[("result", "error")], count)
}

fn gauge(name: &str, value: i64) -> MetricFamily {
    let family = IntGauge::with_opts(Opts::new(name, "help")).unwrap();
    family.set(value);
    family.collect().remove(0)
}

fn pulls(seconds: &[f64], buckets: &[f64]) -> MetricFamily {
    let opts = HistogramOpts::new(PULLS, "help").buckets(buckets.to_vec());
    let family = HistogramVec::new(opts, &["image_size_in_bytes"]).unwrap();
    seconds.iter().for_each(|s| family.with_label_values(&["0-10MB"]).observe(*s));
    family.collect().remove(0)
}

fn probes(count: u64) -> MetricFamily {
    let labels = [
        ("probe_type", "Liveness"),
        ("result", "failed"),
        ("container", "c"),
        ("pod", "p"),
        ("namespace", "ns"),
        ("pod_uid", "u"),
    ];
    counter(PROBES_MADE, &labels, count)
}

struct Scene(Elsewhere, BTreeMap<&'static str, Declared>);

impl Scene {
    fn new() -> Self {
        crate::declare();
        Scene(Elsewhere(BTreeMap::new()), declared())
    }

    /// Answers how many were refused.
    fn take(&mut self, of: (&'static str, u64), families: &[MetricFamily]) -> usize {
        self.0.take(&self.1, of, families.to_vec())
    }

    /// What is told of a family beside what the node has counted: a number, or a sum and a count.
    fn told(&self, name: &str, local: &[MetricFamily]) -> Option<(f64, u64)> {
        let declared: Vec<Declared> = self.1.values().cloned().collect();
        let all = self.0.join(local.to_vec(), &declared);
        let family = all.iter().find(|family| family.name() == name)?;
        let [metric] = family.get_metric() else { panic!("{family:?}") };
        Some(match family.get_field_type() {
            MetricType::COUNTER => (metric.get_counter().get_value(), 0),
            MetricType::GAUGE => (metric.get_gauge().get_value(), 0),
            _ => (metric.get_histogram().get_sample_sum(), metric.get_histogram().get_sample_count()),
        })
    }
}

#[test]
fn a_counter_never_falls_whoever_serves() {
    let mut scene = Scene::new();
    let local = [checks(3)];
    for (step, of, count, told) in [
        ("another process counts", Some(7), 2, 5.0),
        ("it counts more", Some(7), 4, 7.0),
        ("it was asked by two scrapes at once", Some(7), 4, 7.0),
        ("another one in its place", Some(8), 1, 8.0),
        ("nobody elsewhere", None, 0, 8.0),
        ("the first one again, anew", Some(9), 5, 13.0),
    ] {
        match of {
            Some(life) => assert_eq!(scene.take((IMAGE, life), &[checks(count)]), 0, "{step}"),
            None => scene.0.is_away(IMAGE),
        }
        assert_eq!(scene.told(MUST_PULL, &local), Some((told, 0)), "{step}");
    }
}

#[test]
fn readings_are_of_who_serves_and_what_is_about_a_pod_goes_with_its_process() {
    let mut scene = Scene::new();
    scene.take((IMAGE, 1), &[gauge(INTENTS, 5)]);
    scene.take((PROBE, 1), &[probes(6)]);
    assert_eq!(scene.told(INTENTS, &[gauge(INTENTS, 2)]), Some((5.0, 0)));
    assert_eq!(scene.told(PROBES_MADE, &[]), Some((6.0, 0)));
    scene.0.is_away(IMAGE);
    scene.0.is_away(PROBE);
    assert_eq!(scene.told(INTENTS, &[gauge(INTENTS, 2)]), Some((2.0, 0)));
    assert_eq!(scene.told(PROBES_MADE, &[]), None);
}

#[test]
fn observations_add_up_bucket_by_bucket() {
    let mut scene = Scene::new();
    let bounds = scene.1[PULLS].buckets.clone();
    scene.take((IMAGE, 1), &[pulls(&[2.0, 2.0, 50.0], &bounds)]);
    assert_eq!(scene.told(PULLS, &[pulls(&[0.5], &bounds)]), Some((54.5, 4)));
    let declared: Vec<Declared> = scene.1.values().cloned().collect();
    let all = scene.0.join(vec![pulls(&[0.5], &bounds)], &declared);
    let histogram = all[0].get_metric()[0].get_histogram();
    let counts: Vec<u64> = histogram.get_bucket().iter().take(6).map(Bucket::cumulative_count).collect();
    assert_eq!(counts, [1, 3, 3, 3, 3, 4]);
}

#[test]
fn a_process_counts_what_its_role_counts_in_the_nodes_form_and_what_is_its_own() {
    let mut negative = checks(1);
    let mut less = Counter::default();
    less.set_value(-1.0);
    negative.mut_metric()[0].set_counter(less);
    let mut named = counter("acme_total", &[("a", "b")], 1);
    named.set_name("acme total".to_owned());
    let mut scene = Scene::new();
    for (what, role, family, refused) in [
        ("its role's", IMAGE, checks(1), 0),
        ("its own", IMAGE, counter("acme_total", &[("a", "b")], 1), 0),
        ("another role's", PROBE, checks(1), 1),
        ("nobody's elsewhere", IMAGE, counter("kubelet_started_pods_total", &[], 1), 1),
        ("another kind", IMAGE, gauge(MUST_PULL, 1), 1),
        ("other labels", IMAGE, counter(MUST_PULL, &[("why", "error")], 1), 1),
        ("other buckets", IMAGE, pulls(&[1.0], &[1.0, 2.0]), 1),
        ("less than nothing", IMAGE, negative, 1),
        ("no name of a family", IMAGE, named, 1),
        ("a label of histograms", IMAGE, counter("acme_total", &[("le", "1")], 1), 1),
        ("a long value", IMAGE, counter("acme_total", &[("a", &"x".repeat(2000))], 1), 1),
    ] {
        assert_eq!(scene.take((role, 1), &[family]), refused, "{what}");
    }
    assert_eq!(scene.take((IMAGE, 1), &[checks(1), checks(2)]), 1, "one name twice");
    let many: Vec<_> = (0..300).map(|n| counter(&format!("acme_{n}_total"), &[], 1)).collect();
    assert_eq!(scene.take((IMAGE, 1), &many), 100);
    assert_eq!(scene.0.own().len(), MOST_FAMILIES);
    scene.0.is_away(IMAGE);
    assert!(scene.0.own().is_empty());
}

#[test]
fn what_roles_count_are_families_of_the_node() {
    crate::declare();
    let declared = declared();
    for (role, families) in COUNTED {
        assert!(families.is_sorted(), "{role}");
        for family in *families {
            assert!(declared.contains_key(family), "{role}: {family}");
        }
    }
}

#[test]
fn a_family_of_a_managers_file_is_one_that_it_counts_or_has_a_reason_not_to_be() {
    crate::declare();
    let elsewhere = [
        // Counted by workers, which mount them.
        "kubelet_image_volume_mounted_errors_total",
        "kubelet_image_volume_mounted_succeed_total",
        "kubelet_image_volume_requested_total",
        // Counted by StatsManager.
        "kubelet_volume_metric_collection_duration_seconds",
    ];
    for (role, file) in [
        (PROBE, include_str!("../probes.rs")),
        (IMAGE, include_str!("../images.rs")),
        (IMAGE, include_str!("../credentials.rs")),
        ("VolumeManager", include_str!("../volumes.rs")),
    ] {
        let counted = COUNTED.iter().find(|(name, _)| *name == role).unwrap().1;
        let declared = declared();
        let of_file: Vec<&str> = declared.into_keys().filter(|name| file.contains(&format!("\"{name}\""))).collect();
        assert!(of_file.len() > 1, "{role}: {of_file:?}");
        for family in of_file {
            assert!(counted.contains(&family) != elsewhere.contains(&family), "{role}: {family}");
        }
    }
}
