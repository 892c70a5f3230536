//! Takes typed values out of a JSON object, noting what does not fit and going on.

use std::collections::BTreeMap;
use std::time::Duration;

use model::quantity::Quantity;
use serde_json::{Map, Value};

use crate::error::{ConfigError, Warning};
use crate::fields::{Field, is_default};
use crate::go_duration;
use crate::nearest::nearest;

/// What was found wrong or odd.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) warnings: Vec<Warning>,
}

impl Findings {
    pub(crate) fn error(&mut self, error: ConfigError) {
        self.errors.push(error);
    }

    pub(crate) fn warn(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.warnings.push(Warning::new(path, reason));
    }

    fn wrong_type(&mut self, path: &str, value: &Value, allowed: &str) {
        self.error(ConfigError::new(path, "has the wrong type").value(value).allowed(allowed));
    }

    pub(crate) fn bool(&mut self, path: &str, value: &Value) -> Option<bool> {
        let found = value.as_bool();
        if found.is_none() {
            self.wrong_type(path, value, "true or false");
        }
        found
    }

    pub(crate) fn int(&mut self, path: &str, value: &Value, low: i64, high: i64) -> Option<i64> {
        let Some(number) = value.as_i64() else {
            self.wrong_type(path, value, &format!("a whole number from {low} to {high}"));
            return None;
        };
        if (low..=high).contains(&number) {
            return Some(number);
        }
        self.error(ConfigError::new(path, "is out of range").value(value).allowed(format!("{low} to {high}")));
        None
    }

    pub(crate) fn text(&mut self, path: &str, value: &Value) -> Option<String> {
        let found = value.as_str().map(str::to_owned);
        if found.is_none() {
            self.wrong_type(path, value, "text");
        }
        found
    }

    pub(crate) fn word(&mut self, path: &str, value: &Value, words: &[&str]) -> Option<String> {
        let found = self.text(path, value)?;
        if words.contains(&found.as_str()) {
            return Some(found);
        }
        let list: Vec<String> = words.iter().map(|w| format!("{w:?}")).collect();
        self.error(ConfigError::new(path, "is not one of the known words").value(value).allowed(list.join(", ")));
        None
    }

    pub(crate) fn duration(&mut self, path: &str, value: &Value) -> Option<Duration> {
        const ALLOWED: &str = "0 or more, as in 20s, 1m30s or 100ms";
        let Some(text) = value.as_str() else {
            self.wrong_type(path, value, ALLOWED);
            return None;
        };
        match go_duration::parse(text) {
            Ok(d) => Some(d),
            Err(e) => {
                self.error(ConfigError::new(path, e.to_string()).value(value).allowed(ALLOWED));
                None
            }
        }
    }

    /// A quantity as text or as a number.
    pub(crate) fn quantity(&mut self, path: &str, value: &Value) -> Option<Quantity> {
        const ALLOWED: &str = "a quantity such as 500m or 64Mi";
        let text = match value {
            Value::String(s) => s.clone(),
            Value::Number(n) => n.to_string(),
            _ => {
                self.wrong_type(path, value, ALLOWED);
                return None;
            }
        };
        match text.parse::<Quantity>() {
            Ok(q) => Some(q),
            Err(e) => {
                self.error(ConfigError::new(path, e.to_string()).value(value).allowed(ALLOWED));
                None
            }
        }
    }

    pub(crate) fn list<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v [Value]> {
        let found = value.as_array().map(Vec::as_slice);
        if found.is_none() {
            self.wrong_type(path, value, "a list");
        }
        found
    }

    pub(crate) fn text_list(&mut self, path: &str, value: &Value) -> Option<Vec<String>> {
        let list = self.list(path, value)?;
        let before = self.errors.len();
        let texts = list.iter().enumerate().filter_map(|(i, v)| self.text(&format!("{path}[{i}]"), v)).collect();
        (self.errors.len() == before).then_some(texts)
    }

    pub(crate) fn object<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v Map<String, Value>> {
        let found = value.as_object();
        if found.is_none() {
            self.wrong_type(path, value, "a mapping");
        }
        found
    }
}

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
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.taken.push(name);
        self.fields.remove(name).filter(|v| !v.is_null())
    }

    fn typed<T>(&mut self, name: &'static str, f: impl FnOnce(&mut Findings, &str, &Value) -> Option<T>) -> Option<T> {
        let value = self.take(name)?;
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
        let value = self.take(name).filter(|v| v.as_str() != Some(""))?;
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
        let value = self.take(name)?;
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
