//! Prometheus text, version 0.0.4; its numbers, labels and escapes, which OpenMetrics shares.

use std::fmt::Write;

use model::Timestamp;

/// Type of a family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A text that grows family by family.
#[derive(Debug, Default)]
pub(crate) struct Text {
    out: String,
    head: Option<(&'static str, &'static str, Kind)>,
    name: &'static str,
}

impl Text {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), ..Self::default() }
    }

    /// The family of the samples that follow; it shows only when there are any.
    pub(crate) fn family(&mut self, name: &'static str, help: &'static str, kind: Kind) {
        self.head = Some((name, help, kind));
        self.name = name;
    }

    /// One sample. `labels` are written already; each part that is not empty is one or more of them.
    pub(crate) fn sample(&mut self, labels: [&str; 3], value: f64, at: Option<Timestamp>) {
        if let Some((name, help, kind)) = self.head.take() {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            // Writing into a String cannot fail.
            let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
        self.out.push_str(self.name);
        let mut before = '{';
        for part in labels.iter().filter(|p| !p.is_empty()) {
            self.out.push(before);
            self.out.push_str(part);
            before = ',';
        }
        self.out.push_str(if before == ',' { "} " } else { " " });
        push_number(&mut self.out, value);
        if let Some(at) = at.filter(|t| t.is_set()) {
            let _ = write!(self.out, " {}", at.0 / 1_000_000);
        }
        self.out.push('\n');
    }

    pub(crate) fn done(self) -> String {
        self.out
    }
}

/// Appends `name="value"`, after a comma when something stands before.
pub fn push_label(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(name);
    out.push_str("=\"");
    push_escaped(out, value, true);
    out.push('"');
}

/// Appends a text with backslash and line end escaped, and the quote where it stands within quotes.
pub fn push_escaped(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

/// Labels in one string.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        push_label(&mut out, name, value);
    }
    out
}

/// The shortest text that reads back as the same number; below 0.0001 and from a million on with an exponent, as Go writes
/// it.
pub fn push_number(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        return;
    }
    let text = format!("{value:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return out.push_str(&text) };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let _ = write!(out, "{value}");
        return;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
}
