//! What the routes stand on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use actor::{Effects, Kernel};
use contract::lookup::PodLookup;
use model::Timestamp;
use ports::runtime::ContainerRuntime;

/// Changes how much the daemon logs, as klog counts.
pub type SetVerbosity = Arc<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

/// The document of `/configz` as it is now; it changes when the runtime names its cgroup driver.
pub type Configz = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

/// What the routes stand on.
#[derive(Clone)]
pub struct Deps {
    /// Pods of this node.
    pub lookup: PodLookup,
    /// For `/run` and `/checkpoint`.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// For `/debug/pprof/`: actors are what this daemon has in place of goroutines.
    pub kernel: Kernel,
    /// Reads files.
    pub effects: Effects,
    /// `node_config::configz`.
    pub configz: Configz,
    /// `node_config::flagz`.
    pub flagz: Vec<(&'static str, String)>,
    /// For `/debug/flags/v`.
    pub set_verbosity: SetVerbosity,
    /// What is switched on, and where files are.
    pub settings: Settings,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("endpoints::Deps").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What is switched on, and where files are. [`Default`] is a node with the defaults of 1.36.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `enableDebuggingHandlers`. When off, do not merge the routers of streams and container logs: their paths are here, and
    /// answer 405.
    pub enable_debugging_handlers: bool,
    /// `enableSystemLogHandler`.
    pub enable_system_log_handler: bool,
    /// `enableSystemLogQuery`.
    pub enable_system_log_query: bool,
    /// `enableProfilingHandler`.
    pub enable_profiling_handler: bool,
    /// `enableDebugFlagsHandler`.
    pub enable_debug_flags_handler: bool,
    /// Gate `ContainerCheckpoint`.
    pub container_checkpoint: bool,
    /// Gate `ComponentStatusz`.
    pub component_statusz: bool,
    /// Gate `ComponentFlagz`.
    pub component_flagz: bool,
    /// Root of `/logs/`.
    pub system_log_dir: PathBuf,
    /// `podLogsDir`: links of `/logs/` may lead there too.
    pub pod_logs_dir: PathBuf,
    /// `--root-dir`: checkpoints are written below it.
    pub root_dir: PathBuf,
    /// How the journal is read: a program found by the search path.
    pub journalctl: PathBuf,
    /// Version shown on `/statusz`, without `v`.
    pub version: String,
    /// When the daemon started.
    pub started: (Timestamp, Instant),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enable_debugging_handlers: true,
            enable_system_log_handler: true,
            enable_system_log_query: false,
            enable_profiling_handler: true,
            enable_debug_flags_handler: true,
            container_checkpoint: true,
            component_statusz: true,
            component_flagz: true,
            system_log_dir: PathBuf::from("/var/log"),
            pod_logs_dir: PathBuf::from("/var/log/pods"),
            root_dir: PathBuf::from("/var/lib/kubelet"),
            journalctl: PathBuf::from("journalctl"),
            version: "1.36.2".to_owned(),
            started: (Timestamp(jiff::Timestamp::now().as_nanosecond() as i64), Instant::now()),
        }
    }
}

pub(crate) type Shared = axum::extract::State<Arc<Deps>>;
