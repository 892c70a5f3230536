//! What can be wrong with a manifest, field by field.

use std::fmt;

use serde_json::Value;

use crate::yaml::excerpt;

/// Largest manifest that is read (pod-lifecycle 0.2).
pub const MAX_MANIFEST_BYTES: usize = 10 * 1024 * 1024;

/// Kind of a fault in one field; the kinds that API validation knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Fault {
    /// Must be set and is not.
    Required,
    /// Set to something that is not allowed.
    Invalid,
    /// Not one of the listed values.
    Unsupported,
    /// Set more than once where it must be unique.
    Duplicate,
    /// May not be set here.
    Forbidden,
    /// Longer or more than allowed.
    TooLong,
    /// Refers to something that is not there.
    NotFound,
    /// Of the wrong JSON type.
    Type,
}

impl Fault {
    /// A few words for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Fault::Required => "required value is missing",
            Fault::Invalid => "invalid value",
            Fault::Unsupported => "unsupported value",
            Fault::Duplicate => "duplicate value",
            Fault::Forbidden => "forbidden",
            Fault::TooLong => "too long",
            Fault::NotFound => "not found",
            Fault::Type => "wrong type",
        }
    }
}

/// One fault in one field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldError {
    /// Key path, e.g. `spec.containers[0].ports[1].protocol`.
    pub path: String,
    /// Kind of the fault.
    pub fault: Fault,
    /// The offending value as JSON, cut short when long; `None` when there is none.
    pub value: Option<String>,
    /// Why it is refused; may be empty when the kind and `allowed` say it all.
    pub reason: String,
    /// What would have been accepted, when that can be said briefly.
    pub allowed: Option<String>,
}

impl FieldError {
    /// A fault without a value.
    pub(crate) fn new(path: impl Into<String>, fault: Fault, reason: impl Into<String>) -> Self {
        Self { path: path.into(), fault, value: None, reason: reason.into(), allowed: None }
    }

    /// Adds the offending value.
    pub(crate) fn value(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(excerpt(&value.into()));
        self
    }

    /// Adds what is allowed.
    pub(crate) fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.fault.as_str())?;
        if let Some(value) = &self.value {
            write!(f, " {value}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        match &self.allowed {
            Some(allowed) => write!(f, " (allowed: {allowed})"),
            None => Ok(()),
        }
    }
}

/// Why a manifest is refused as a whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ManifestError {
    /// More bytes than a kubelet reads.
    #[error("manifest has {size} bytes, more than the {} that are allowed", MAX_MANIFEST_BYTES)]
    TooLarge {
        /// Size found.
        size: usize,
    },
    /// Nothing but white space and comments.
    #[error("manifest is empty")]
    Empty,
    /// Not text.
    #[error("manifest is not UTF-8: byte {offset} is not part of a character")]
    NotUtf8 {
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// Neither YAML nor JSON.
    #[error("not YAML or JSON: line {line}, column {column}: {reason}")]
    Syntax {
        /// Line, from 1; 0 when unknown.
        line: u64,
        /// Column, from 1; 0 when unknown.
        column: u64,
        /// What the parser says.
        reason: String,
    },
    /// YAML or JSON, but not a v1 Pod: wrong kind or wrong types.
    #[error("couldn't parse as pod: {}", join(.0))]
    NotAPod(Vec<FieldError>),
    /// A pod that an API server or a kubelet would refuse.
    #[error("invalid pod: {}", join(.0))]
    Invalid(Vec<FieldError>),
}

impl ManifestError {
    /// The faults by field; empty when the manifest could not be read at all.
    #[must_use]
    pub fn fields(&self) -> &[FieldError] {
        match self {
            ManifestError::NotAPod(fields) | ManifestError::Invalid(fields) => fields,
            _ => &[],
        }
    }
}

fn join(fields: &[FieldError]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Something odd that does not keep the pod from running.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Key path.
    pub path: String,
    /// What was found and what happens.
    pub reason: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}
