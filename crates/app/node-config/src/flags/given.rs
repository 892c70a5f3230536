//! What a command line says.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::error::Warning;

/// What only the command line says. Flags that mirror a field of the configuration (`--max-pods`, `--register-node`,
/// `--provider-id` ...) are not here: [`crate::configure`] writes them over the files, into [`crate::NodeConfig`].
#[derive(Clone, PartialEq, Debug)]
pub struct Flags {
    /// `--config`: KubeletConfiguration file.
    pub config: Option<PathBuf>,
    /// `--config-dir`: folder of drop-ins, `*.conf`.
    pub config_dir: Option<PathBuf>,
    /// `--kubeconfig`: how to reach the API server; `None`: standalone, no API server at all.
    pub kubeconfig: Option<PathBuf>,
    /// `--bootstrap-kubeconfig`: used while the kubeconfig is absent or of no use.
    pub bootstrap_kubeconfig: Option<PathBuf>,
    /// `--cert-dir`: folder of the node's own certificates.
    pub cert_dir: PathBuf,
    /// `--root-dir`: folder of pods, volumes and the journal.
    pub root_dir: PathBuf,
    /// `--hostname-override`, trimmed and in lower case; `None`: the host's name.
    pub hostname_override: Option<String>,
    /// `--node-ip`: at most one address of each family, primary first. A single `0.0.0.0` or `::` asks for an address of that
    /// family. Empty: found on the host.
    pub node_ips: Vec<IpAddr>,
    /// `--node-labels`: labels of the Node object when it is made.
    pub node_labels: BTreeMap<String, String>,
    /// `--cloud-provider=external`: the node starts with the taint `node.cloudprovider.kubernetes.io/uninitialized`.
    pub external_cloud_provider: bool,
    /// `--image-credential-provider-config`: a file, or a folder of files. Given together with the next one.
    pub image_credential_provider_config: Option<PathBuf>,
    /// `--image-credential-provider-bin-dir`: folder of the plugins.
    pub image_credential_provider_bin_dir: Option<PathBuf>,
    /// `--runtime-cgroups`: cgroup of the container runtime, for figures; `None`: not known.
    pub runtime_cgroups: Option<String>,
    /// `--lock-file`: locked while the daemon runs.
    pub lock_file: Option<PathBuf>,
    /// `--exit-on-lock-contention`: end when somebody else wants the lock file.
    pub exit_on_lock_contention: bool,
    /// `--minimum-container-ttl-duration`: a dead container is kept at least this long.
    pub minimum_container_ttl: Duration,
    /// `--maximum-dead-containers-per-container`: dead instances kept per container; `None` (negative): all.
    pub maximum_dead_containers_per_container: Option<u32>,
    /// `--maximum-dead-containers`: dead containers kept on the node; `None` (negative): all.
    pub maximum_dead_containers: Option<u32>,

    /// `--socket` (bosun only): socket for the CLI.
    pub socket: PathBuf,
    /// `--container-logs-dir` (bosun only): folder of the legacy log links.
    pub container_logs_dir: PathBuf,
    /// `--sysctl-dir` (bosun only): folder of the kernel parameters that are set or checked at start.
    pub sysctl_dir: PathBuf,
    /// `--enable-faults` (bosun only): `bosun fault` may inject faults.
    pub enable_faults: bool,
    /// `--pod-store` (bosun only): the API server's pods are kept here and run on while it is away, also after a reboot.
    pub pod_store: bool,
    /// `--pod-store-wait` (bosun only): how long the API server has to answer after a start before stored pods count.
    pub pod_store_wait: Duration,
    /// `--pod-store-after-boot` (bosun only): which stored pods start after a boot while the API server is silent.
    pub pod_store_after_boot: AfterBoot,
    /// `--pod-store-max-age` (bosun only): with `safe`, none of them when the API server was last heard longer ago.
    pub pod_store_max_age: Duration,
    /// `--object-cache` (bosun only): configMaps and secrets of pods here are kept, sealed, for the same case.
    pub object_cache: bool,
    /// `--eviction-early-looks` (bosun only): looks for pressure sooner than every ten seconds when memory falls fast.
    pub eviction_early_looks: bool,
    /// `--bosun-config` (bosun only): what no field of a KubeletConfiguration stands for.
    pub bosun_config: Option<PathBuf>,
    /// `--manager` (bosun only): managers in processes of their own, as written.
    pub managers: Vec<String>,
    /// `--log` (bosun only): log filter; wins over `-v`.
    pub log: Option<String>,

    /// Flags that stand for fields of the configuration.
    pub(crate) overrides: Vec<Override>,
    /// Every flag given, with its value as written, in order.
    pub given: Vec<(&'static str, String)>,
    /// What was odd: flags without effect.
    pub warnings: Vec<Warning>,
    /// Lines about deprecated flags, for standard error.
    pub notices: Vec<String>,
}

/// A flag that stands for a field.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Override {
    pub(crate) flag: &'static str,
    /// Key path, joined by dots.
    pub(crate) field: &'static str,
    pub(crate) value: Value,
}

/// Values of `--pod-store-after-boot`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterBoot {
    /// Those of which there may be two, unless the store is old.
    Safe,
    /// All.
    All,
    /// None: they wait.
    None,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            config: None,
            config_dir: None,
            kubeconfig: None,
            bootstrap_kubeconfig: None,
            cert_dir: PathBuf::from("/var/lib/kubelet/pki"),
            root_dir: PathBuf::from("/var/lib/kubelet"),
            hostname_override: None,
            node_ips: Vec::new(),
            node_labels: BTreeMap::new(),
            external_cloud_provider: false,
            image_credential_provider_config: None,
            image_credential_provider_bin_dir: None,
            runtime_cgroups: None,
            lock_file: None,
            exit_on_lock_contention: false,
            minimum_container_ttl: Duration::ZERO,
            maximum_dead_containers_per_container: Some(1),
            maximum_dead_containers: None,
            socket: PathBuf::from("/run/bosun/bosun.sock"),
            container_logs_dir: PathBuf::from("/var/log/containers"),
            sysctl_dir: PathBuf::from("/proc/sys"),
            enable_faults: false,
            pod_store: true,
            pod_store_wait: Duration::from_secs(5),
            pod_store_after_boot: AfterBoot::Safe,
            pod_store_max_age: Duration::from_secs(300),
            object_cache: true,
            eviction_early_looks: true,
            bosun_config: None,
            managers: Vec::new(),
            log: None,
            overrides: Vec::new(),
            given: Vec::new(),
            warnings: Vec::new(),
            notices: Vec::new(),
        }
    }
}
