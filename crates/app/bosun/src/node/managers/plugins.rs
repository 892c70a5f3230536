//! Who knows the plugins: PluginManager.

use contract::PluginManager;

use super::Setup;

pub(in crate::node) fn plugin_manager(setup: &Setup<'_, PluginManager>) {
    setup.spawn(move |crew| plugin_manager::PluginManager::new(&crew));
}
