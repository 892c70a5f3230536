//! Pods: where they come from, what they may do, and what is kept of them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where static pods come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodSources {
    /// Folder or file with static pods; `None`: no file source.
    pub static_pod_path: Option<PathBuf>,
    /// Period of the complete look at `static_pod_path`.
    pub file_check_frequency: Duration,
    /// `staticPodURL`: where static pods are fetched from; `None`: no such source.
    pub static_pod_url: Option<String>,
    /// `staticPodURLHeader`: names and values sent with it, in order; secrets may be among them.
    pub static_pod_url_headers: Vec<(String, String)>,
    /// `httpCheckFrequency`: period of fetching `static_pod_url`.
    pub http_check_frequency: Duration,
}

impl Default for PodSources {
    fn default() -> Self {
        Self {
            static_pod_path: None,
            file_check_frequency: Duration::from_secs(20),
            static_pod_url: None,
            static_pod_url_headers: Vec::new(),
            http_check_frequency: Duration::from_secs(20),
        }
    }
}

/// Pods: how many, how often they are looked after, and what they may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pods {
    /// Longest time between two syncs of a pod.
    pub sync_frequency: Duration,
    /// Root of pod log folders.
    pub logs_dir: PathBuf,
    /// Most pods on this node.
    pub max_pods: u32,
    /// Most pods per core; 0: no such limit.
    pub pods_per_core: u32,
    /// Ceiling of the crash-loop back-off.
    pub max_container_restart_period: Duration,
    /// RuntimeDefault seccomp profile where a pod names none.
    pub seccomp_default: bool,
    /// Patterns of unsafe sysctls that pods may set.
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Ids in the user namespace of a pod.
    pub user_namespace_ids_per_pod: u32,
    /// `volumeStatsAggPeriod`: longest age of a volume's usage in `/stats/summary`; `None` (negative): not measured.
    pub volume_stats_agg_period: Option<Duration>,
}

impl Default for Pods {
    fn default() -> Self {
        Self {
            sync_frequency: Duration::from_secs(60),
            logs_dir: PathBuf::from("/var/log/pods"),
            max_pods: 110,
            pods_per_core: 0,
            max_container_restart_period: Duration::from_secs(300),
            seccomp_default: false,
            allowed_unsafe_sysctls: Vec::new(),
            user_namespace_ids_per_pod: 65536,
            volume_stats_agg_period: Some(Duration::from_secs(60)),
        }
    }
}

/// Names in pods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dns {
    /// DNS servers of the cluster.
    pub cluster_dns: Vec<IpAddr>,
    /// Domain of the cluster; empty: none.
    pub cluster_domain: String,
    /// Resolver file of the host; `None`: pods get nothing from the host.
    pub resolv_conf: Option<PathBuf>,
}

impl Default for Dns {
    fn default() -> Self {
        Self {
            cluster_dns: Vec::new(),
            cluster_domain: String::new(),
            resolv_conf: Some(PathBuf::from("/etc/resolv.conf")),
        }
    }
}

/// Rotation of container logs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerLogs {
    /// Size at which a container log is rotated, bytes; `None`: never.
    pub max_size: Option<u64>,
    /// Log files kept per container.
    pub max_files: u32,
    /// Rotations at a time.
    pub max_workers: u32,
    /// Period of looking at log sizes.
    pub monitor_interval: Duration,
}

impl Default for ContainerLogs {
    fn default() -> Self {
        Self {
            max_size: Some(10 * 1024 * 1024),
            max_files: 5,
            max_workers: 1,
            monitor_interval: Duration::from_secs(10),
        }
    }
}
