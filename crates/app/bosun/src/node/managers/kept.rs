//! What there is once in a process, however often a manager is built anew in it, and for however many nodes.

use node_config::NodeConfig;

/// What pulls have in common, also those that a former manager began.
pub(super) struct Lasting {
    pub(super) slots: image_manager::Slots,
    pub(super) credential_cache: image_manager::CredentialCache,
    pub(super) pull_records: image_manager::PullRecords,
    pub(super) ages: image_manager::ImageAges,
}

impl Lasting {
    fn new(config: &NodeConfig) -> Self {
        let parallel = config.images.max_parallel_pulls.and_then(|n| usize::try_from(n).ok());
        Lasting {
            slots: image_manager::Slots::new(config.images.serialize_pulls, parallel),
            credential_cache: image_manager::CredentialCache::default(),
            pull_records: image_manager::PullRecords::default(),
            ages: image_manager::ImageAges::default(),
        }
    }
}

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
