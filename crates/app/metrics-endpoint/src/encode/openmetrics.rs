//! OpenMetrics 1.0.

use metrics::prometheus::proto::{Metric, MetricFamily, MetricType};

use super::{escape, go_float, sample};

pub(super) fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::with_capacity(64 * 1024);
    for family in families {
        let kind = family.get_field_type();
        // Counters are called without `_total` here. One that never had it cannot be a counter by that rule: it is
        // `unknown`, so that its name stays what dashboards ask for.
        let (name, word) = match (kind, family.name().strip_suffix("_total")) {
            (MetricType::COUNTER, Some(short)) => (short, "counter"),
            (MetricType::COUNTER, None) => (family.name(), "unknown"),
            (MetricType::HISTOGRAM, _) => (family.name(), "histogram"),
            (MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED, _) => (family.name(), "gauge"),
        };
        out.push_str("# HELP ");
        out.push_str(name);
        out.push(' ');
        escape(&mut out, family.help(), true);
        out.push_str("\n# TYPE ");
        out.push_str(name);
        out.push(' ');
        out.push_str(word);
        out.push('\n');
        for metric in family.get_metric() {
            series(&mut out, family.name(), kind, metric);
        }
    }
    out.push_str("# EOF\n");
    out
}

fn series(out: &mut String, name: &str, kind: MetricType, metric: &Metric) {
    let labels = metric.get_label();
    let mut line = |suffix: &str, more: Option<(&str, &str)>, value: f64| {
        sample(out, [name, suffix], labels, more);
        float(out, value);
        out.push('\n');
    };
    match kind {
        MetricType::COUNTER => line("", None, metric.get_counter().get_value()),
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            let mut bound = String::new();
            for bucket in histogram.get_bucket() {
                bound.clear();
                float(&mut bound, bucket.upper_bound());
                line("_bucket", Some(("le", &bound)), super::number(bucket.cumulative_count()));
            }
            let count = super::number(histogram.get_sample_count());
            line("_bucket", Some(("le", "+Inf")), count);
            line("_sum", None, histogram.get_sample_sum());
            line("_count", None, count);
        }
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => {
            line("", None, metric.get_gauge().get_value());
        }
    }
}

/// As [`go_float`], and never like an integer.
fn float(out: &mut String, value: f64) {
    let start = out.len();
    go_float(out, value);
    if value.is_finite() && !out[start..].contains(['e', '.']) {
        out.push_str(".0");
    }
}
