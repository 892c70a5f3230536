//! What is wrong with a kubeconfig, mistake by mistake.

use std::fmt;
use std::path::{Path, PathBuf};

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kubeconfig.
    pub file: PathBuf,
    /// Key path such as `users[0].user.client-certificate`; empty when the file as a whole is meant.
    pub path: String,
    /// The offending value; never a secret.
    pub value: Option<String>,
    /// Why it is refused.
    pub reason: String,
    /// What would have been accepted, when that can be said briefly.
    pub allowed: Option<String>,
    /// The only fault is that a certificate is not valid at this time: another one may come.
    pub out_of_date: bool,
}

impl Problem {
    pub(crate) fn new(file: &Path, path: impl Into<String>, reason: impl Into<String>) -> Self {
        let (path, reason) = (path.into(), reason.into());
        Self { file: file.to_owned(), path, value: None, reason, allowed: None, out_of_date: false }
    }

    pub(crate) fn value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    pub(crate) fn allowed(mut self, allowed: &str) -> Self {
        self.allowed = Some(allowed.to_owned());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        if let Some(value) = &self.value {
            write!(f, ": {value:?}")?;
        }
        write!(f, ": {}", self.reason)?;
        match &self.allowed {
            Some(allowed) => write!(f, " (allowed: {allowed})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}
