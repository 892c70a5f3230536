//! StatsManager: what node, pods and containers use. Asked by the server; nobody is measured while nobody asks.

use std::sync::Arc;
use std::time::Duration;

use actor::{AskError, Inlet};

/// Why there are no numbers. The text is what the endpoint shows after its prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summarise {
    /// Only processor and memory: cheaper, for those who ask often.
    pub only_cpu_and_memory: bool,
}
/// What `/metrics/resource` answers, as text. Never fails: a gathering that did says so in `resource_scrape_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource;
/// What `/metrics/cadvisor` answers, as text. May be 10 s old; each sample has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadvisor;

message! {
    Summarise => Result<Arc<model::stats::Summary>, StatsError>,
    Resource => Arc<str>,
    Cadvisor => Result<Arc<str>, StatsError>,
}

/// Longest that an answer may take: Prometheus waits 10 s, the API server's proxy longer.
const DEADLINE: Duration = Duration::from_secs(30);

/// How others reach StatsManager.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct StatsHandle {
    pub summarise: Inlet<Summarise>,
    pub resource: Inlet<Resource>,
    pub cadvisor: Inlet<Cadvisor>,
}

impl Default for StatsHandle {
    fn default() -> Self {
        Self {
            summarise: Inlet::unbound("StatsManager.Summarise"),
            resource: Inlet::unbound("StatsManager.Resource"),
            cadvisor: Inlet::unbound("StatsManager.Cadvisor"),
        }
    }
}

#[allow(missing_docs, reason = "each method sends the message it is named after")]
impl StatsHandle {
    pub async fn summary(&self, only_cpu_and_memory: bool) -> Result<Arc<model::stats::Summary>, StatsError> {
        self.summarise.ask(Summarise { only_cpu_and_memory }, DEADLINE).await?
    }
    pub async fn resource(&self) -> Result<Arc<str>, StatsError> {
        Ok(self.resource.ask(Resource, DEADLINE).await?)
    }
    pub async fn cadvisor(&self) -> Result<Arc<str>, StatsError> {
        self.cadvisor.ask(Cadvisor, DEADLINE).await?
    }
}

protocol! {
    /// What a StatsManager answers.
    StatsManagerProtocol for StatsHandle {
        summarise: Summarise,
        resource: Resource,
        cadvisor: Cadvisor,
    }
}
