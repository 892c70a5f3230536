//! Requests about the CSINode object. One at a time: the caller sees to it.

use std::sync::Arc;
use std::time::Duration;

use contract::board::ValueReader;
use contract::node::NodeView;
use model::k8s_openapi::api::storage::v1::CSINode;
use ports::api::{ApiError, ApiExt, ApiResult, ApiServer, Method, Request};

use crate::csi_node::{self, DriverInfo};

/// Tries of one change, as a kubelet's: 4, with 10 ms, 50 ms and 250 ms between them.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const FACTOR: u32 = 5;

/// The object of this node, on the API server.
#[derive(Clone)]
pub(crate) struct Requests {
    pub api: Arc<dyn ApiServer>,
    pub node_name: String,
    pub node: ValueReader<NodeView>,
}

impl Requests {
    /// Makes the object, or marks the one that is there.
    pub(crate) async fn initialize(&self) -> Result<(), String> {
        self.change(csi_node::marked, true).await.map_err(|e| format!("error updating CSINode annotation: {e}"))
    }

    /// The object names this driver.
    pub(crate) async fn install(&self, driver: &DriverInfo) -> Result<(), String> {
        let done = self.change(|object| csi_node::with(object, driver), true).await;
        done.map_err(|e| {
            format!("error updating CSINode object with CSI driver node info: error updating CSINode: {e}")
        })
    }

    /// The object does not name this driver.
    pub(crate) async fn uninstall(&self, driver: &str) -> Result<(), String> {
        let done = self.change(|object| csi_node::without(object, driver), false).await;
        done.map_err(|e| format!("error uninstalling CSI driver from CSINode object {e}"))
    }

    /// Drivers that the object names.
    pub(crate) async fn named(&self) -> ApiResult<Vec<String>> {
        match self.api.get::<CSINode>(None, &self.node_name).await {
            Ok(found) => Ok(found.spec.drivers.into_iter().map(|d| d.name).collect()),
            Err(e) if e.is_not_found() => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    /// `None` of `change`: nothing is to be written. `create`: an object that is missing is made first.
    async fn change(&self, change: impl Fn(&CSINode) -> Option<CSINode>, create: bool) -> ApiResult<()> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            match self.attempt(&change, create).await {
                Err(error) if tries < TRIES => tracing::debug!(%error, "the CSINode could not be written"),
                done => return done,
            }
            tokio::time::sleep(pause).await;
            (pause, tries) = (pause * FACTOR, tries + 1);
        }
    }

    async fn attempt(&self, change: &impl Fn(&CSINode) -> Option<CSINode>, create: bool) -> ApiResult<()> {
        let found = match self.api.get::<CSINode>(None, &self.node_name).await {
            Ok(found) => found,
            Err(e) if e.is_not_found() && !create => return Ok(()),
            Err(e) if e.is_not_found() => {
                let view = self.node.get();
                let message = || ApiError::NotReady { message: "the Node is not registered".to_owned() };
                let uid = view.api_uid().ok_or_else(message)?;
                self.api.create(None, &csi_node::new(&self.node_name, uid)).await?
            }
            Err(e) => return Err(e),
        };
        let Some(wanted) = change(&found) else { return Ok(()) };
        let put = Request::to::<CSINode>(Method::Put, None, Some(&self.node_name)).json(&wanted)?;
        self.api.fetch::<CSINode>(put).await.map(drop)
    }
}
