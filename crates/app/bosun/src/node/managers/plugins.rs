//! Who knows the plugins: PluginManager.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::PluginManager;

use super::Setup;

pub(in crate::node) fn plugin_manager(setup: &Setup<'_, PluginManager>) {
    let config = Arc::new(plugin_manager::Config {
        node_name: setup.settings.node_name.clone(),
        registry: setup.settings.root_dir.join("plugins_registry"),
    });
    let deps = Arc::new(plugin_manager::Deps {
        fs: setup.ports.fs.clone(),
        watch: setup.ports.watch.clone(),
        plugins: setup.ports.plugins.clone(),
        csi: setup.ports.csi.clone(),
        // There are no managers of devices and of DRA yet.
        handlers: BTreeMap::new(),
        api: setup.ports.api.clone(),
    });
    setup.spawn(move |crew| plugin_manager::PluginManager::new(crew, config.clone(), deps.clone()));
}
