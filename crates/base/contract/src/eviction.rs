//! EvictionManager: what runs short on the node.

use serde::{Deserialize, Serialize};

/// What EvictionManager publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePressure {
    /// Pressure conditions that hold now, e.g. `MemoryPressure`, in the order in which a Node has them.
    pub conditions: Vec<String>,
}
