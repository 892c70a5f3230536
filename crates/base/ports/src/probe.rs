//! Probes that go over the network.

use std::time::Duration;

use async_trait::async_trait;
use model::probe::ProbeOutcome;

pub use model::probe::NetTarget;

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetAttempt {
    /// How it ended.
    pub outcome: ProbeOutcome,
    /// Text for the event.
    pub output: String,
}

/// Carries network probes out.
#[async_trait]
pub trait NetProber: Send + Sync + 'static {
    /// One attempt; ends within `timeout`, which covers the whole exchange. Dropping the future cancels it.
    async fn probe(&self, target: NetTarget, timeout: Duration) -> NetAttempt;
}
