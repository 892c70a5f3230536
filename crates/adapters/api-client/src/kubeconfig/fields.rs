//! Walking through the document while keeping the key path for messages.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::problem::Problem;

/// One value and where it stands.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) file: &'a Path,
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> Field<'a> {
    pub(super) fn root(file: &'a Path, value: &'a Value) -> Self {
        Self { file, path: String::new(), value }
    }

    /// The value under a key; `Null` when it is not there.
    pub(super) fn child(&self, key: &str) -> Field<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Field { file: self.file, path, value: self.value.get(key).unwrap_or(&Value::Null) }
    }

    pub(super) fn problem(&self, reason: impl Into<String>) -> Problem {
        Problem::new(self.file, self.path.clone(), reason)
    }

    pub(super) fn missing(&self, key: &str) -> Problem {
        self.child(key).problem("is missing")
    }

    /// A text under a key; numbers and the like are mistakes, `null` is nothing.
    pub(super) fn text(&self, key: &str, problems: &mut Vec<Problem>) -> Option<String> {
        let child = self.child(key);
        match child.value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => {
                problems.push(child.problem(format!("is {}, not a text", name(other))));
                None
            }
        }
    }

    /// A switch under a key; off when it is not there.
    pub(super) fn flag(&self, key: &str, problems: &mut Vec<Problem>) -> bool {
        let child = self.child(key);
        match child.value {
            Value::Null => false,
            Value::Bool(on) => *on,
            other => {
                problems.push(child.problem(format!("is {}, not a switch", name(other))).allowed("true, false"));
                false
            }
        }
    }

    /// Elements of a list.
    pub(super) fn elements(&self, problems: &mut Vec<Problem>) -> Vec<Field<'a>> {
        match self.value {
            Value::Null => Vec::new(),
            Value::Array(values) => {
                let at = |(index, value)| Field { file: self.file, path: format!("{}[{index}]", self.path), value };
                values.iter().enumerate().map(at).collect()
            }
            other => {
                problems.push(self.problem(format!("is {}, not a list", name(other))));
                Vec::new()
            }
        }
    }

    /// Texts of a list.
    pub(super) fn texts(&self, problems: &mut Vec<Problem>) -> Vec<String> {
        let mut texts = Vec::new();
        for element in self.elements(problems) {
            match element.value {
                Value::String(text) => texts.push(text.clone()),
                other => problems.push(element.problem(format!("is {}, not a text", name(other)))),
            }
        }
        texts
    }

    /// A path in the document means one beside the kubeconfig, unless it is absolute.
    pub(super) fn beside(&self, path: &str) -> PathBuf {
        self.file.parent().map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
    }
}

pub(super) const fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a switch",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
