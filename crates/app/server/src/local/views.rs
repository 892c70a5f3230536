//! What the routes read.

use actor::Kernel;
use contract::certificates::CertificateView;
use contract::config_sources::{ApiSourceView, SourcesView};
use contract::event::EventView;
use contract::node::NodeView;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkersView;
use contract::runtime::RuntimeView;
use contract::status::StatusEntry;
use contract::view::{Board, Published};
use model::PodUid;

/// What the routes read.
#[derive(Clone)]
pub struct Views {
    /// Actors and faults.
    pub kernel: Kernel,
    /// Faults may be injected (`--enable-faults`).
    pub faults: bool,
    /// Name of the node.
    pub node_name: String,
    /// Desired pods.
    pub pods: Board<PodUid, DesiredPod>,
    /// Workers.
    pub workers: WorkersView,
    /// Statuses.
    pub status: Board<PodUid, StatusEntry>,
    /// The runtime.
    pub runtime: RuntimeView,
    /// Manifests.
    pub sources: Published<SourcesView>,
    /// Events.
    pub events: Published<EventView>,
    /// An API server is configured; without: standalone.
    pub cluster: bool,
    /// The Node object and what became of it.
    pub node: Published<NodeView>,
    /// The pods of the API server.
    pub api: Published<ApiSourceView>,
    /// Client and serving certificate.
    pub certificates: Published<CertificateView>,
}

impl std::fmt::Debug for Views {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("server::local::Views")
    }
}
