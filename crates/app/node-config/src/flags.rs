//! The command line of a kubelet (interfaces 2): `kubelet ...` and `bosun run ...`.

mod own;
mod split;
mod table;
mod values;

pub mod help;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::error::Warning;

pub(crate) use own::check;
pub use split::FlagError;

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
    /// `--enable-faults` (bosun only): `bosun fault` may inject faults.
    pub enable_faults: bool,
    /// `--pod-store` (bosun only): the API server's pods are kept here and run on while it is away, also after a reboot.
    pub pod_store: bool,
    /// `--pod-store-wait` (bosun only): how long the API server has to answer after a start before stored pods count.
    pub pod_store_wait: Duration,
    /// `--object-cache` (bosun only): configMaps and secrets of pods here are kept, sealed, for the same case.
    pub object_cache: bool,
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
            enable_faults: false,
            pod_store: true,
            pod_store_wait: Duration::from_secs(5),
            object_cache: true,
            log: None,
            overrides: Vec::new(),
            given: Vec::new(),
            warnings: Vec::new(),
            notices: Vec::new(),
        }
    }
}

/// What a command line asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// Run the node.
    Run(Box<Flags>),
    /// Print the help: `-h`, `--help`.
    Help,
    /// Print this line: `--version`.
    Version(String),
}

/// Version of Kubernetes whose kubelet this daemon stands for; kubeadm and others read it from `--version`.
pub const KUBERNETES_VERSION: &str = "v1.36.2";

/// Reads a command line, without the program's name.
///
/// # Errors
/// The first flag that is unknown, was removed, lacks its value or has a malformed one; an argument that is no flag. Values
/// that are well-formed and not allowed are reported by [`crate::configure`].
pub fn parse(args: &[String]) -> Result<Asked, FlagError> {
    let split = split::split(args)?;
    if split.help {
        return Ok(Asked::Help);
    }
    if let Some(version) = split.version {
        return Ok(Asked::Version(version));
    }
    Ok(Asked::Run(Box::new(split.flags)))
}

/// A flag as a list of them shows it.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    /// How the value of nothing is written.
    pub(crate) empty: &'static str,
    /// What stands between a name and its value.
    pub(crate) between: char,
    pub(crate) duration: bool,
    pub(crate) secret: bool,
}

/// The flags that a kubelet 1.36 lists, and those of bosun. Those that are only swallowed for old installers are not here.
pub(crate) fn listed() -> impl Iterator<Item = Listed> {
    table::FLAGS.iter().filter(|f| f.name != "pod-infra-container-image").map(|f| Listed {
        name: f.name,
        empty: f.empty(),
        between: f.between(),
        duration: f.kind == table::Kind::Duration,
        secret: f.is_secret(),
    })
}

/// Whether a word such as `--fail-swap-on` is a switch: it takes no next word as its value.
#[must_use]
pub fn is_switch(word: &str) -> bool {
    let name = word.trim_start_matches('-').replace('_', "-");
    matches!(name.as_str(), "help" | "version") || table::find(&name).is_some_and(table::Flag::is_switch)
}
