//! Takes typed values out of a JSON object, noting what does not fit and going on.

use std::collections::BTreeMap;
use std::time::Duration;

use model::quantity::Quantity;
use serde_json::{Map, Value};

use crate::error::ConfigError;
use crate::findings::Findings;
use crate::nearest::nearest;
use model::go_duration;

/// One object of the document. Whatever is not taken until [`Reader::finish`] is unused or unknown.
pub(crate) struct Reader<'f> {
    prefix: String,
    fields: Map<String, Value>,
    taken: Vec<&'static str>,
    pub(crate) findings: &'f mut Findings,
}

impl<'f> Reader<'f> {
    pub(crate) fn new(prefix: &str, fields: Map<String, Value>, findings: &'f mut Findings) -> Self {
        Self { prefix: prefix.to_owned(), fields, taken: Vec::new(), findings }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }

    /// Whether a field is given and not taken yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|v| !v.is_null())
    }

    /// The raw value; `null` is as good as absent.
    pub(crate) fn raw(&mut self, name: &'static str) -> Option<Value> {
        self.taken.push(name);
        self.fields.remove(name).filter(|v| !v.is_null())
    }

    fn typed<T>(&mut self, name: &'static str, f: impl FnOnce(&mut Findings, &str, &Value) -> Option<T>) -> Option<T> {
        let value = self.raw(name)?;
        let path = self.path(name);
        f(self.findings, &path, &value)
    }

    pub(crate) fn bool(&mut self, name: &'static str) -> Option<bool> {
        self.typed(name, |f, p, v| f.bool(p, v))
    }

    pub(crate) fn int(&mut self, name: &'static str, low: i64, high: i64) -> Option<i64> {
        self.typed(name, |f, p, v| f.int(p, v, low, high))
    }

    /// A number that is not negative and fits `u32`.
    pub(crate) fn count(&mut self, name: &'static str, low: u32) -> Option<u32> {
        self.int(name, low.into(), i32::MAX.into()).and_then(|n| u32::try_from(n).ok())
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.typed(name, |f, p, v| f.text(p, v))
    }

    /// Text of which the empty one means "not set".
    pub(crate) fn some_text(&mut self, name: &'static str) -> Option<String> {
        self.text(name).filter(|t| !t.is_empty())
    }

    /// A word; the empty one means "not set".
    pub(crate) fn word(&mut self, name: &'static str, words: &[&str]) -> Option<String> {
        let value = self.raw(name).filter(|v| v.as_str() != Some(""))?;
        let path = self.path(name);
        self.findings.word(&path, &value, words)
    }

    pub(crate) fn duration(&mut self, name: &'static str) -> Option<Duration> {
        self.typed(name, |f, p, v| f.duration(p, v))
    }

    /// A duration of which 0 means "not set".
    pub(crate) fn some_duration(&mut self, name: &'static str) -> Option<Duration> {
        self.duration(name).filter(|d| !d.is_zero())
    }

    /// A duration in `low..=high`.
    pub(crate) fn duration_within(&mut self, name: &'static str, low: Duration, high: Duration) -> Option<Duration> {
        let value = self.raw(name)?;
        let path = self.path(name);
        let found = self.findings.duration(&path, &value)?;
        if (low..=high).contains(&found) {
            return Some(found);
        }
        let allowed = if high == Duration::MAX {
            format!("{} or more", go_duration::format(low))
        } else {
            format!("{} to {}", go_duration::format(low), go_duration::format(high))
        };
        self.findings.error(ConfigError::new(path, "is out of range").value(&value).allowed(allowed));
        None
    }

    /// A number that is more than 0 and at most 1.
    pub(crate) fn fraction(&mut self, name: &'static str) -> Option<f64> {
        let value = self.raw(name)?;
        let fits = value.as_f64().filter(|f| *f > 0.0 && *f <= 1.0);
        if fits.is_none() {
            let error = ConfigError::new(self.path(name), "is out of range").value(&value);
            self.findings.error(error.allowed("more than 0, at most 1"));
        }
        fits
    }

    pub(crate) fn quantity(&mut self, name: &'static str) -> Option<Quantity> {
        self.typed(name, |f, p, v| f.quantity(p, v))
    }

    pub(crate) fn text_list(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.typed(name, |f, p, v| f.text_list(p, v))
    }

    pub(crate) fn int_list(&mut self, name: &'static str) -> Option<Vec<i32>> {
        self.typed(name, |f, p, v| {
            let list = f.list(p, v)?;
            let each = list.iter().enumerate().map(|(i, v)| f.int(&format!("{p}[{i}]"), v, 0, i32::MAX.into()));
            each.map(|n| i32::try_from(n?).ok()).collect()
        })
    }

    pub(crate) fn object(&mut self, name: &'static str) -> Option<Map<String, Value>> {
        self.typed(name, |f, p, v| f.object(p, v).cloned())
    }

    /// Quantities by name, each 0 or more, of the given names only.
    pub(crate) fn amounts(&mut self, name: &'static str, names: &[&str]) -> Option<BTreeMap<String, Quantity>> {
        let fields = self.object(name)?;
        let mut amounts = BTreeMap::new();
        for (key, value) in &fields {
            let path = format!("{}.{key}", self.path(name));
            if !names.contains(&key.as_str()) {
                self.findings.error(ConfigError::new(path, "is no resource of this list").allowed(names.join(", ")));
                continue;
            }
            match self.findings.quantity(&path, value) {
                Some(q) if q.is_negative() => {
                    self.findings.error(ConfigError::new(path, "is negative").value(value).allowed("0 or more"));
                }
                Some(q) => {
                    amounts.insert(key.clone(), q);
                }
                None => {}
            }
        }
        Some(amounts)
    }

    /// Judges what is left: fields of `unused` are checked for their type and answered with what happens instead, others are
    /// unknown.
    pub(crate) fn finish(self, unused: &'static [Field]) {
        for (name, value) in &self.fields {
            let path = if self.prefix.is_empty() { name.clone() } else { format!("{}.{name}", self.prefix) };
            match unused.iter().find(|f| f.name == name) {
                Some(_) if value.is_null() => {}
                Some(field) => {
                    let fits = field.kind.check(&path, value, self.findings);
                    if fits && !field.instead.is_empty() && !is_default(field, value) {
                        self.findings.warn(path, format!("not implemented yet: {}", field.instead));
                    }
                }
                None => {
                    let known = self.taken.iter().copied().chain(unused.iter().map(|f| f.name));
                    let hint = match nearest(name, known) {
                        Some(near) => format!("; did you mean {near}?"),
                        None => String::new(),
                    };
                    self.findings.warn(path, format!("unknown field, ignored{hint}"));
                }
            }
        }
    }
}

/// Overwrites a default where the file has a value.
pub(crate) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// A field without a use.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Default as JSON text: setting it is not worth a word. Empty: whatever is empty.
    pub(crate) default: &'static str,
    /// What happens instead; empty for parts of a field that is answered as a whole.
    pub(crate) instead: &'static str,
}

/// Type of a field, with its range.
pub(crate) enum Kind {
    Bool,
    Int(i64, i64),
    Text,
    Word(&'static [&'static str]),
    Duration,
    ObjectList,
    /// Text by name.
    TextMap,
}

impl Kind {
    /// Notes what does not fit; says whether all does.
    fn check(&self, path: &str, value: &Value, findings: &mut Findings) -> bool {
        let before = findings.errors.len();
        match self {
            Kind::Bool => drop(findings.bool(path, value)),
            Kind::Int(low, high) => drop(findings.int(path, value, *low, *high)),
            Kind::Text => drop(findings.text(path, value)),
            Kind::Word(_) if value.as_str() == Some("") => {}
            Kind::Word(words) => drop(findings.word(path, value, words)),
            Kind::Duration => drop(findings.duration(path, value)),
            Kind::ObjectList => {
                for (i, v) in findings.list(path, value).unwrap_or_default().iter().enumerate() {
                    findings.object(&format!("{path}[{i}]"), v);
                }
            }
            Kind::TextMap => {
                for (key, v) in findings.object(path, value).into_iter().flatten() {
                    findings.text(&format!("{path}.{key}"), v);
                }
            }
        }
        findings.errors.len() == before
    }
}

/// Whether a value asks for nothing but the default.
fn is_default(field: &Field, value: &Value) -> bool {
    let empty = match value {
        Value::Null => true,
        Value::String(s) => s.is_empty() || s == "0s",
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        Value::Number(_) | Value::Bool(_) => false,
    };
    if empty {
        return true;
    }
    let Ok(default) = serde_json::from_str::<Value>(field.default) else { return false };
    if let (Kind::Duration, Some(a), Some(b)) = (&field.kind, value.as_str(), default.as_str()) {
        return go_duration::parse(a).is_ok_and(|a| Ok(a) == go_duration::parse(b));
    }
    *value == default
}
