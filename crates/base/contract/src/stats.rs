//! StatsManager: what node, pods and containers use. Asked by the server; nothing is measured while nobody asks.

use actor::AskError;
use serde::{Deserialize, Serialize};

/// Why there are no numbers. The text is what the endpoint shows after its prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct StatsError {
    /// Text for people.
    pub message: String,
}

impl From<AskError> for StatsError {
    fn from(e: AskError) -> Self {
        Self { message: format!("stats manager: {e}") }
    }
}

/// What `/stats/summary` answers. Concurrent asks share one gathering; an answer may be a second old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarise {
    /// Only processor and memory: cheaper, for those who ask often.
    pub only_cpu_and_memory: bool,
}
/// What `/metrics/resource` answers, as text. Never fails: a gathering that did says so in `resource_scrape_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource;
/// What `/metrics/cadvisor` answers, as text. May be 10 s old; each sample has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cadvisor;
