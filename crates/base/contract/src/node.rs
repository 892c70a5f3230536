//! NodeManager: the Node object of this machine. Asked by nobody but for a nudge; everybody reads its view.

use std::sync::Arc;

use actor::Inlet;
use model::Timestamp;
use model::core::Node;

use crate::view::Published;

/// Look at the host and report now instead of at the next period (a condition is known to have changed). Idempotent.
#[derive(Clone, Debug)]
pub struct RefreshNode;
message!(RefreshNode => ());

/// Where the Node object of the view comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeOrigin {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// Made from facts of the host: standalone, or the API server has not answered yet.
    Host,
    /// The API server's own, from the watch of it.
    Api,
}

/// What NodeManager publishes.
#[derive(Clone, Debug, Default, PartialEq)]
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

/// How others reach NodeManager.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    /// Route of [`RefreshNode`].
    pub refresh: Inlet<RefreshNode>,
    /// The node.
    pub view: Published<NodeView>,
}

impl Default for NodeHandle {
    fn default() -> Self {
        Self { refresh: Inlet::unbound("NodeManager.RefreshNode"), view: Published::default() }
    }
}

protocol! {
    /// What a NodeManager answers.
    NodeManagerProtocol for NodeHandle {
        refresh: RefreshNode,
    }
}
