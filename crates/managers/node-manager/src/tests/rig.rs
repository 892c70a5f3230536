//! A node with its two actors, an API server in memory and a machine that is not there.

use std::sync::Arc;
use std::time::Duration;

use actor::testing::settle;
pub(super) use actor::testing::until;
use actor::{ActorRef, Kernel};
use contract::eviction::NodePressure;
use contract::node::{LeaseState, NodeView};
use contract::runtime::{CallError, CallErrorKind, RuntimeInfo, SetPodNetworks};
use contract::{RuntimeClient, Wiring};
use fakes::{Events, FakeApi, FakeMachine, FakeRuntime, StandIn};
use model::Timestamp;
use model::core::{Node, NodeCondition};
use model::k8s_openapi::api::coordination::v1::Lease;
use model::k8s_openapi::jiff;
use model::quantity::Quantity;
use model::resources::ResourceList;
use node_status::Plan;
use ports::api::ApiServer;

use crate::{Config, Deps, LeaseConfig, LeaseDeps, NodeLease, NodeManager};

pub(super) const NAME: &str = "n1";

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(super) fn amounts(list: &[(&str, &str)]) -> ResourceList {
    list.iter().map(|(k, v)| ((*k).to_owned(), v.parse::<Quantity>().unwrap())).collect()
}

pub(super) fn config() -> Config {
    let amounts = amounts(&[("cpu", "2"), ("memory", "8Gi"), ("pods", "110"), ("ephemeral-storage", "100Gi")]);
    Config {
        plan: Plan {
            name: NAME.into(),
            hostname: NAME.into(),
            controller_attach_detach: true,
            local_storage: true,
            max_images: Some(50),
            max_pods: 110,
            port: 10250,
            version: "v1.36.2".into(),
            arch: "amd64".into(),
            ..Plan::default()
        },
        pod_cidr: String::new(),
        register: true,
        capacity: amounts.clone(),
        allocatable: amounts,
        swap_bytes: 0,
        update_every: secs(10),
        report_every: secs(300),
        lease_duration: secs(40),
    }
}

/// What a runtime says that is well.
pub(super) fn well(at: Timestamp) -> RuntimeInfo {
    RuntimeInfo {
        name: "containerd".into(),
        version: "2.0.0".into(),
        ready: true,
        network: Ok(()),
        listed: true,
        last_relist: at,
        ..RuntimeInfo::unknown()
    }
}

pub(super) struct Rig {
    pub kernel: Kernel,
    pub api: FakeApi,
    pub machine: Arc<FakeMachine>,
    pub runtime: FakeRuntime,
    pub wiring: Wiring,
    pub manager: Option<ActorRef<NodeManager>>,
    events: Events,
    runtime_client: StandIn<RuntimeClient>,
}

impl Rig {
    /// Everything but the two actors. The runtime has not spoken yet.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let wiring = Wiring::default();
        let (events, runtime_client) = (Events::on(&wiring), StandIn::on(&wiring));
        let mut refused = false;
        runtime_client.answer(move |_: &SetPodNetworks| match std::mem::replace(&mut refused, true) {
            false => Err(CallError::new(CallErrorKind::Unavailable, "not yet")),
            true => Ok(()),
        });
        let wall = jiff::Timestamp::from_nanosecond(i128::from(kernel.clock().unix_nanos())).unwrap();
        Self {
            kernel: kernel.clone(),
            api: FakeApi::at(wall),
            machine: Arc::default(),
            runtime: FakeRuntime::default(),
            wiring,
            manager: None,
            events,
            runtime_client,
        }
    }

    /// The whole node, with a runtime that is well.
    pub(super) async fn start(kernel: &Kernel) -> Self {
        let mut rig = Self::new(kernel);
        rig.runtime_says(|_| ());
        rig.start_manager(config());
        rig.start_lease();
        rig
    }

    pub(super) fn start_manager(&mut self, config: Config) {
        self.start_manager_with(config, Some(Arc::new(self.api.clone())));
    }

    pub(super) fn start_manager_with(&mut self, config: Config, api: Option<Arc<dyn ApiServer>>) {
        let deps = Arc::new(Deps { api, host: self.machine.clone(), images: self.runtime.client() });
        let config = Arc::new(config);
        let new = move |crew| NodeManager::new(crew, config.clone(), deps.clone());
        self.manager = Some(fakes::start(&self.kernel, &self.wiring, new));
    }

    pub(super) fn start_lease(&self) -> ActorRef<NodeLease> {
        let config = Arc::new(LeaseConfig { node: NAME.into(), duration: secs(40) });
        let deps = Arc::new(LeaseDeps { api: Arc::new(self.api.clone()) });
        fakes::start(&self.kernel, &self.wiring, move |crew| NodeLease::new(&crew, config.clone(), deps.clone()))
    }

    pub(super) fn wall(&self) -> Timestamp {
        Timestamp(self.kernel.clock().unix_nanos())
    }

    /// Publishes a runtime that is well but for the edit.
    pub(super) fn runtime_says(&self, edit: impl FnOnce(&mut RuntimeInfo)) {
        let mut info = well(self.wall());
        edit(&mut info);
        self.wiring.set(info);
    }

    /// What runs short, by EvictionManager's word.
    pub(super) fn presses(&self, conditions: &[&str]) {
        self.wiring.set(NodePressure { conditions: conditions.iter().map(|&c| c.to_owned()).collect() });
    }

    /// Lets time pass; the runtime goes on listing its pods, as it is.
    pub(super) async fn pass(&self, time: Duration) {
        let end = self.kernel.clock().now() + time;
        while self.kernel.clock().now() < end {
            tokio::time::sleep(secs(5).min(end - self.kernel.clock().now())).await;
            let mut info = (*self.wiring.value::<RuntimeInfo>().get()).clone();
            if info.listed && !info.stale {
                info.last_relist = self.wall();
                self.wiring.set(info);
            }
        }
        settle().await;
    }

    pub(super) fn view(&self) -> Arc<NodeView> {
        self.wiring.value().get()
    }

    pub(super) fn lease(&self) -> Arc<LeaseState> {
        self.wiring.value().get()
    }

    pub(super) fn stored(&self) -> Option<Node> {
        self.api.read(None, NAME)
    }

    pub(super) fn stored_lease(&self) -> Option<Lease> {
        self.api.read(Some("kube-node-lease"), NAME)
    }

    pub(super) fn condition(&self, kind: &str) -> NodeCondition {
        let node = self.stored().expect("the Node is there");
        let all = node.status.unwrap().conditions.unwrap();
        all.into_iter().find(|c| c.type_ == kind).unwrap_or_default()
    }

    pub(super) fn ready(&self) -> String {
        self.condition("Ready").status
    }

    pub(super) fn patches(&self) -> usize {
        self.api.requests_of("PATCH", "/nodes/n1/status").len()
    }

    /// Networks that the runtime was told, in order; it refuses the first time.
    pub(super) fn networks(&self) -> Vec<String> {
        self.runtime_client.asked::<SetPodNetworks>().into_iter().map(|m| m.cidrs).collect()
    }

    /// Reasons of events since the last call.
    pub(super) fn events(&self) -> Vec<String> {
        self.events.taken().into_iter().map(|e| e.reason.into_owned()).collect()
    }

    /// Bodies of status patches that say that the node is not ready.
    pub(super) fn said_not_ready(&self) -> usize {
        let patches = self.api.requests_of("PATCH", "/nodes/n1/status");
        let posts = self.api.requests_of("POST", "/nodes");
        let conditions = |v: &serde_json::Value| v["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let not_ready =
            |v: &serde_json::Value| conditions(v).iter().any(|c| c["type"] == "Ready" && c["status"] == "False");
        patches.iter().chain(&posts).filter(|r| r.failure.is_none() && not_ready(&r.body)).count()
    }
}

/// Runs a test around a whole node, with a runtime that is well.
pub(super) fn with_node(test: impl AsyncFnOnce(Rig)) {
    actor::testing::run(1, async |kernel| test(Rig::start(&kernel).await).await);
}
