//! NodeManager: the Node object of this machine. Everybody reads its view; PluginManager has words of drivers put onto it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use actor::AskError;
use model::Timestamp;
use model::core::Node;

/// Where the Node object of the view comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum NodeOrigin {
    /// Made from facts of the host: standalone, or the API server has not answered yet.
    Host,
    /// The API server's own, from the watch of it.
    Api,
    /// Nothing is known yet.
    #[default]
    Unknown,
}
model::tolerant!(NodeOrigin, else NodeOrigin::Unknown);

/// What NodeManager publishes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeView {
    /// The Node. With origin `Host` it has no UID.
    pub node: Option<Arc<Node>>,
    /// Where it comes from. The pod source of the API server starts with `Api`.
    pub origin: NodeOrigin,
    /// Registered during this life of the daemon (or `registerNode: false`).
    pub registered: bool,
    /// Latest verdict and its message: may the node take pods.
    pub ready: Option<(bool, String)>,
    /// Pressure conditions that hold now, e.g. `MemoryPressure`: newer than the ones in `node`.
    pub pressure: Vec<String>,
    /// The machine is going down.
    pub shutting_down: bool,
    /// Last lease renewal that succeeded.
    pub lease_renewed_at: Option<Timestamp>,
    /// Last failure of registration, status or lease; cleared by a good one.
    pub error: Option<String>,
}

impl NodeView {
    /// UID of the API's Node object.
    #[must_use]
    pub fn api_uid(&self) -> Option<&str> {
        if self.origin != NodeOrigin::Api {
            return None;
        }
        self.node.as_ref().and_then(|n| n.metadata.uid.as_deref())
    }
}

/// Why the Node does not say what it was to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct NodeError {
    /// Text for people: what the driver is told after a prefix.
    pub message: String,
}

impl From<AskError> for NodeError {
    fn from(e: AskError) -> Self {
        Self { message: format!("node manager: {e}") }
    }
}

/// Note on the Node how a CSI driver calls it, and label it with the driver's topology. A label that is there with another
/// value is a failure. Idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetCsiNodeId {
    /// Name of the driver.
    pub driver: String,
    /// The driver's name of this node.
    pub node_id: String,
    /// Labels.
    pub topology: BTreeMap<String, String>,
}

/// The Node no longer says how this driver calls it. Labels stay. Idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearCsiNodeId {
    /// Name of the driver.
    pub driver: String,
}

/// How renewal of the node's lease goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseState {
    /// Last renewal that succeeded.
    pub renewed_at: Option<Timestamp>,
    /// Why the latest one failed.
    pub error: Option<String>,
}
