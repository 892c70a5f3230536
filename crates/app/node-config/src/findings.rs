//! Values of JSON as what they must be; what does not fit is noted.

use std::time::Duration;

use model::quantity::Quantity;
use serde_json::{Map, Value};

use crate::error::{ConfigError, Warning};
use model::go_duration;

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
