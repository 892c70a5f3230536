//! What NodeManager is given.

use std::sync::Arc;
use std::time::Duration;

use model::resources::ResourceList;
use node_status::Plan;
use ports::api::ApiServer;
use ports::host::NodeHost;
use ports::runtime::ImageService;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// What configuration says of the Node.
    pub plan: Plan,
    /// `podCIDR`: networks of pods until the cluster gives some; empty: none.
    pub pod_cidr: String,
    /// `registerNode`; without it the Node is somebody else's to make.
    pub register: bool,
    /// Whole machine.
    pub capacity: ResourceList,
    /// What pods may use of it.
    pub allocatable: ResourceList,
    /// All swap.
    pub swap_bytes: u64,
    /// `nodeStatusUpdateFrequency`: how often the status is worked out.
    pub update_every: Duration,
    /// `nodeStatusReportFrequency`: how often the status is reported without a change.
    pub report_every: Duration,
    /// `nodeLeaseDurationSeconds`; bounds how long one request may take.
    pub lease_duration: Duration,
}

impl Config {
    /// Deadline of one request: whichever is shorter, the update period or a quarter of the lease.
    pub(crate) fn deadline(&self) -> Duration {
        self.update_every.min(self.lease_duration / 4).max(Duration::from_secs(1))
    }
}

/// What NodeManager works with.
#[derive(Clone)]
pub struct Deps {
    /// The API server; `None`: the node stands alone.
    pub api: Option<Arc<dyn ApiServer>>,
    /// The machine.
    pub host: Arc<dyn NodeHost>,
    /// Images, for the Node's list of them.
    pub images: Arc<dyn ImageService>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("node_manager::Deps")
    }
}
