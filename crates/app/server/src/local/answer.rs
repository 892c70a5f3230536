//! Answers of the local socket, as both ends know them.

use std::collections::BTreeMap;

use model::core::Pod;
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
}
