//! Prometheus text, version 0.0.4.

use metrics::prometheus::proto::{Metric, MetricFamily, MetricType};

use super::{escape, go_float, sample};

pub(super) fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::with_capacity(64 * 1024);
    for family in families {
        let name = family.name();
        let kind = match family.get_field_type() {
            MetricType::COUNTER => "counter",
            MetricType::GAUGE => "gauge",
            MetricType::HISTOGRAM => "histogram",
            MetricType::SUMMARY => "summary",
            MetricType::UNTYPED => "untyped",
        };
        out.push_str("# HELP ");
        out.push_str(name);
        out.push(' ');
        escape(&mut out, family.help(), false);
        out.push_str("\n# TYPE ");
        out.push_str(name);
        out.push(' ');
        out.push_str(kind);
        out.push('\n');
        for metric in family.get_metric() {
            series(&mut out, name, family.get_field_type(), metric);
        }
    }
    out
}

fn series(out: &mut String, name: &str, kind: MetricType, metric: &Metric) {
    let labels = metric.get_label();
    let mut line = |suffix: &str, more: Option<(&str, &str)>, value: f64| {
        sample(out, [name, suffix], labels, more);
        go_float(out, value);
        out.push('\n');
    };
    match kind {
        MetricType::COUNTER => line("", None, metric.get_counter().get_value()),
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            let mut bound = String::new();
            for bucket in histogram.get_bucket() {
                bound.clear();
                go_float(&mut bound, bucket.upper_bound());
                line("_bucket", Some(("le", &bound)), super::number(bucket.cumulative_count()));
            }
            let count = super::number(histogram.get_sample_count());
            line("_bucket", Some(("le", "+Inf")), count);
            line("_sum", None, histogram.get_sample_sum());
            line("_count", None, count);
        }
        // Nobody here makes summaries or untyped ones.
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => {
            line("", None, metric.get_gauge().get_value());
        }
    }
}
