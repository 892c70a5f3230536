//! What PluginManager is made with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ports::api::ApiServer;
use ports::csi::CsiNode;
use ports::host::HostFs;
use ports::plugin::{PluginHandler, PluginRegistration};
use ports::watch::FolderWatch;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the node.
    pub node_name: String,
    /// `plugins_registry` below the root folder.
    pub registry: PathBuf,
}

/// What PluginManager works with.
#[derive(Clone)]
pub struct Deps {
    /// The folder.
    pub fs: Arc<dyn HostFs>,
    /// Tells of changes in it.
    pub watch: Arc<dyn FolderWatch>,
    /// What registers itself.
    pub plugins: Arc<dyn PluginRegistration>,
    /// CSI drivers.
    pub csi: Arc<dyn CsiNode>,
    /// What becomes of plugins of other types than CSI drivers, by their types as plugins say them (`DRAPlugin`).
    pub handlers: BTreeMap<String, Arc<dyn PluginHandler>>,
    /// The API server; `None`: standalone, where no CSI driver is registered.
    pub api: Option<Arc<dyn ApiServer>>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("plugin_manager::Deps")
    }
}
