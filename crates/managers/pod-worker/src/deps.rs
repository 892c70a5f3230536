//! What a worker works with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cgroup_values::{HostFacts, LimitRules};
use container_config::NodeSettings;
use model::allocation::Resizable;
use ports::hook::HookHttp;
use ports::host::HostFs;
use ports::journal::Journal;

/// Settings, the same for every worker of the node.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the pod and container configurations need to know of the node.
    pub node: NodeSettings,
    /// Facts of the host for resource numbers.
    pub facts: HostFacts,
    /// The operator's rules for resource numbers.
    pub rules: LimitRules,
    /// `clusterDNS`.
    pub cluster_dns: Vec<String>,
    /// `resolvConf`; `None`: explicitly empty.
    pub resolv_conf: Option<PathBuf>,
    /// Folder of the legacy log links, `/var/log/containers`.
    pub container_logs_dir: PathBuf,
    /// `syncFrequency`: how often a healthy pod is looked at without an event.
    pub sync_frequency: Duration,
    /// `crashLoopBackOff.maxContainerRestartPeriod`.
    pub crash_backoff_max: Duration,
    /// The gate RestartAllContainersOnContainerExits.
    pub restart_all_containers: bool,
    /// What can be resized in place, by the feature gates.
    pub resizable: Resizable,
    /// Dead instances to keep per container, at least 1.
    pub dead_per_container: usize,
}

/// What a worker works with, beside its crew.
#[derive(Clone)]
pub struct Deps {
    /// Settings.
    pub config: Arc<Config>,
    /// Pod files and logs.
    pub fs: Arc<dyn HostFs>,
    /// Lifecycle hooks over HTTP.
    pub http: Arc<dyn HookHttp>,
    /// Back-off and start time outlive the daemon here.
    pub journal: Arc<dyn Journal>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("pod_worker::Deps")
    }
}
