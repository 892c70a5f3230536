//! Metrics as they cross the border.

use metrics::prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use crate::v1;

/// As they are said.
#[must_use]
pub fn said(families: &[MetricFamily]) -> v1::MetricsAnswer {
    let families = families.iter().filter_map(|family| {
        let kind = match family.get_field_type() {
            MetricType::COUNTER => v1::Kind::Counter,
            MetricType::GAUGE => v1::Kind::Gauge,
            MetricType::HISTOGRAM => v1::Kind::Histogram,
            // A node has none of them.
            MetricType::SUMMARY | MetricType::UNTYPED => return None,
        };
        Some(v1::Family {
            name: family.name().to_owned(),
            help: family.help().to_owned(),
            kind: kind.into(),
            series: family.get_metric().iter().map(|metric| said_series(kind, metric)).collect(),
        })
    });
    v1::MetricsAnswer { families: families.collect() }
}

fn said_series(kind: v1::Kind, metric: &Metric) -> v1::Series {
    let label = |l: &LabelPair| v1::Label { name: l.name().to_owned(), value: l.value().to_owned() };
    let labels = metric.get_label().iter().map(label).collect();
    let value = match kind {
        v1::Kind::Counter => metric.get_counter().get_value(),
        v1::Kind::Gauge => metric.get_gauge().get_value(),
        v1::Kind::Histogram | v1::Kind::Unspecified => 0.0,
    };
    let distribution = (kind == v1::Kind::Histogram).then(|| {
        let of = metric.get_histogram();
        let bucket = |b: &Bucket| v1::Bucket { upper_bound: b.upper_bound(), cumulative_count: b.cumulative_count() };
        v1::Distribution {
            count: of.get_sample_count(),
            sum: of.get_sample_sum(),
            buckets: of.get_bucket().iter().filter(|b| b.upper_bound().is_finite()).map(bucket).collect(),
        }
    });
    v1::Series { labels, value, distribution }
}

/// As they are heard. What is no family of any kind is left out; labels come by their names, as the node's own do.
#[must_use]
pub fn heard(answer: v1::MetricsAnswer) -> Vec<MetricFamily> {
    let families = answer.families.into_iter().filter_map(|said| {
        let (kind, field_type) = match said.kind() {
            kind @ v1::Kind::Counter => (kind, MetricType::COUNTER),
            kind @ v1::Kind::Gauge => (kind, MetricType::GAUGE),
            kind @ v1::Kind::Histogram => (kind, MetricType::HISTOGRAM),
            v1::Kind::Unspecified => return None,
        };
        let mut family = MetricFamily::default();
        family.set_name(said.name);
        family.set_help(said.help);
        family.set_field_type(field_type);
        family.set_metric(said.series.into_iter().map(|series| heard_series(kind, series)).collect());
        Some(family)
    });
    families.collect()
}

fn heard_series(kind: v1::Kind, series: v1::Series) -> Metric {
    let label = |v1::Label { name, value }| {
        let mut pair = LabelPair::default();
        pair.set_name(name);
        pair.set_value(value);
        pair
    };
    let mut labels: Vec<LabelPair> = series.labels.into_iter().map(label).collect();
    labels.sort_by(|a, b| a.name().cmp(b.name()));
    let mut metric = Metric::from_label(labels);
    match kind {
        v1::Kind::Counter => {
            let mut counter = Counter::default();
            counter.set_value(series.value);
            metric.set_counter(counter);
        }
        v1::Kind::Gauge | v1::Kind::Unspecified => {
            let mut gauge = Gauge::default();
            gauge.set_value(series.value);
            metric.set_gauge(gauge);
        }
        v1::Kind::Histogram => {
            let v1::Distribution { count, sum, buckets } = series.distribution.unwrap_or_default();
            let mut histogram = Histogram::default();
            histogram.set_sample_count(count);
            histogram.set_sample_sum(sum);
            let bucket = |said: v1::Bucket| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(said.upper_bound);
                bucket.set_cumulative_count(said.cumulative_count);
                bucket
            };
            histogram.set_bucket(buckets.into_iter().map(bucket).collect());
            metric.set_histogram(histogram);
        }
    }
    metric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_the_same_on_the_other_side() {
        metrics::declare();
        metrics::probes::TOTAL.with_label_values(&["Liveness", "failed", "c", "p", "ns", "u"]).inc();
        metrics::probes::DURATION.with_label_values(&["Liveness", "c", "p", "ns"]).observe(0.03);
        metrics::images::PULL_INTENTS.set(4);
        let all = [metrics::PROBES.gather(), metrics::MAIN.gather()].concat();
        assert!(all.iter().any(|f| f.name() == "prober_probe_duration_seconds" && !f.get_metric().is_empty()));
        let again = heard(said(&all));
        assert_eq!(format!("{again:?}"), format!("{all:?}"));
    }

    #[test]
    fn what_is_of_no_kind_is_left_out() {
        let family = v1::Family { name: "a".to_owned(), series: vec![v1::Series::default()], ..v1::Family::default() };
        assert!(heard(v1::MetricsAnswer { families: vec![family] }).is_empty());
    }
}
