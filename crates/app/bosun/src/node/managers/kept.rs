//! What there is once in a process, however often a manager is built anew in it, and for however many nodes.

use node_config::NodeConfig;

use super::images::Lasting;

/// What work that goes on when its manager is gone has in common with the work of the next one. Nothing here says what pods want.
pub(in crate::node) struct Kept {
    pub(super) images: Lasting,
    pub(super) cgroups: cgroup_manager::Serial,
    pub(super) logs: log_manager::Serial,
    pub(super) volumes: volume_manager::Serial,
}

impl Kept {
    pub(in crate::node) fn new(config: &NodeConfig) -> Self {
        Kept {
            images: Lasting::new(config),
            cgroups: cgroup_manager::Serial::default(),
            logs: log_manager::Serial::default(),
            volumes: volume_manager::Serial::default(),
        }
    }
}
