//! Who writes, when somebody else wants to.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Who writes, by its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process.
    pub pid: u32,
    /// What it does: `pull busybox`.
    pub what: String,
}

/// Somebody else writes and did not finish in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Held {
    /// Who, if it is known.
    pub by: Option<Holder>,
    /// How long it was waited for.
    pub waited: Duration,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.by {
            Some(by) => write!(f, "the store of images is in use by process {} ({})", by.pid, by.what)?,
            None => write!(f, "the store of images is in use by another process")?,
        }
        write!(f, "; waited {} s for it: try again when it is done, or wait longer", self.waited.as_secs())
    }
}
