//! What LogManager is made with.

use std::sync::Arc;
use std::time::Duration;

use ports::host::HostFs;
use ports::log::Compress;
use ports::runtime::ContainerRuntime;

/// Order among the effects on one log; made once for the life of the node.
pub type Serial = ::actor::Serial<model::ContainerId>;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// `containerLogMaxSize` in bytes: logs of this size or more are rotated. `None` (a negative size): never.
    pub max_size: Option<u64>,
    /// `containerLogMaxFiles`: the log and its rotated files together, at least 2.
    pub max_files: u32,
    /// `containerLogMaxWorkers`: logs that are rotated at the same time, at least 1.
    pub max_workers: u32,
    /// `containerLogMonitorInterval`: time between two looks at all logs.
    pub interval: Duration,
    /// Names of rotated files tell the time in this zone (a kubelet's: `jiff::tz::TimeZone::system()`).
    pub time_zone: jiff::tz::TimeZone,
}

/// What LogManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Told to reopen logs.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// The files.
    pub fs: Arc<dyn HostFs>,
    /// Compression.
    pub compress: Arc<dyn Compress>,
    /// Order among the effects on one log.
    pub serial: Serial,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("log_manager::Deps")
    }
}
