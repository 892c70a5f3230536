//! `io.prometheus.client.MetricFamily`, each behind its length: the fields of that message that are used here.

use metrics::prometheus::proto::{self, MetricType};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Family {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) help: Option<String>,
    /// 0 counter, 1 gauge, 4 histogram.
    #[prost(int32, optional, tag = "3")]
    pub(crate) kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metric {
    #[prost(message, repeated, tag = "1")]
    pub(crate) label: Vec<Label>,
    #[prost(message, optional, tag = "2")]
    pub(crate) gauge: Option<Value>,
    #[prost(message, optional, tag = "3")]
    pub(crate) counter: Option<Value>,
    #[prost(message, optional, tag = "7")]
    pub(crate) histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(crate) value: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(double, optional, tag = "1")]
    pub(crate) value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(crate) sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) bucket: Vec<Bucket>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) cumulative: Option<u64>,
    #[prost(double, optional, tag = "2")]
    pub(crate) upper_bound: Option<f64>,
}

pub(super) fn encode(families: &[proto::MetricFamily]) -> Vec<u8> {
    families.iter().flat_map(|f| family(f).encode_length_delimited_to_vec()).collect()
}

fn family(f: &proto::MetricFamily) -> Family {
    let kind = f.get_field_type();
    let number = match kind {
        MetricType::COUNTER => 0,
        MetricType::HISTOGRAM => 4,
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => 1,
    };
    Family {
        name: Some(f.name().to_owned()),
        help: Some(f.help().to_owned()),
        kind: Some(number),
        metric: f.get_metric().iter().map(|m| metric(kind, m)).collect(),
    }
}

fn metric(kind: MetricType, m: &proto::Metric) -> Metric {
    let label = |l: &proto::LabelPair| Label { name: Some(l.name().to_owned()), value: Some(l.value().to_owned()) };
    let mut out = Metric { label: m.get_label().iter().map(label).collect(), ..Metric::default() };
    match kind {
        MetricType::COUNTER => out.counter = Some(Value { value: Some(m.get_counter().get_value()) }),
        MetricType::HISTOGRAM => {
            let h = m.get_histogram();
            let bucket = |b: &proto::Bucket| Bucket {
                cumulative: Some(b.cumulative_count()),
                upper_bound: Some(b.upper_bound()),
            };
            out.histogram = Some(Histogram {
                count: Some(h.get_sample_count()),
                sum: Some(h.get_sample_sum()),
                bucket: h.get_bucket().iter().map(bucket).collect(),
            });
        }
        MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => {
            out.gauge = Some(Value { value: Some(m.get_gauge().get_value()) });
        }
    }
    out
}
