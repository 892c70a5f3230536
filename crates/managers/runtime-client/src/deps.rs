//! What RuntimeClient is made with.

use std::sync::Arc;
use std::time::Duration;

use ports::host::HostFs;
use ports::runtime::ContainerRuntime;

use crate::limits::CallLimits;

/// Periods of RuntimeClient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Relist period without events.
    pub relist_without_events: Duration,
    /// Relist period beside events at first, and after a relist found what events had not told.
    pub relist_at_first: Duration,
    /// Longest relist period: it doubles as long as events and relists agree.
    pub relist_at_most: Duration,
    /// Period of the Status poll.
    pub status: Duration,
    /// How long a Version answer is believed.
    pub version: Duration,
    /// Inspections of pods that run at once.
    pub inspections: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            relist_without_events: Duration::from_secs(1),
            relist_at_first: Duration::from_secs(10),
            relist_at_most: Duration::from_secs(60),
            status: Duration::from_secs(5),
            version: Duration::from_secs(60),
            inspections: 16,
        }
    }
}

/// What RuntimeClient works with; outlives its restarts.
#[derive(Clone)]
pub struct Deps {
    /// The runtime.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// Where containers leave their termination messages.
    pub fs: Arc<dyn HostFs>,
    /// How many calls run at once.
    pub limits: Arc<CallLimits>,
    /// Periods.
    pub config: Config,
}

impl Deps {
    /// With default periods.
    #[must_use]
    pub fn new(runtime: Arc<dyn ContainerRuntime>, fs: Arc<dyn HostFs>, limits: CallLimits) -> Self {
        Self { runtime, fs, limits: Arc::new(limits), config: Config::default() }
    }
}
