//! What CSI drivers have said on the Node: put there and taken away for PluginManager.

use std::sync::Arc;
use std::time::Duration;

use actor::{Ctx, Deferred, Handler};
use contract::node::{ClearCsiNodeId, NodeError, SetCsiNodeId};
use model::core::Node;
use node_status::{csi, patch};
use ports::api::{ApiExt, ApiServer, Method, PatchKind, Request, Throttle};

use crate::actor::NodeManager;
use crate::config::Config;

/// Tries of one change, as a kubelet's: 4, with 10 ms, 50 ms and 250 ms between them.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const FACTOR: u32 = 5;

/// The own Node, as the API server has it.
struct OwnNode {
    api: Arc<dyn ApiServer>,
    config: Arc<Config>,
}

impl OwnNode {
    fn request(&self, method: Method) -> Request {
        let request = Request::to::<Node>(method, None, Some(&self.config.plan.name));
        request.throttle(Throttle::Unlimited).deadline(self.config.deadline())
    }

    /// Reads the Node and writes what `change` makes of it. The Node as it is then; `None`: there was nothing to change.
    async fn change(&self, change: impl Fn(&Node) -> Result<Option<Node>, String>) -> Result<Option<Node>, String> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            match self.attempt(&change).await {
                Err(error) if tries < TRIES => tracing::debug!(error, "what a driver says is not on the Node yet"),
                done => return done,
            }
            tokio::time::sleep(pause).await;
            (pause, tries) = (pause * FACTOR, tries + 1);
        }
    }

    async fn attempt(&self, change: impl Fn(&Node) -> Result<Option<Node>, String>) -> Result<Option<Node>, String> {
        let old: Node = self.api.fetch(self.request(Method::Get)).await.map_err(|e| e.to_string())?;
        let Some(body) = change(&old)?.and_then(|new| patch(&old, &new)) else { return Ok(None) };
        let request = self.request(Method::Patch(PatchKind::Strategic)).status().json(&body);
        let request = request.map_err(|e| e.to_string())?;
        self.api.fetch(request).await.map(Some).map_err(|e| e.to_string())
    }
}

impl NodeManager {
    /// One change at a time: each is made of what the one before left.
    fn change_node(
        &self,
        change: impl Fn(&Node) -> Result<Option<Node>, String> + 'static,
        ctx: &Ctx<Self>,
    ) -> Deferred<Self, Result<(), NodeError>> {
        let Some(api) = self.deps.api.clone() else {
            return Deferred::ready(Err(NodeError { message: "error getting kube client".to_owned() }));
        };
        let (node, turn, faults) = (OwnNode { api, config: self.config.clone() }, self.turn.clone(), ctx.faults());
        let work = async move {
            let _mine = turn.lock().await;
            faults.hit("before-driver").await;
            let done = node.change(change).await;
            faults.hit("after-driver").await;
            done
        };
        Deferred::then(work, |act: &mut Self, done: Result<Option<Node>, String>, _| {
            let node = done.map_err(|message| NodeError { message })?;
            if let Some(node) = node {
                act.note_node(Arc::new(node));
            }
            Ok(())
        })
    }
}

impl Handler<SetCsiNodeId> for NodeManager {
    type Result = Deferred<Self, Result<(), NodeError>>;

    fn handle(
        &mut self,
        SetCsiNodeId { driver, node_id, topology }: SetCsiNodeId,
        ctx: &mut Ctx<Self>,
    ) -> Self::Result {
        self.change_node(move |node| csi::with_driver(node, &driver, &node_id, &topology), ctx)
    }
}

impl Handler<ClearCsiNodeId> for NodeManager {
    type Result = Deferred<Self, Result<(), NodeError>>;

    fn handle(&mut self, ClearCsiNodeId { driver }: ClearCsiNodeId, ctx: &mut Ctx<Self>) -> Self::Result {
        self.change_node(move |node| csi::without_driver(node, &driver), ctx)
    }
}
