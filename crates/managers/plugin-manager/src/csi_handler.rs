//! CSI drivers, as the first type of plugins that is handled.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actor::{Clock, Effects};
use contract::board::BoardPoster;
use contract::node::{ClearCsiNodeId, SetCsiNodeId};
use contract::plugin::CsiDriver;
use contract::{Crew, PluginManager as Role};
use csi_api::registration::PluginInfo;
use csi_api::v1::NodeGetInfoResponse;
use metrics::Stopwatch;
use metrics::volumes::observe_call;
use model::Timestamp;
use ports::csi::{CsiNode, CsiResult, DEADLINE, grpc_code};
use ports::plugin::{Handling, PluginHandler};

use crate::check;
use crate::csi_node::DriverInfo;
use crate::requests::Requests;

/// The type, as plugins say it.
pub(crate) const CSI_PLUGIN: &str = "CSIPlugin";

/// Asks drivers about this node, tells the API server, and posts who may be called.
#[derive(Clone)]
pub(crate) struct CsiHandler {
    pub crew: Crew<Role>,
    pub drivers: BoardPoster<String, CsiDriver>,
    pub csi: Arc<dyn CsiNode>,
    /// `None`: there is no API server.
    pub requests: Option<Requests>,
    /// One writer of the API server's objects at a time.
    pub turn: Arc<tokio::sync::Mutex<()>>,
    pub effects: Effects,
    pub clock: Clock,
    /// The highest generation that a driver was given.
    pub generation: Arc<AtomicU64>,
}

impl fmt::Debug for CsiHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CsiHandler")
    }
}

impl PluginHandler for CsiHandler {
    fn validate(&self, plugin: &PluginInfo, beside: &[&[String]]) -> Result<(), String> {
        check::csi_driver(plugin, beside)
    }

    fn register(&self, plugin: PluginInfo) -> Handling {
        let this = self.clone();
        Box::pin(async move { this.install(plugin).await })
    }

    fn deregister(&self, name: &str) -> Handling {
        // At once: nobody calls it any more.
        self.drivers.remove(&name.to_owned());
        let (this, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let Some(requests) = &this.requests else { return Ok(()) };
            let _mine = this.turn.lock().await;
            take_back(requests, &this.crew, &this.effects, name).await
        })
    }
}

impl CsiHandler {
    async fn install(&self, plugin: PluginInfo) -> Result<(), String> {
        let (name, endpoint) = (plugin.name, PathBuf::from(plugin.endpoint));
        let updating = "error updating Node object with CSI driver node info";
        let requests = self.requests.as_ref().ok_or_else(|| format!("{updating}: error getting kube client"))?;
        let said = node_info(&*self.csi, &name, &endpoint).await.map_err(|e| e.to_string())?;
        let info = DriverInfo::new(&name, said);
        let _mine = self.turn.lock().await;
        let (node_id, topology) = (info.node_id.clone(), info.topology.clone());
        let told = self.crew.call(SetCsiNodeId { driver: name.clone(), node_id, topology }).await;
        told.map_err(|e| format!("{updating}: error updating node: {e}"))?;
        self.effects.hit("install, Node done").await;
        requests.install(&info).await?;
        let now = Timestamp(self.clock.unix_nanos());
        let driver = CsiDriver {
            endpoint,
            versions: plugin.supported_versions,
            registered_at: now,
            generation: self.next_generation(now),
            node_id: info.node_id,
            max_volumes: info.max_volumes,
            topology: info.topology,
            // It follows once the registration is noted.
            object: None,
            error: None,
        };
        self.drivers.post(name, Arc::new(driver));
        Ok(())
    }

    /// The time, so that no registration has the number of one before a restart.
    fn next_generation(&self, now: Timestamp) -> u64 {
        let now = u64::try_from(now.0).unwrap_or(0);
        let next = |last: u64| now.max(last + 1);
        let last = self.generation.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(last.unwrap_or_else(|last| last))
    }
}

/// What the API server was told of a driver goes. The caller has the turn.
pub(crate) async fn take_back(
    requests: &Requests,
    crew: &Crew<Role>,
    effects: &Effects,
    driver: String,
) -> Result<(), String> {
    requests.uninstall(&driver).await?;
    effects.hit("leave, CSINode done").await;
    let cleared = crew.call(ClearCsiNodeId { driver }).await;
    cleared.map_err(|e| format!("error removing CSI driver node info from Node object {e}"))
}

/// Asks a driver about this node.
pub(crate) async fn node_info(csi: &dyn CsiNode, driver: &str, endpoint: &Path) -> CsiResult<NodeGetInfoResponse> {
    let watch = Stopwatch::start();
    let said = csi.get_info(endpoint, DEADLINE).await;
    observe_call(driver, "NodeGetInfo", grpc_code(&said), false, &watch);
    said
}
