//! What the routes read.

use std::sync::Arc;

use actor::Kernel;
use contract::board::{BoardReader, ValueReader};
use contract::certificates::CertificateView;
use contract::config_sources::ApiSourceView;
use contract::config_sources::folder::FolderManifests;
use contract::config_sources::http::UrlManifests;
use contract::event::EventView;
use contract::eviction::PressureView;
use contract::image::ImageView;
use contract::node::NodeView;
use contract::plugin::{CsiDriver, PluginSocket};
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::probe::PodProbes;
use contract::runtime::{Observed, RuntimeInfo};
use contract::status::StatusEntry;
use contract::{Crew, Server};
use model::PodUid;
use model::history::PodHistory;

use super::places::Managers;

/// What the routes read.
#[derive(Clone)]
pub struct Views {
    /// Actors and faults.
    pub kernel: Kernel,
    /// Faults may be injected (`--enable-faults`).
    pub faults: bool,
    /// Name of the node.
    pub node_name: String,
    /// Asks managers.
    pub crew: Crew<Server>,
    /// Desired pods.
    pub pods: BoardReader<PodUid, DesiredPod>,
    /// Workers.
    pub workers: BoardReader<PodUid, WorkerState>,
    /// What happened to pods.
    pub histories: BoardReader<PodUid, PodHistory>,
    /// Verdicts of probes.
    pub probes: BoardReader<PodUid, PodProbes>,
    /// Pulls.
    pub images: ValueReader<ImageView>,
    /// Statuses.
    pub status: BoardReader<PodUid, StatusEntry>,
    /// The runtime.
    pub runtime: ValueReader<RuntimeInfo>,
    /// What the runtime has.
    pub observed: BoardReader<PodUid, Observed>,
    /// Manifests.
    pub sources: ValueReader<FolderManifests>,
    /// Manifests of the URL.
    pub url: ValueReader<UrlManifests>,
    /// Events.
    pub events: ValueReader<EventView>,
    /// An API server is configured; without: standalone.
    pub cluster: bool,
    /// The Node object and what became of it.
    pub node: ValueReader<NodeView>,
    /// The pods of the API server.
    pub api: ValueReader<ApiSourceView>,
    /// Plugins that register themselves.
    pub plugins: BoardReader<String, PluginSocket>,
    /// CSI drivers.
    pub drivers: BoardReader<String, CsiDriver>,
    /// Client and serving certificate.
    pub certificates: ValueReader<CertificateView>,
    /// What runs short.
    pub pressure: ValueReader<PressureView>,
    /// Who changes places of managers; `None`: nobody.
    pub managers: Option<Arc<dyn Managers>>,
}

impl Views {
    /// Of the node that the crew belongs to.
    #[must_use]
    pub fn new(crew: &Crew<Server>, kernel: Kernel, node_name: String) -> Self {
        Views {
            kernel,
            faults: false,
            node_name,
            crew: crew.clone(),
            pods: crew.board(),
            workers: crew.board(),
            histories: crew.board(),
            probes: crew.board(),
            images: crew.value(),
            status: crew.board(),
            runtime: crew.value(),
            observed: crew.board(),
            sources: crew.value(),
            url: crew.value(),
            events: crew.value(),
            cluster: false,
            node: crew.value(),
            api: crew.value(),
            plugins: crew.board(),
            drivers: crew.board(),
            certificates: crew.value(),
            pressure: crew.value(),
            managers: None,
        }
    }
}

impl std::fmt::Debug for Views {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("server::local::Views")
    }
}
