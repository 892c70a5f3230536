//! A node with its two actors, an API server in memory and a machine that is not there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::testing::settle;
use actor::{Actor, ActorRef, Ctx, Handler, Kernel, Spec, supervised};
use async_trait::async_trait;
use contract::event::RecordEvent;
use contract::node::{LeaseState, NodeView};
use contract::runtime::{CallError, CallErrorKind, RuntimeInfo, SetPodNetworks};
use contract::{EventRecorder, Wiring};
use cri_api::v1;
use fakes::{FakeApi, FakeMachine};
use model::Timestamp;
use model::core::{Node, NodeCondition};
use model::k8s_openapi::api::coordination::v1::Lease;
use model::k8s_openapi::jiff;
use model::quantity::Quantity;
use model::resources::ResourceList;
use node_status::Plan;
use node_status::pressure::{Amount, Signal, Threshold};
use ports::api::ApiServer;
use ports::runtime::{ImageService, RuntimeCode, RuntimeError, RuntimeResult};

use crate::{Config, Deps, LeaseConfig, LeaseDeps, NodeLease, NodeManager};

pub(super) const NAME: &str = "n1";

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The images of the node.
#[derive(Debug, Default)]
pub(super) struct Images(pub Mutex<Vec<v1::Image>>);

#[async_trait]
impl ImageService for Images {
    async fn list_images(&self, _: v1::ListImagesRequest) -> RuntimeResult<v1::ListImagesResponse> {
        Ok(v1::ListImagesResponse { images: self.0.lock().unwrap().clone() })
    }

    async fn image_status(&self, _: v1::ImageStatusRequest) -> RuntimeResult<v1::ImageStatusResponse> {
        Err(RuntimeError::new(RuntimeCode::Unimplemented, "not asked for"))
    }

    async fn pull_image(&self, _: v1::PullImageRequest) -> RuntimeResult<v1::PullImageResponse> {
        Err(RuntimeError::new(RuntimeCode::Unimplemented, "not asked for"))
    }

    async fn remove_image(&self, _: v1::RemoveImageRequest) -> RuntimeResult<()> {
        Err(RuntimeError::new(RuntimeCode::Unimplemented, "not asked for"))
    }

    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse> {
        Ok(v1::ImageFsInfoResponse::default())
    }
}

/// An API server that does not know `status.features`.
#[derive(Debug)]
pub(super) struct Forgetful(pub FakeApi);

#[async_trait]
impl ApiServer for Forgetful {
    async fn call(&self, mut request: ports::api::Request) -> ports::api::ApiResult<bytes::Bytes> {
        if let Ok(mut body) = serde_json::from_slice::<serde_json::Value>(&request.body)
            && let Some(status) = body.get_mut("status").and_then(|s| s.as_object_mut())
        {
            status.remove("features");
            request.body = body.to_string().into();
        }
        self.0.call(request).await
    }

    fn follow(&self, selection: ports::api::Selection) -> futures::stream::BoxStream<'static, ports::api::Followed> {
        self.0.follow(selection)
    }
}

/// Notes reasons of events, and networks that the runtime is told; it refuses the first time.
struct Recorder {
    events: Arc<Mutex<Vec<String>>>,
    networks: Arc<Mutex<Vec<String>>>,
}

impl Actor for Recorder {
    type Context = Ctx<Self>;
}
supervised!(Recorder);

impl Handler<RecordEvent> for Recorder {
    type Result = ();

    fn handle(&mut self, RecordEvent { event }: RecordEvent, _: &mut Ctx<Self>) {
        self.events.lock().unwrap().push(event.reason.into_owned());
    }
}

impl Handler<SetPodNetworks> for Recorder {
    type Result = Result<(), CallError>;

    fn handle(&mut self, SetPodNetworks { cidrs }: SetPodNetworks, _: &mut Ctx<Self>) -> Self::Result {
        let mut told = self.networks.lock().unwrap();
        told.push(cidrs);
        if told.len() == 1 { Err(CallError::new(CallErrorKind::Unavailable, "not yet")) } else { Ok(()) }
    }
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
        thresholds: vec![
            Threshold { signal: Signal::MemoryAvailable, below: Amount::Absolute(100 << 20), min_reclaim: None },
            Threshold { signal: Signal::NodefsAvailable, below: Amount::percent(10.0), min_reclaim: None },
        ],
        pressure_transition: secs(300),
        root_dir: "/var/lib/kubelet".into(),
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
    pub images: Arc<Images>,
    pub wiring: Wiring,
    pub manager: Option<ActorRef<NodeManager>>,
    events: Arc<Mutex<Vec<String>>>,
    /// Networks that the runtime was told, in order.
    pub networks: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    /// Everything but the two actors. The runtime has not spoken yet.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let wiring = Wiring::default();
        let networks = Arc::new(Mutex::new(Vec::new()));
        let (noted, told) = (events.clone(), networks.clone());
        let recorder =
            kernel.spawn(Spec::new("recorder"), move |_| Recorder { events: noted.clone(), networks: told.clone() });
        wiring.connect::<EventRecorder, _>(&recorder);
        wiring.inlet::<SetPodNetworks>().connect(&recorder);
        let wall = jiff::Timestamp::from_nanosecond(i128::from(kernel.clock().unix_nanos())).unwrap();
        Self {
            kernel: kernel.clone(),
            api: FakeApi::at(wall),
            machine: Arc::default(),
            images: Arc::default(),
            wiring,
            manager: None,
            events,
            networks,
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
        let deps = Arc::new(Deps { api, host: self.machine.clone(), images: self.images.clone() });
        let config = Arc::new(config);
        let crew = self.wiring.crew();
        let new = move |_| NodeManager::new(crew.succeed(), config.clone(), deps.clone());
        let manager = self.kernel.spawn(Spec::new("node-manager"), new);
        self.manager = Some(manager);
    }

    pub(super) fn start_lease(&self) -> ActorRef<NodeLease> {
        let config = Arc::new(LeaseConfig { node: NAME.into(), duration: secs(40) });
        let deps = Arc::new(LeaseDeps { api: Arc::new(self.api.clone()) });
        let crew = self.wiring.crew();
        self.kernel
            .spawn(Spec::new("node-lease"), move |_| NodeLease::new(&crew.succeed(), config.clone(), deps.clone()))
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

    /// Reasons of events since the last call.
    pub(super) fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock().unwrap())
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

/// Waits until something is so; blocking work of actors runs on real threads.
pub(super) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if done() {
            return;
        }
        settle().await;
    }
    panic!("never: {what}");
}
