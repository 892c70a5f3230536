//! Answers of the local socket, as both ends know them.

use std::collections::BTreeMap;

use model::core::{Node, Pod};
use serde::{Deserialize, Serialize};

/// `GET /v1/pods`.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct PodItems {
    /// `v1`.
    pub api_version: String,
    /// `PodList`.
    pub kind: String,
    /// Every desired pod with the status that the API would see.
    pub items: Vec<Pod>,
}

/// `GET /v1/pods/{name}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PodDetail {
    /// The pod with its status.
    pub pod: Pod,
    /// Its worker, when it has one.
    pub worker: Option<WorkerLine>,
    /// Its recent events, oldest first.
    pub events: Vec<EventLine>,
}

/// One worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerLine {
    /// Where the pod is.
    pub phase: String,
    /// Cause of the latest step.
    pub cause: String,
    /// Last failure.
    pub error: Option<String>,
}

/// One event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventLine {
    /// `Normal` or `Warning`.
    pub kind: String,
    /// CamelCase reason.
    pub reason: String,
    /// `pod/<namespace>/<name>` with the field path in braces, or `node`.
    pub object: String,
    /// Text.
    pub message: String,
    /// Occurrences.
    pub count: u32,
    /// Latest occurrence, nanoseconds since the epoch.
    pub last_ns: i64,
}

/// `GET /v1/manifests`.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
pub struct Manifests {
    /// By path: `namespace/name` of the pod.
    pub accepted: BTreeMap<String, String>,
    /// By path: why not.
    pub refused: BTreeMap<String, Refused>,
    /// The folder itself.
    pub error: Option<String>,
}

/// A refused manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// One line per mistake.
    pub errors: Vec<String>,
    /// A previous good version of it still runs.
    pub keeps_old: bool,
}

/// `GET /v1/plugins`: one plugin that registers itself. Times are nanoseconds since the epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginLine {
    /// Its socket in the folder `plugins_registry`.
    pub socket: String,
    /// Name, as it says; empty while it has not said.
    pub name: String,
    /// Type, as it says.
    pub kind: String,
    /// Versions, as it says.
    pub versions: Vec<String>,
    /// Since when it is registered; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_ns: Option<i64>,
    /// Tries that failed, one after the other.
    pub failures: u32,
    /// Why the latest try failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of a CSI driver that is registered: the socket of its Node service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Of a CSI driver: its own name of this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Of a CSI driver: most volumes of this node; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_volumes: Option<i32>,
}

/// `GET /v1/volumes`: one volume of a pod, or one of a CSI driver that no pod has. Times are nanoseconds since the epoch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeLine {
    /// `<namespace>/<name>`, or the UID of a pod that is not known; empty: no pod has it.
    pub pod: String,
    /// Name in the pod, as far as it is known.
    pub volume: String,
    /// `csi`, `local`, `hostPath`, `emptyDir`, ...; empty: not known yet.
    pub kind: String,
    /// CSI driver.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver: String,
    /// What the driver calls it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub handle: String,
    /// Claim that it is bound to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim: String,
    /// Where it is on this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `Waiting`, `Uncertain`, `Staged`, `Mounted`, `Leaving`, `Unreadable`.
    pub stage: String,
    /// Since when, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<i64>,
    /// Why the latest try failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The call to the driver that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Since when that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_since_ns: Option<i64>,
}

/// `GET /v1/actors`: the kernel's own lines, as JSON.
pub type Actors = Vec<serde_json::Value>;

/// `GET /v1/node`.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// Name of the node.
    pub name: String,
    /// `containerd 1.6.20`, empty before the first contact.
    pub runtime: String,
    /// RuntimeReady.
    pub runtime_ready: bool,
    /// Empty: ready; else why not.
    pub network: String,
    /// Last problem with the runtime.
    pub error: Option<String>,
    /// What tells of container changes: `cri-stream`, `containerd-events`, `relist`.
    pub events: String,
    /// Rows that a relist found different from what events had told.
    pub divergences: u64,
    /// Pod rows may be outdated.
    pub stale: bool,
    /// Every source has delivered.
    pub sources_ready: bool,
    /// What the API server knows of this node; absent: standalone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<Registration>,
    /// The source of pods at the API server; absent: standalone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiLine>,
    /// Certificates that the node keeps itself.
    #[serde(default)]
    pub certificates: CertificateLine,
    /// Whether the node may take pods; absent before the first verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Why it is ready or not.
    #[serde(default)]
    pub ready_message: String,
    /// Pressure conditions that hold now.
    #[serde(default)]
    pub pressure: Vec<String>,
    /// The machine is going down.
    #[serde(default)]
    pub shutting_down: bool,
    /// The Node object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Node>,
}

/// This node at the API server.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// Registered during this life of the daemon.
    pub registered: bool,
    /// The Node object comes from the API server, not from facts of the host.
    pub from_api: bool,
    /// Latest good renewal of the lease, nanoseconds since the epoch.
    pub lease_renewed_ns: Option<i64>,
    /// Last failure of registration, status or lease.
    pub error: Option<String>,
}

/// The pods of the API server.
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct ApiLine {
    /// A full set has been delivered.
    pub synced: bool,
    /// What runs comes from the pod store; the server has not been heard yet.
    pub from_store: bool,
    /// Pods in the last set.
    pub pods: usize,
    /// Last failure of list or watch.
    pub error: Option<String>,
}

/// Ends of certificates, nanoseconds since the epoch; absent: the node keeps none (files of others may be in use).
#[derive(Debug, Clone, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct CertificateLine {
    /// Client certificate.
    pub client_expires_ns: Option<i64>,
    /// Serving certificate.
    pub serving_expires_ns: Option<i64>,
    /// Last failure.
    pub error: Option<String>,
}
