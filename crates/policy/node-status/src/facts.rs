//! What configuration says and what was seen.

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::core::{NodeRuntimeHandler, Taint};
use model::node::Pressure;
use model::resources::ResourceList;

/// What does not change while the daemon runs.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Name of the Node.
    pub name: String,
    /// Host name as the label and the `Hostname` address carry it.
    pub hostname: String,
    /// `--node-labels`.
    pub labels: BTreeMap<String, String>,
    /// `registerWithTaints`.
    pub taints: Vec<Taint>,
    /// `--register-schedulable=false`.
    pub unschedulable: bool,
    /// `providerID`.
    pub provider_id: Option<String>,
    /// `--cloud-provider=external`.
    pub external_cloud: bool,
    /// `--node-ip`; empty: to be found.
    pub node_ips: Vec<IpAddr>,
    /// `enableControllerAttachDetach`.
    pub controller_attach_detach: bool,
    /// `localStorageCapacityIsolation`: ephemeral storage is a resource.
    pub local_storage: bool,
    /// `nodeStatusMaxImages`; `None`: all.
    pub max_images: Option<usize>,
    /// Most pods, for a machine that cannot be read.
    pub max_pods: i64,
    /// Port of the node's own server.
    pub port: i32,
    /// Version that the node reports, e.g. `v1.36.2`.
    pub version: String,
    /// Architecture in Go's words, e.g. `amd64`.
    pub arch: String,
    /// Features that are declared, sorted; absent: the gate NodeDeclaredFeatures is off.
    pub declared_features: Option<Vec<String>>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// SMBIOS UUID.
    pub system_uuid: String,
    /// Random id of this boot.
    pub boot_id: String,
    /// All swap.
    pub swap_bytes: u64,
    /// Whole machine, `pods` and `hugepages-*` included.
    pub capacity: ResourceList,
    /// What pods may use of it.
    pub allocatable: ResourceList,
}

/// Name and version of the container runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeVersion {
    /// `containerd`.
    pub name: String,
    /// Empty: unknown.
    pub version: String,
}

/// An image on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// References by digest, in the runtime's order.
    pub digests: Vec<String>,
    /// References by tag, in the runtime's order.
    pub tags: Vec<String>,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// What was seen for one report.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Addresses that the node goes by, primary first, or why there are none.
    pub addresses: Option<Result<Vec<IpAddr>, String>>,
    /// `None`: cannot be read; the node then has no CPU and no memory.
    pub machine: Option<Machine>,
    /// Kernel release.
    pub kernel_version: String,
    /// `PRETTY_NAME` of os-release.
    pub os_image: String,
    /// `None`: it has not spoken yet, and what the Node says stays.
    pub runtime: Option<RuntimeVersion>,
    /// `None`: cannot be listed.
    pub images: Option<Vec<Image>>,
    /// `None`: not known yet, and what the Node says stays.
    pub runtime_handlers: Option<Vec<NodeRuntimeHandler>>,
    /// Of the runtime's features; `None`: it tells of none.
    pub supplemental_groups_policy: Option<bool>,
    /// Volumes that must stay attached, sorted; `None`: not known yet, and what the Node says stays.
    pub volumes_in_use: Option<Vec<String>>,
    /// What runs short.
    pub pressures: Vec<Pressure>,
    /// Why the node is not ready, in order; empty: it is.
    pub not_ready: Vec<String>,
}
