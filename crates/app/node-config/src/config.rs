//! The typed configuration and its defaults.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use model::quantity::Quantity;

use crate::feature_gates::FeatureGates;

/// How cgroups are named and made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupDriver {
    /// Plain directories.
    Cgroupfs,
    /// Slices of systemd.
    Systemd,
}

/// One entry of `enforceNodeAllocatable`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Enforce {
    /// Limit all pods together.
    Pods,
    /// Limit the cgroup of system daemons.
    SystemReserved,
    /// Limit the cgroup of Kubernetes daemons.
    KubeReserved,
    /// As `SystemReserved`, CPU only.
    SystemReservedCompressible,
    /// As `KubeReserved`, CPU only.
    KubeReservedCompressible,
}

/// What pods may do with swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapBehavior {
    /// Nothing.
    NoSwap,
    /// Burstable pods in proportion to their memory request (cgroup v2).
    LimitedSwap,
}

/// Form of the daemon's own log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Resources set aside, by name (`cpu`, `memory`, `ephemeral-storage`, `pid`).
pub type Reserved = BTreeMap<String, Quantity>;

/// The node's configuration. Names follow the fields of KubeletConfiguration; units are in the types. [`Default`] gives the
/// defaults of a kubelet 1.36 with an empty configuration file.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeConfig {
    /// Folder or file with static pods; `None`: no file source.
    pub static_pod_path: Option<PathBuf>,
    /// Period of the complete look at `static_pod_path`.
    pub file_check_frequency: Duration,
    /// Longest time between two syncs of a pod.
    pub sync_frequency: Duration,
    /// Root of pod log folders.
    pub pod_logs_dir: PathBuf,

    /// Socket of the container runtime, always `unix://`.
    pub container_runtime_endpoint: String,
    /// Socket of the image service; the runtime's unless set.
    pub image_service_endpoint: String,
    /// Deadline of CRI calls that name none of their own.
    pub runtime_request_timeout: Duration,

    /// Driver to use when the runtime does not name its own.
    pub cgroup_driver: CgroupDriver,
    /// Cgroup below which pods live; empty: the root.
    pub cgroup_root: String,
    /// Whether there are QoS and pod cgroups.
    pub cgroups_per_qos: bool,
    /// Where node allocatable is enforced; empty: nowhere.
    pub enforce_node_allocatable: Vec<Enforce>,
    /// Set aside for system daemons.
    pub system_reserved: Reserved,
    /// Set aside for Kubernetes daemons.
    pub kube_reserved: Reserved,
    /// Cgroup of system daemons; empty: none.
    pub system_reserved_cgroup: String,
    /// Cgroup of Kubernetes daemons; empty: none.
    pub kube_reserved_cgroup: String,
    /// Whether CPU limits become CFS quotas.
    pub cpu_cfs_quota: bool,
    /// CFS period.
    pub cpu_cfs_quota_period: Duration,
    /// Most processes in a pod; `None`: no limit.
    pub pod_pids_limit: Option<u64>,
    /// Kill one process on OOM, not the container; `None`: as the cgroup version has it (v1 yes, v2 no).
    pub single_process_oom_kill: Option<bool>,
    /// Refuse to start while swap is on.
    pub fail_swap_on: bool,
    /// What pods may do with swap.
    pub swap_behavior: SwapBehavior,
    /// Refuse to start on cgroup v1.
    pub fail_cgroup_v1: bool,

    /// DNS servers of the cluster.
    pub cluster_dns: Vec<IpAddr>,
    /// Domain of the cluster; empty: none.
    pub cluster_domain: String,
    /// Resolver file of the host; `None`: pods get nothing from the host.
    pub resolv_conf: Option<PathBuf>,

    /// One image pull at a time.
    pub serialize_image_pulls: bool,
    /// Most image pulls at a time; `None`: no limit.
    pub max_parallel_image_pulls: Option<u32>,
    /// Image pulls per second; 0: no limit.
    pub registry_pull_qps: u32,
    /// Burst of image pulls.
    pub registry_burst: u32,

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
    pub user_namespace_ids_per_pod: u64,

    /// Size at which a container log is rotated, bytes; `None`: never.
    pub container_log_max_size: Option<u64>,
    /// Log files kept per container.
    pub container_log_max_files: u32,
    /// Rotations at a time.
    pub container_log_max_workers: u32,
    /// Period of looking at log sizes.
    pub container_log_monitor_interval: Duration,

    /// Events per second and object source; 0: no limit.
    pub event_record_qps: u32,
    /// Burst of events.
    pub event_burst: u32,
    /// `oom_score_adj` of this daemon.
    pub oom_score_adj: i32,
    /// Form of the daemon's log.
    pub log_format: LogFormat,
    /// Verbosity of the daemon's log, as in klog.
    pub log_verbosity: u32,
    /// Feature gates, with what the file sets.
    pub feature_gates: FeatureGates,
}

impl Default for NodeConfig {
    fn default() -> Self {
        const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";
        Self {
            static_pod_path: None,
            file_check_frequency: Duration::from_secs(20),
            sync_frequency: Duration::from_secs(60),
            pod_logs_dir: PathBuf::from("/var/log/pods"),
            container_runtime_endpoint: CONTAINERD.to_owned(),
            image_service_endpoint: CONTAINERD.to_owned(),
            runtime_request_timeout: Duration::from_secs(120),
            cgroup_driver: CgroupDriver::Cgroupfs,
            cgroup_root: String::new(),
            cgroups_per_qos: true,
            enforce_node_allocatable: vec![Enforce::Pods],
            system_reserved: Reserved::new(),
            kube_reserved: Reserved::new(),
            system_reserved_cgroup: String::new(),
            kube_reserved_cgroup: String::new(),
            cpu_cfs_quota: true,
            cpu_cfs_quota_period: Duration::from_millis(100),
            pod_pids_limit: None,
            single_process_oom_kill: None,
            fail_swap_on: true,
            swap_behavior: SwapBehavior::NoSwap,
            fail_cgroup_v1: true,
            cluster_dns: Vec::new(),
            cluster_domain: String::new(),
            resolv_conf: Some(PathBuf::from("/etc/resolv.conf")),
            serialize_image_pulls: true,
            max_parallel_image_pulls: None,
            registry_pull_qps: 5,
            registry_burst: 10,
            max_pods: 110,
            pods_per_core: 0,
            max_container_restart_period: Duration::from_secs(300),
            seccomp_default: false,
            allowed_unsafe_sysctls: Vec::new(),
            user_namespace_ids_per_pod: 65536,
            container_log_max_size: Some(10 * 1024 * 1024),
            container_log_max_files: 5,
            container_log_max_workers: 1,
            container_log_monitor_interval: Duration::from_secs(10),
            event_record_qps: 50,
            event_burst: 100,
            oom_score_adj: -999,
            log_format: LogFormat::Text,
            log_verbosity: 0,
            feature_gates: FeatureGates::default(),
        }
    }
}
