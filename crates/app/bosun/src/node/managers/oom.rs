//! Who tells that the machine ran out of memory: OomWatcher.

use std::sync::Arc;

use contract::OomWatcher;

use super::Setup;

pub(in crate::node) fn oom_watcher(setup: &Setup<'_, OomWatcher>) {
    let deps = Arc::new(oom_watcher::Deps {
        log: setup.ports.kernel_log.clone(),
        journal: setup.ports.journal.clone(),
        boot_id: setup.ports.host.identity().boot_id,
    });
    setup.spawn(move |crew| oom_watcher::OomWatcher::new(crew, deps.clone()));
}
