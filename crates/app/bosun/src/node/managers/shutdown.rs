//! Who ends pods before the machine goes down: ShutdownManager.

use std::sync::Arc;

use contract::ShutdownManager;
use node_config::NodeConfig;
use node_shutdown::{DROP_IN_DIR, Group, Periods, groups};

use super::Setup;

const GATE: &str = "GracefulNodeShutdown";
const BY_PRIORITY: &str = "GracefulNodeShutdownBasedOnPodPriority";

pub(in crate::node) fn shutdown_manager(setup: &Setup<'_, ShutdownManager>) {
    let config = &setup.settings.config;
    let config = Arc::new(shutdown_manager::Config {
        groups: groups(&periods(config)),
        root_dir: setup.settings.root_dir.clone(),
        drop_in_dir: DROP_IN_DIR.into(),
        tells_times: config.feature_gates.enabled(BY_PRIORITY),
    });
    let deps = Arc::new(shutdown_manager::Deps {
        logind: setup.ports.logind.clone(),
        fs: setup.ports.fs.clone(),
        hold: shutdown_manager::Hold::default(),
        turn: shutdown_manager::Turn::default(),
    });
    setup.spawn(move |crew| shutdown_manager::ShutdownManager::new(crew, config.clone(), deps.clone()));
}

/// What the configuration says, as far as the gates let it.
fn periods(config: &NodeConfig) -> Periods {
    if !config.feature_gates.enabled(GATE) {
        return Periods::default();
    }
    let of = &config.shutdown;
    let list = if config.feature_gates.enabled(BY_PRIORITY) { of.by_priority.as_slice() } else { &[] };
    let by_priority = list.iter().map(|p| Group { priority: p.priority, period_s: p.period_s }).collect();
    Periods { total: of.grace_period, critical: of.critical, by_priority }
}
