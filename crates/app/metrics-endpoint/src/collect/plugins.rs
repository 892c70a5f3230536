//! Plugins that register themselves.

use metrics::Kind::Gauge;

use crate::deps::Deps;
use crate::families::{Families, Row};

const TOTAL: &str = "plugin_manager_total_plugins";

pub(crate) const TABLE: &[Row] =
    &[(TOTAL, Gauge, "Sockets of plugins that are there, and those that are registered.", &["socket_path", "state"])];

pub(crate) fn fill(families: &mut Families, deps: &Deps) {
    for (socket, row) in deps.plugins.snapshot() {
        families.put(TOTAL, &[&socket, "desired_state_of_world"], 1.0);
        if row.registered_at.is_some() {
            families.put(TOTAL, &[&socket, "actual_state_of_world"], 1.0);
        }
    }
}
