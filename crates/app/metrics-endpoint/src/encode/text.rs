//! Prometheus text 0.0.4, and OpenMetrics 1.0, which differs in few places.

use metrics::prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use node_stats::text::{push_escaped, push_label, push_number};

pub(super) fn encode(families: &[MetricFamily], open_metrics: bool) -> String {
    let mut out = Writer { out: String::with_capacity(64 * 1024), open_metrics };
    for family in families {
        out.family(family);
    }
    if open_metrics {
        out.out.push_str("# EOF\n");
    }
    out.out
}

struct Writer {
    out: String,
    open_metrics: bool,
}

impl Writer {
    fn family(&mut self, family: &MetricFamily) {
        let (kind, name) = (family.get_field_type(), family.name());
        let (name, word) = match (kind, name.strip_suffix("_total")) {
            // OpenMetrics calls counters without `_total` here. One that never had it cannot be a counter by that rule: it
            // is `unknown`, so that its name stays what dashboards ask for.
            (MetricType::COUNTER, Some(short)) if self.open_metrics => (short, "counter"),
            (MetricType::COUNTER, None) if self.open_metrics => (name, "unknown"),
            (MetricType::COUNTER, _) => (name, "counter"),
            (MetricType::HISTOGRAM, _) => (name, "histogram"),
            // Nobody here makes summaries or untyped ones.
            (MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED, _) => (name, "gauge"),
        };
        self.out.extend(["# HELP ", name, " "]);
        push_escaped(&mut self.out, family.help(), self.open_metrics);
        self.out.extend(["\n# TYPE ", name, " ", word, "\n"]);
        for metric in family.get_metric() {
            self.series(family.name(), kind, metric);
        }
    }

    fn series(&mut self, name: &str, kind: MetricType, metric: &Metric) {
        let own = metric.get_label();
        match kind {
            MetricType::COUNTER => self.sample([name, ""], own, None, metric.get_counter().get_value()),
            MetricType::HISTOGRAM => {
                let histogram = metric.get_histogram();
                for bucket in histogram.get_bucket() {
                    let mut bound = String::new();
                    self.number(&mut bound, bucket.upper_bound());
                    self.sample([name, "_bucket"], own, Some(("le", &bound)), float(bucket.cumulative_count()));
                }
                let count = float(histogram.get_sample_count());
                self.sample([name, "_bucket"], own, Some(("le", "+Inf")), count);
                self.sample([name, "_sum"], own, None, histogram.get_sample_sum());
                self.sample([name, "_count"], own, None, count);
            }
            MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => {
                self.sample([name, ""], own, None, metric.get_gauge().get_value());
            }
        }
    }

    /// `name{labels} value`, with one label more at the end where there is one.
    fn sample(&mut self, name: [&str; 2], own: &[LabelPair], more: Option<(&str, &str)>, value: f64) {
        let mut labels = String::new();
        for (name, value) in own.iter().map(|l| (l.name(), l.value())).chain(more) {
            push_label(&mut labels, name, value);
        }
        self.out.extend(name);
        if !labels.is_empty() {
            self.out.extend(["{", &labels, "}"]);
        }
        self.out.push(' ');
        let mut number = String::new();
        self.number(&mut number, value);
        self.out.push_str(&number);
        self.out.push('\n');
    }

    /// OpenMetrics: never like an integer.
    fn number(&self, out: &mut String, value: f64) {
        push_number(out, value);
        if self.open_metrics && value.is_finite() && !out.contains(['e', '.']) {
            out.push_str(".0");
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
fn float(n: u64) -> f64 {
    n as f64
}
