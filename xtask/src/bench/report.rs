//! The figures as a table for people and as JSON for machines.

use std::fmt::Write;

/// What a figure counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    Ms,
    Seconds,
    MiB,
    Percent,
    Ratio,
    Count,
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Ms => "ms",
            Unit::Seconds => "s",
            Unit::MiB => "MiB",
            Unit::Percent => "% core",
            Unit::Ratio => "x",
            Unit::Count => "",
        }
    }
}

struct Row {
    what: String,
    value: f64,
    unit: Unit,
    /// The most that it may be.
    must: Option<f64>,
    detail: String,
}

/// Figures in the order in which they were measured.
#[derive(Default)]
pub(super) struct Report(Vec<Row>);

impl Report {
    /// Adds a figure and tells it at once, for whoever waits.
    pub(super) fn add(&mut self, what: &str, value: f64, unit: Unit, must: Option<f64>, detail: String) {
        eprintln!("  {what}: {value:.2} {} {detail}", unit.name());
        self.0.push(Row { what: what.to_owned(), value, unit, must, detail });
    }

    pub(super) fn table(&self) -> String {
        let width = self.0.iter().map(|r| r.what.len()).max().unwrap_or(0);
        let mut text = format!("\n{:width$}  {:>10}         {:>8}   verdict\n", "what", "measured", "must");
        for row in &self.0 {
            let must = row.must.map_or("-".to_owned(), |m| format!("<= {m}"));
            let verdict = match row.must {
                None => "",
                Some(most) if row.value <= most => "ok",
                Some(_) => "MISSED",
            };
            let _ = writeln!(
                text,
                "{:width$}  {:>10.2} {:<6}  {must:>8}   {verdict:<7} {}",
                row.what,
                row.value,
                row.unit.name(),
                row.detail
            );
        }
        text
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let row = |r: &Row| {
            serde_json::json!({
                "what": r.what, "value": r.value, "unit": r.unit.name(), "must": r.must,
                "ok": r.must.map(|most| r.value <= most), "detail": r.detail,
            })
        };
        serde_json::Value::Array(self.0.iter().map(row).collect())
    }
}

/// The value below which the share `p` (0 to 1) of all values lies; nearest rank.
pub(super) fn percentile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (p * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            (percentile(&values, 0.5), percentile(&values, 0.99), percentile(&values, 1.0)),
            (50.0, 99.0, 100.0)
        );
        assert_eq!(percentile(&[7.0], 0.99), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
