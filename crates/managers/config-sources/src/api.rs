//! The source of the API server: follows the pods of this node, and keeps a copy of them for when the server is away.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, supervised};
use contract::board::{ValuePoster, ValueReader};
use contract::config_sources::{ApiSourceView, Source};
use contract::node::{NodeOrigin, NodeView};
use contract::pod_manager::SetPods;
use contract::{ApiSource as Role, Crew};
use futures::StreamExt;
use futures::stream::{BoxStream, ReadyChunks};
use model::Timestamp;
use ports::api::{ApiServer, Followed, Kind, Selection};
use ports::journal::Journal;

use crate::handover::{HandOver, PodSource, hand_over};

mod boot;
mod doubt;
mod pod_store;
mod set;
mod storing;

pub use boot::{AfterBoot, Policy};
use pod_store::{Loaded, StoredPods};
use set::PodSet;

/// Steps of the watch taken per turn at most.
const CHUNK: usize = 256;
/// The set is handed over again this often: PodManager may have lost it.
const REPEAT: Duration = Duration::from_secs(20);
/// Pause before a lost stream is opened anew, and before the store is read or written again after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// The published error while an empty list is not believed.
const DOUBT: &str = "the API server knows neither this node nor its pods any more: they run on until it has the Node again \
     (a restart registers it anew)";

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of this node.
    pub node_name: String,
    /// Keep the pods in the journal, and go on from there while the server is away (unlike a kubelet, which then leaves
    /// containers of the server's pods unmanaged until it answers).
    pub store: bool,
    /// How long the server has to answer after a start before the stored pods count.
    pub wait: Duration,
    /// Which of them count after a boot.
    pub boot: Policy,
}

/// What the source works with.
#[derive(Clone)]
pub struct Deps {
    /// The API server.
    pub api: Arc<dyn ApiServer>,
    /// Keeps the pods.
    pub journal: Arc<dyn Journal>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("config_sources::api::Deps")
    }
}

/// The actor. A daemon without an API server does not spawn it.
#[derive(Debug)]
pub struct ApiSource {
    view: ValuePoster<ApiSourceView>,
    /// It follows the server from when the Node object is known to be in the API.
    node: ValueReader<NodeView>,
    config: Arc<Config>,
    deps: Deps,
    set: PodSet,
    /// The server's set has come, or the stored one counts.
    has_set: bool,
    hand_over: HandOver<Role>,
    server: ServerState,
    store: StoreState,
}

/// What is known of the API server.
#[derive(Debug, Default)]
struct ServerState {
    following: bool,
    /// Its last list was empty and is not believed.
    doubted: bool,
    /// When it was last written down that the server answers.
    contact_noted_at: Option<Timestamp>,
}

/// How far reading and writing of the pod store are.
#[derive(Debug, Default)]
struct StoreState {
    lines: StoredPods,
    /// What was read and may count.
    loaded: Option<Loaded>,
    /// It was read, or is not used.
    ready: bool,
    /// The time to wait for the server is over.
    waited: bool,
    writing: bool,
    /// The set changed since it was last compared with the store.
    outdated: bool,
}

impl Actor for ApiSource {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        ctx.watch(self.node.subscribe(), |act, node, ctx| {
            if node.origin == NodeOrigin::Api && !act.server.following {
                act.follow(ctx);
            }
            if node.lease_renewed_at.is_some_and(|at| act.server.contact_noted_at.is_none_or(|noted| at > noted)) {
                act.note_contact(ctx);
            }
        });
        ctx.every(REPEAT, |act, ctx| {
            if act.has_set {
                hand_over(act, ctx);
            }
        });
        if self.config.store {
            self.read_store(ctx);
            ctx.after(self.config.wait, |act, ctx| {
                act.store.waited = true;
                act.use_store(ctx);
            });
        }
    }
}
supervised!(ApiSource);

type Steps = ReadyChunks<BoxStream<'static, Followed>>;

impl ApiSource {
    /// A fresh instance; it lists anew when it starts.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Deps) -> Self {
        Self {
            view: crew.publisher(),
            node: crew.value(),
            store: StoreState { ready: !config.store, ..StoreState::default() },
            config,
            deps,
            set: PodSet::default(),
            has_set: false,
            hand_over: HandOver::new(crew),
            server: ServerState::default(),
        }
    }

    fn follow(&mut self, ctx: &mut Ctx<Self>) {
        self.server.following = true;
        let field_selector = format!("spec.nodeName={}", self.config.node_name);
        let stream = self.deps.api.follow(Selection { kind: Kind::Pod, namespace: None, field_selector });
        Self::await_steps(stream.ready_chunks(CHUNK), ctx);
    }

    fn await_steps(mut steps: Steps, ctx: &mut Ctx<Self>) {
        let work = async move { (steps.next().await, steps) };
        ctx.run(work, |act: &mut Self, (next, steps), ctx| match next {
            Some(next) => {
                act.apply(next, ctx);
                Self::await_steps(steps, ctx);
            }
            None => {
                tracing::warn!("the watch of the pods ended; it is opened anew");
                ctx.after(RETRY, |act, ctx| act.follow(ctx));
            }
        });
    }

    /// LIFE-OF-A-POD 1a/12: applies what the API server says of the pods of this node, and hands all of them to PodManager
    /// as one set.
    fn apply(&mut self, steps: Vec<Followed>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("steps");
        let mut view = (*self.view.get()).clone();
        let mut changed = false;
        for step in steps {
            if self.is_doubtful(&step, view.pods, ctx) {
                view.error = Some(DOUBT.to_owned());
                continue;
            }
            match &step {
                Followed::Failed(error) => view.error = Some(error.to_string()),
                _ => view.error = None,
            }
            if matches!(step, Followed::All(_)) {
                if view.from_store {
                    // Also when the pods are the same: now they are all.
                    changed = true;
                    tracing::info!("the API server is back; its pods count instead of the stored ones");
                }
                (self.has_set, view.synced, view.from_store, self.store.loaded) = (true, true, false, None);
            }
            changed |= self.set.apply(step);
        }
        view.pods = self.set.len();
        let answers = view.synced && view.error.is_none();
        self.publish(view);
        if answers {
            self.note_contact(ctx);
        }
        if changed && self.has_set {
            hand_over(self, ctx);
            self.update_store(ctx);
        }
    }

    fn publish(&self, view: ApiSourceView) {
        if *self.view.get() != view {
            self.view.publish(view);
        }
    }
}

impl PodSource for ApiSource {
    type Role = Role;

    fn hand_over_state(&mut self) -> &mut HandOver<Role> {
        &mut self.hand_over
    }

    fn set(&self) -> SetPods {
        let provisional = self.view.get().from_store;
        SetPods { source: Source::Api, pods: self.set.pods().cloned().collect(), provisional }
    }
}
