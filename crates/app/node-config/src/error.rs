//! What can be wrong with a configuration, line by line.

use std::fmt;

use serde_json::Value;
use static_pod::yaml::excerpt;

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The file, or the flag with its dashes, that it stands in; empty when not known.
    pub origin: String,
    /// Key path such as `memorySwap.swapBehavior`; empty when the file as a whole is meant.
    pub path: String,
    /// The offending value as JSON, cut short when long.
    pub value: Option<String>,
    /// Why it is refused.
    pub reason: String,
    /// What would have been accepted, when that can be said briefly.
    pub allowed: Option<String>,
}

impl ConfigError {
    pub(crate) fn whole_file(reason: impl Into<String>) -> Self {
        Self { origin: String::new(), path: String::new(), value: None, reason: reason.into(), allowed: None }
    }

    pub(crate) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { origin: String::new(), path: path.into(), value: None, reason: reason.into(), allowed: None }
    }

    pub(crate) fn value(mut self, value: &Value) -> Self {
        self.value = Some(excerpt(value));
        self
    }

    pub(crate) fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    pub(crate) fn at(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    pub(crate) fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value}: ")?;
        }
        write!(f, "{}", self.reason)?;
        match &self.allowed {
            Some(allowed) => write!(f, " (allowed: {allowed})"),
            None => Ok(()),
        }
    }
}

/// All mistakes of files and flags. Displays one line per mistake, each with the file or flag, the key path, the value, the
/// reason and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ConfigErrors {
    /// The mistakes, in the order in which they were found; at least one.
    pub errors: Vec<ConfigError>,
    /// What is odd besides.
    pub warnings: Vec<Warning>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{}: {error}", error.origin)?;
        }
        Ok(())
    }
}

/// Something odd that does not keep the node from starting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The file, or the flag with its dashes, that it stands in; empty when not known.
    pub origin: String,
    /// Key path.
    pub path: String,
    /// What was found and what happens instead.
    pub reason: String,
}

impl Warning {
    pub(crate) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { origin: String::new(), path: path.into(), reason: reason.into() }
    }

    pub(crate) fn of_flag(flag: &str, reason: impl Into<String>) -> Self {
        Self { origin: format!("--{flag}"), path: String::new(), reason: reason.into() }
    }

    /// With the file or flag in front.
    #[must_use]
    pub fn located(&self) -> String {
        if self.origin.is_empty() { self.to_string() } else { format!("{}: {self}", self.origin) }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.path, self.reason)
    }
}
