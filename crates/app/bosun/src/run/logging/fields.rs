//! The values of a line.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};

/// A value, ready to be written as text or JSON.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Text(String),
    /// Numbers and switches, written bare.
    Bare(String),
}

impl Value {
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Bare(bare) => out.push_str(bare),
            Self::Text(text) => quote(out, text),
        }
    }
}

/// What one event carries.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) message: String,
    /// In the order of the event; `error` is called `err`, as klog does.
    pub(super) pairs: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::Text(text) | Value::Bare(text)) => self.message = text,
            // What the `log` crate hands over of its place; the metadata have it.
            (name, _) if name.starts_with("log.") => {}
            ("error", value) => self.pairs.push(("err", value)),
            (name, value) => self.pairs.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, Value::Text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::Bare(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::Bare(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Value::Bare(value.to_string()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for the rest.
        let value = if value.is_finite() { Value::Bare(value.to_string()) } else { Value::Text(value.to_string()) };
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, Value::Text(actor::chain(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        // Debug of text brings its own quotes.
        let inner = serde_json::from_str::<String>(&text);
        self.add(field, Value::Text(inner.unwrap_or(text)));
    }
}

/// In double quotes, on one line. What is written is JSON and, for all that logs hold, a Go string too.
pub(super) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
