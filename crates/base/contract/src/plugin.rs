//! PluginManager: plugins that register themselves in the folder `plugins_registry`, and what each is registered as.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actor::AskError;
use model::Timestamp;
use model::k8s_openapi::api::storage::v1::CSIDriver;

/// Ask a CSI driver again what it says of this node, and tell the API server (the CSINode). Idempotent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshCsiDriver {
    /// Name of the driver.
    pub driver: String,
}

/// Why the API server does not have what a driver says of this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct RefreshError {
    /// Text for people.
    pub message: String,
}

impl From<AskError> for RefreshError {
    fn from(e: AskError) -> Self {
        Self { message: format!("plugin manager: {e}") }
    }
}

/// A CSI driver that is registered: volumes of it can be used. The board's key is its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CsiDriver {
    /// The unix socket of its Node service, which calls go to.
    pub endpoint: PathBuf,
    /// Versions of CSI that it offers.
    pub versions: Vec<String>,
    /// Since when.
    pub registered_at: Timestamp,
    /// Another one with each registration of a driver of this name: a driver that was started anew.
    pub generation: u64,
    /// The driver's own name of this node.
    pub node_id: String,
    /// How many volumes of it the node may have; `None`: no limit is known.
    pub max_volumes: Option<i32>,
    /// Where the node is, as the driver sees it: label to value.
    pub topology: BTreeMap<String, String>,
    /// What the API server says of it, as it was last heard; `None`: it has no such object, or nothing was heard yet.
    pub object: Option<Arc<CSIDriver>>,
    /// Why the latest look at it failed, if it did. The driver stays registered.
    pub error: Option<String>,
}

/// A socket in the folder `plugins_registry`. The board's key is its path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginSocket {
    /// When the socket was made; one that is made anew at this path is another one.
    pub made_at: Timestamp,
    /// Its inode.
    pub inode: u64,
    /// Type, as the plugin says: `CSIPlugin`, `DevicePlugin`, `DRAPlugin`; empty while it has not said.
    pub kind: String,
    /// Name, as the plugin says.
    pub name: String,
    /// Versions, as the plugin says.
    pub versions: Vec<String>,
    /// The API server may have been told of it: that is taken back when it goes.
    pub told_of: bool,
    /// Since when it is registered; `None`: it is not.
    pub registered_at: Option<Timestamp>,
    /// It was told that it is registered, or did not take it.
    pub told: bool,
    /// Tries that failed, one after the other.
    pub failures: u32,
    /// Why the latest try failed, if it did.
    pub error: Option<String>,
}
