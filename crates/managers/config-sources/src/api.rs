//! The source of the API server: follows the pods of this node, and keeps a copy of them for when the server is away.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AskError, Ctx, supervised};
use contract::board::{ValuePoster, ValueReader};
use contract::config_sources::{ApiSourceView, Source};
use contract::node::{NodeOrigin, NodeView};
use contract::pod_manager::{ChangePods, ChangesTaken, SetPods};
use contract::{ApiSource as Role, Crew};
use futures::future::LocalBoxFuture;
use futures::stream::{BoxStream, ReadyChunks};
use futures::{FutureExt, StreamExt};
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
use set::{Changes, PodSet};

/// Steps of the watch taken per turn at most.
const CHUNK: usize = 256;
/// PodManager is asked this often whether it still has the set.
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
    given: Given,
    server: ServerState,
    store: StoreState,
}

/// What PodManager has of the set.
#[derive(Debug)]
struct Given {
    /// Number of the set that it was given last.
    number: u64,
    /// What changed since then.
    changes: Changes,
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
    /// What changed in the set since it was last compared with the store.
    changes: Changes,
}

impl Actor for ApiSource {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        // No number of an earlier generation comes again.
        self.given.number = ctx.generation() << 32;
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
            given: Given { number: 0, changes: Changes::All },
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

    /// LIFE-OF-A-POD 1a/12: applies what the API server says of the pods of this node, and hands what changed to PodManager.
    fn apply(&mut self, steps: Vec<Followed>, ctx: &mut Ctx<Self>) {
        ctx.fault_point("steps");
        let mut view = (*self.view.get()).clone();
        let mut changed = false;
        let now = Timestamp(ctx.clock().unix_nanos());
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
                    tracing::info!("the API server is back; its pods count instead of the stored ones");
                }
                (self.has_set, view.synced, view.from_store, self.store.loaded) = (true, true, false, None);
            }
            let changes = self.set.apply(step, now);
            changed |= !changes.is_nothing();
            self.note(&changes);
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

    /// The set changed: neither PodManager nor the store knows.
    fn note(&mut self, changes: &Changes) {
        self.given.changes.extend(changes);
        if self.config.store {
            self.store.changes.extend(changes);
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
        let (pods, provisional) = (self.set.pods().cloned().collect(), self.view.get().from_store);
        SetPods { source: Source::Api, pods, provisional, number: self.given.number }
    }

    fn give(&mut self) -> LocalBoxFuture<'static, Result<ChangesTaken, AskError>> {
        let (crew, base) = (self.hand_over.crew.clone(), self.given.number);
        let changes = std::mem::take(&mut self.given.changes);
        if !changes.is_nothing() {
            self.given.number += 1;
        }
        let number = self.given.number;
        match changes {
            Changes::All => {
                let set = self.set();
                async move { crew.ask(set).await.map(|()| ChangesTaken::Taken) }.boxed_local()
            }
            Changes::Of(pods) => {
                let (mut changed, mut gone) = (Vec::new(), Vec::new());
                for (uid, pod) in pods {
                    pod.map_or_else(|| gone.push(uid), |pod| changed.push(pod));
                }
                let changes = ChangePods { source: Source::Api, base, number, changed, gone };
                async move { crew.ask(changes).await }.boxed_local()
            }
        }
    }

    fn is_lost(&mut self) {
        self.given.changes = Changes::All;
    }
}
