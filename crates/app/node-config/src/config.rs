//! The typed configuration and its defaults.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use model::core::Taint;
use model::node::{CgroupDriver, SwapBehavior};
use model::quantity::Quantity;

use crate::feature_gates::FeatureGates;

pub(crate) mod eviction;
mod server;

pub use eviction::{Eviction, SoftThreshold, Threshold};
pub use server::{Authentication, Authorization, AuthorizationMode, Server, ServerTls, TlsVersion};

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

/// Form of the daemon's own log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// How changes of configMaps and secrets are noticed (`configMapAndSecretChangeDetectionStrategy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeDetection {
    /// Ask the API server at each sync of a pod.
    Get,
    /// As `Get`, with answers kept for a while.
    Cache,
    /// A watch per object that pods refer to.
    Watch,
}

/// Whose pull credentials are checked before an image on disk is used (`imagePullCredentialsVerificationPolicy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PullVerification {
    /// Nobody's.
    NeverVerify,
    /// All but for images that were there before the node.
    NeverVerifyPreloadedImages,
    /// All but for images of the allowlist.
    NeverVerifyAllowlistedImages,
    /// Everybody's.
    AlwaysVerify,
}

/// Verbosity of single source files (`logging.vmodule`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileVerbosity {
    /// Glob over the name of a source file without its ending.
    pub file_pattern: String,
    /// Verbosity of those files, as in klog.
    pub verbosity: u32,
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
    /// `staticPodURL`: where static pods are fetched from; `None`: no such source.
    pub static_pod_url: Option<String>,
    /// `staticPodURLHeader`: names and values sent with it, in order; secrets may be among them.
    pub static_pod_url_headers: Vec<(String, String)>,
    /// `httpCheckFrequency`: period of fetching `static_pod_url`.
    pub http_check_frequency: Duration,
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

    /// `kubeAPIQPS`: requests per second to the API server (events and heartbeats apart), at least 1: a 0 in the file means 5
    /// and is replaced here.
    pub kube_api_qps: u32,
    /// `kubeAPIBurst`: burst of requests to the API server; 0 in the file is kept.
    pub kube_api_burst: u32,
    /// `contentType`: media type of requests to the API server.
    pub content_type: String,
    /// `eventRecordQPS`: events per second; 0: no limit.
    pub event_record_qps: u32,
    /// `eventBurst`: burst of events.
    pub event_burst: u32,
    /// `configMapAndSecretChangeDetectionStrategy`.
    pub change_detection: ChangeDetection,

    /// `registerNode`: make the Node object at the API server.
    pub register_node: bool,
    /// `registerWithTaints`: taints of the Node object when it is made, `timeAdded` unset.
    pub register_with_taints: Vec<Taint>,
    /// `providerID`: `spec.providerID` of the Node object when it is made; `None`: not set.
    pub provider_id: Option<String>,
    /// `nodeStatusUpdateFrequency`: how often the node's status is worked out; a change is written at once.
    pub node_status_update_frequency: Duration,
    /// `nodeStatusReportFrequency`: how often a status is written that did not change. Follows
    /// `nodeStatusUpdateFrequency` where only that is set.
    pub node_status_report_frequency: Duration,
    /// `nodeLeaseDurationSeconds`: life of the node's Lease; it is renewed after a quarter of it.
    pub node_lease_duration: Duration,
    /// `nodeStatusMaxImages`: images listed in the node's status; `None` (-1): all.
    pub node_status_max_images: Option<u32>,
    /// `podCIDR`: addresses of pods in standalone mode; `None`: the API server's or the CNI's.
    pub pod_cidr: Option<String>,
    /// `enableControllerAttachDetach`: the node carries `volumes.kubernetes.io/controller-managed-attach-detach`.
    pub enable_controller_attach_detach: bool,
    /// `localStorageCapacityIsolation`: the node reports ephemeral storage.
    pub local_storage_capacity_isolation: bool,

    /// `rotateCertificates`: a new client certificate is asked for before the old one ends.
    pub rotate_certificates: bool,
    /// `serverTLSBootstrap`: the serving certificate comes from the cluster (CSR).
    pub server_tls_bootstrap: bool,
    /// `address`: where the server listens.
    pub address: IpAddr,
    /// `port`: port of the server, published in the node's status.
    pub port: u16,
    /// `healthzBindAddress`: where `/healthz` is served.
    pub healthz_bind_address: IpAddr,
    /// `healthzPort`; `None` (0): not served.
    pub healthz_port: Option<u16>,

    /// What the server on `port` offers, and to whom.
    pub server: Server,
    /// `volumeStatsAggPeriod`: longest age of a volume's usage in `/stats/summary`; `None` (negative): not measured.
    pub volume_stats_agg_period: Option<Duration>,

    /// `evictionHard`, `evictionSoft` and what belongs to them. The hard thresholds of memory and disk count for node
    /// allocatable.
    pub eviction: Eviction,
    /// `imageMinimumGCAge`: an image unused for less time is kept.
    pub image_minimum_gc_age: Duration,
    /// `imageMaximumGCAge`: an image unused for longer is deleted; `None` (0): no such limit.
    pub image_maximum_gc_age: Option<Duration>,
    /// `imageGCHighThresholdPercent`: disk usage, percent, from which images are deleted. 100 without
    /// `imageMaximumGCAge`: never.
    pub image_gc_high_threshold_percent: u8,
    /// `imageGCLowThresholdPercent`: disk usage, percent, down to which images are deleted.
    pub image_gc_low_threshold_percent: u8,
    /// `imagePullCredentialsVerificationPolicy`.
    pub pull_verification: PullVerification,
    /// `preloadedImagesVerificationAllowlist`: images without tag or digest; `/*` at the end stands for all below.
    pub pull_verification_allowlist: Vec<String>,

    /// `oom_score_adj` of this daemon.
    pub oom_score_adj: i32,
    /// Form of the daemon's log.
    pub log_format: LogFormat,
    /// `logging.verbosity`, `-v`: verbosity of the daemon's log, as in klog.
    pub log_verbosity: u32,
    /// `logging.vmodule`: verbosity of single files (text form only).
    pub log_vmodule: Vec<FileVerbosity>,
    /// `logging.options.<format>.splitStream`: lines of no error go to standard output.
    pub log_split_stream: bool,
    /// Feature gates, with what the file sets.
    pub feature_gates: FeatureGates,
}

impl Default for NodeConfig {
    fn default() -> Self {
        const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";
        Self {
            static_pod_path: None,
            file_check_frequency: Duration::from_secs(20),
            static_pod_url: None,
            static_pod_url_headers: Vec::new(),
            http_check_frequency: Duration::from_secs(20),
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
            kube_api_qps: 50,
            kube_api_burst: 100,
            content_type: "application/vnd.kubernetes.protobuf".to_owned(),
            event_record_qps: 50,
            event_burst: 100,
            change_detection: ChangeDetection::Watch,
            register_node: true,
            register_with_taints: Vec::new(),
            provider_id: None,
            node_status_update_frequency: Duration::from_secs(10),
            node_status_report_frequency: Duration::from_secs(300),
            node_lease_duration: Duration::from_secs(40),
            node_status_max_images: Some(50),
            pod_cidr: None,
            enable_controller_attach_detach: true,
            local_storage_capacity_isolation: true,
            rotate_certificates: false,
            server_tls_bootstrap: false,
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: 10250,
            healthz_bind_address: Ipv4Addr::LOCALHOST.into(),
            healthz_port: Some(10248),
            server: Server::default(),
            volume_stats_agg_period: Some(Duration::from_secs(60)),
            eviction: Eviction::default(),
            image_minimum_gc_age: Duration::from_secs(120),
            image_maximum_gc_age: None,
            image_gc_high_threshold_percent: 85,
            image_gc_low_threshold_percent: 80,
            pull_verification: PullVerification::NeverVerifyPreloadedImages,
            pull_verification_allowlist: Vec::new(),
            oom_score_adj: -999,
            log_format: LogFormat::Text,
            log_verbosity: 0,
            log_vmodule: Vec::new(),
            log_split_stream: false,
            feature_gates: FeatureGates::default(),
        }
    }
}
