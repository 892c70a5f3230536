//! What a pod looks like in CRI words: `PodSandboxConfig` and `ContainerConfig` from a pod and its context.
//!
//! Owns the names, annotations, environment, host name, `/etc/hosts`, DNS, port, security and mount rules of the node
//! (pod-lifecycle 5.2, 5.5 to 5.9; node-and-resources 6.15, 6.16, 7). Everything that the API server, the host or
//! another manager knows is an argument. Never reads a file, a clock or a random number, and never picks resource
//! numbers: these come in as ready `LinuxContainerResources`.
//!
//! Order of use for a container: [`environment`] -> [`sub_paths`] (the caller prepares them on the host) ->
//! [`etc_hosts`] (the caller writes it) -> [`container_config`].

#![forbid(unsafe_code)]

pub mod claims;
pub mod container;
pub mod devices;
pub mod dns;
pub mod env;
pub mod error;
pub mod gotext;
pub mod hostname;
pub mod hosts;
pub mod mounts;
pub mod names;
pub mod ports;
pub mod sandbox;
pub mod security;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;

pub use container::{ContainerInput, container_config};
pub use devices::{RawVolume, volume_devices};
pub use dns::{DnsInput, DnsSource, DnsWarning, ResolvConf, dns_config};
pub use env::{EnvInput, Environment, LookupError, NoObjects, ObjectLookup, ObjectMap, environment};
pub use error::ConfigError;
pub use hostname::{HostName, host_name};
pub use hosts::{HostsInput, etc_hosts};
pub use mounts::{MountInput, ResolvedVolume, VolumeSource, sub_paths};
pub use sandbox::{SandboxInput, sandbox_config};
pub use security::{ImageUser, user_namespace};

/// What is the same for every pod of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSettings {
    /// Root directory of the node daemon (`/var/lib/kubelet`).
    pub root_dir: String,
    /// Directory of pod logs (`podLogsDir`, `/var/log/pods`).
    pub pod_logs_dir: String,
    /// `clusterDomain`; empty: none.
    pub cluster_domain: String,
    /// `seccompDefault`: containers without a profile run under the runtime's default instead of unconfined.
    pub seccomp_default: bool,
    /// Whether SELinux is enabled on the host; relabelling is asked for only then.
    pub selinux: bool,
    /// `/sys/devices/system/cpu/cpuN/thermal_throttle` directories that exist on this host; masked by default.
    pub thermal_throttle_paths: Vec<String>,
    /// Addresses of the node, primary first (`status.hostIP`, `status.hostIPs`).
    pub host_ips: Vec<std::net::IpAddr>,
    /// Allocatable resources of the node; stand in for absent limits in the downward API.
    pub allocatable: std::collections::BTreeMap<String, model::k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
}
