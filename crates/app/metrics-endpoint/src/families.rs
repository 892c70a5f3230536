//! Families that are computed at a scrape: declared in tables, filled by name.

use std::collections::BTreeMap;

use metrics::prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use metrics::{Declared, Kind};

/// A family that is computed: name, kind, help, labels.
pub(crate) type Row = (&'static str, Kind, &'static str, &'static [&'static str]);

/// Families that are being filled.
#[derive(Default)]
pub(crate) struct Families {
    rows: BTreeMap<&'static str, (Row, Vec<Metric>)>,
}

impl Families {
    /// Opens the families of `table`. Those that stay empty are absent.
    pub(crate) fn open(&mut self, table: &[Row]) {
        self.rows.extend(table.iter().map(|row| (row.0, (*row, Vec::new()))));
    }

    /// Adds a series; values in the order of the family's labels.
    pub(crate) fn put(&mut self, name: &'static str, labels: &[&str], value: f64) {
        let (row, metrics) = self.rows.get_mut(name).expect("what is put in is declared; a test fills every family");
        debug_assert_eq!(row.3.len(), labels.len(), "{name}");
        let mut pairs: Vec<LabelPair> = row.3.iter().zip(labels).map(|(name, value)| pair(name, value)).collect();
        pairs.sort_by(|a, b| a.name().cmp(b.name()));
        let mut metric = Metric::from_label(pairs);
        if row.1 == Kind::Counter {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        metrics.push(metric);
    }

    /// The families that got series, by name.
    pub(crate) fn close(self) -> Vec<MetricFamily> {
        let full = self.rows.into_values().filter(|(_, metrics)| !metrics.is_empty());
        full.map(|(row, metrics)| {
            let mut family = MetricFamily::default();
            family.set_name(row.0.to_owned());
            family.set_help(declared(&row).help);
            family.set_field_type(if row.1 == Kind::Counter { MetricType::COUNTER } else { MetricType::GAUGE });
            family.set_metric(metrics);
            family
        })
        .collect()
    }
}

pub(crate) fn declared(row: &Row) -> Declared {
    Declared::new(row.0, row.1, row.2, row.3)
}

fn pair(name: &str, value: &str) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}
