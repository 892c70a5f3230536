//! The source of the API server: follows the pods of this node, and keeps a copy of them for when the server is away.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::board::{ValuePoster, ValueReader};
use contract::config_sources::{ApiSourceView, Source};
use contract::node::{NodeOrigin, NodeView};
use contract::pod_manager::SetPods;
use contract::{ApiSource as Role, Crew};
use futures::StreamExt;
use futures::stream::{BoxStream, ReadyChunks};
use model::Timestamp;
use model::core::Node;
use ports::api::{ApiExt, ApiServer, Followed, Kind, Selection};
use ports::journal::Journal;

use crate::handover::{HandOver, PodSource, hand_over};

mod boot;
mod set;
mod store;

use boot::Heard;
pub use boot::{AfterBoot, Policy};
use set::PodSet;
use store::{Loaded, Stored};

/// Steps of the watch taken per turn at most.
const CHUNK: usize = 256;
/// The set is said again this often: PodManager may have lost it.
const SAY_AGAIN: Duration = Duration::from_secs(20);
/// Writes to the store that go on at once: the journal makes one commit of those that come together.
const WRITERS: usize = 4;
/// A server that lost the Node is asked for it this often.
const LOOK_AGAIN: Duration = Duration::from_secs(20);
const DOUBT: &str = "the API server knows neither this node nor its pods any more: they run on until it has the Node again \
                     (a restart registers it anew)";
/// That the server was heard is written down this often.
const HEARD_EVERY: Duration = Duration::from_secs(60);
/// Pause before a lost stream is opened anew, and before a write to the store that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

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
    crew: Crew<Role>,
    view: ValuePoster<ApiSourceView>,
    /// It follows the server from when the Node object is known to be in the API.
    node: ValueReader<NodeView>,
    config: Arc<Config>,
    deps: Deps,
    set: PodSet,
    following: bool,
    /// The server's set has come, or the stored one counts.
    known: bool,
    hand_over: HandOver,
    stored: Stored,
    /// What was read from the store and may count.
    spare: Option<Loaded>,
    /// The store was read, or is not used.
    store_read: bool,
    /// The time to wait for the server is over.
    waited: bool,
    writing: bool,
    /// The set changed since the store was last compared with it.
    to_store: bool,
    /// The server's last list was empty and is not believed.
    doubting: bool,
    /// When it was last written down that the server was heard.
    heard_at: Option<Timestamp>,
}

impl Actor for ApiSource {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        ctx.watch(self.node.subscribe(), |act, node, ctx| {
            if node.origin == NodeOrigin::Api && !act.following {
                act.follow(ctx);
            }
            if node.lease_renewed_at.is_some_and(|at| act.heard_at.is_none_or(|noted| at > noted)) {
                act.note_heard(ctx);
            }
        });
        ctx.every(SAY_AGAIN, |act, ctx| {
            if act.known {
                hand_over(act, ctx);
            }
        });
        if self.config.store {
            self.read_store(ctx);
            ctx.after(self.config.wait, |act, ctx| {
                act.waited = true;
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
            crew,
            store_read: !config.store,
            config,
            deps,
            set: PodSet::default(),
            following: false,
            known: false,
            hand_over: HandOver::default(),
            stored: Stored::default(),
            spare: None,
            waited: false,
            writing: false,
            to_store: false,
            doubting: false,
            heard_at: None,
        }
    }

    fn follow(&mut self, ctx: &mut Ctx<Self>) {
        self.following = true;
        let field_selector = format!("spec.nodeName={}", self.config.node_name);
        let stream = self.deps.api.follow(Selection { kind: Kind::Pod, namespace: None, field_selector });
        Self::await_steps(stream.ready_chunks(CHUNK), ctx);
    }

    fn await_steps(mut steps: Steps, ctx: &mut Ctx<Self>) {
        let work = async move { (steps.next().await, steps) };
        ctx.run(work, |act: &mut Self, (next, steps), ctx| match next {
            Some(next) => {
                act.take(next, ctx);
                Self::await_steps(steps, ctx);
            }
            None => {
                tracing::warn!("the watch of the pods ended; it is opened anew");
                ctx.after(RETRY, |act, ctx| act.follow(ctx));
            }
        });
    }

    /// LIFE-OF-A-POD 1a/12: takes in what the API server says of the pods of this node, and hands all of them to
    /// PodManager as one set.
    fn take(&mut self, steps: Vec<Followed>, ctx: &mut Ctx<Self>) {
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
                (self.known, view.synced, view.from_store, self.spare) = (true, true, false, None);
            }
            changed |= self.set.take(step);
        }
        view.pods = self.set.len();
        let heard = view.synced && view.error.is_none();
        self.publish(view);
        if heard {
            self.note_heard(ctx);
        }
        if changed && self.known {
            hand_over(self, ctx);
            self.keep(ctx);
        }
    }

    /// A server that lists nothing where there were pods has either lost its state, or really means it. Whether it knows
    /// this node tells: until it does, its empty list is not believed and the pods run on.
    fn is_doubtful(&mut self, step: &Followed, pods: usize, ctx: &mut Ctx<Self>) -> bool {
        match step {
            Followed::All(all) if all.is_empty() && pods > 0 => {
                if !std::mem::replace(&mut self.doubting, true) {
                    self.look_for_node(ctx);
                }
                true
            }
            Followed::Failed(_) => self.doubting,
            Followed::All(_) | Followed::Applied(_) | Followed::Deleted(_) => {
                if std::mem::take(&mut self.doubting) && !matches!(step, Followed::All(_)) {
                    // It speaks of pods again: what it listed counts, and then this.
                    self.set.take(Followed::All(Vec::new()));
                }
                false
            }
        }
    }

    fn look_for_node(&mut self, ctx: &mut Ctx<Self>) {
        let (api, name) = (self.deps.api.clone(), self.config.node_name.clone());
        let work = async move { api.get::<Node>(None, &name).await };
        ctx.run(work, |act: &mut Self, answer, ctx| {
            if !act.doubting {
                return;
            }
            match answer {
                Ok(_) => {
                    act.doubting = false;
                    act.publish(ApiSourceView { pods: 0, ..(*act.view.get()).clone() });
                    act.take(vec![Followed::All(Vec::new())], ctx);
                }
                Err(error) => {
                    if error.is_not_found() {
                        tracing::warn!("{DOUBT}");
                    }
                    ctx.after(LOOK_AGAIN, |act, ctx| {
                        if act.doubting {
                            act.look_for_node(ctx);
                        }
                    });
                }
            }
        });
    }

    /// Writes down that the server was heard, now and then, once it has given its pods in this life: from then on what
    /// runs in this boot runs by its word.
    fn note_heard(&mut self, ctx: &mut Ctx<Self>) {
        let now = Timestamp(ctx.clock().unix_nanos());
        let fresh = |at: Timestamp| u64::try_from(now.0 - at.0).is_ok_and(|ns| Duration::from_nanos(ns) < HEARD_EVERY);
        if !self.config.store || !self.view.get().synced || self.heard_at.is_some_and(fresh) {
            return;
        }
        self.heard_at = Some(now);
        let heard = Heard { boot_id: self.config.boot.boot_id.clone(), at_ns: now.0 };
        let journal = self.deps.journal.clone();
        let effects = ctx.effects();
        let write = async move { effects.attempt(Class::Journal, move || boot::save(&*journal, &heard)).await };
        ctx.run(write, |act: &mut Self, written, _| {
            if let Err(error) = written.map_err(|e| e.to_string()).and_then(|w| w.map_err(|e| e.to_string())) {
                tracing::warn!(error, "when the API server was last heard is not written down");
                act.heard_at = None;
            }
        });
    }

    fn publish(&self, view: ApiSourceView) {
        if *self.view.get() != view {
            self.view.publish(view);
        }
    }

    fn read_store(&mut self, ctx: &mut Ctx<Self>) {
        let (journal, effects) = (self.deps.journal.clone(), ctx.effects());
        let work = async move {
            effects.hit("read store").await;
            effects.attempt(Class::Journal, move || store::load(&*journal)).await
        };
        ctx.run(work, |act: &mut Self, loaded, ctx| {
            let loaded = match loaded.map_err(|e| e.to_string()).and_then(|l| l.map_err(|e| e.to_string())) {
                Ok(loaded) => loaded,
                Err(error) => {
                    tracing::warn!(error, "pod store cannot be read, trying again; pods of the API server wait for it");
                    ctx.after(RETRY, |act, ctx| act.read_store(ctx));
                    return;
                }
            };
            act.stored = Stored::of(&loaded.pods);
            act.stored.note_unreadable(loaded.unreadable.clone());
            act.store_read = true;
            act.spare = (!act.known).then_some(loaded);
            act.use_store(ctx);
            act.keep(ctx);
        });
    }

    /// The stored pods count when the server has not answered in time. Never after a restart of this actor alone: then
    /// PodManager has a set that is at least as new. An empty store says nothing: it may be the first start.
    fn use_store(&mut self, ctx: &mut Ctx<Self>) {
        let view = self.view.get();
        let taken_before = ctx.generation() > 0 && (view.synced || view.from_store);
        if self.known || !self.waited || taken_before {
            return;
        }
        let Some(Loaded { mut pods, heard, .. }) = self.spare.take().filter(|l| !l.pods.is_empty()) else { return };
        let now = Timestamp(ctx.clock().unix_nanos());
        if let Some((waiting, why)) = boot::hold_back(&mut pods, heard.as_ref(), &self.config.boot, now) {
            tracing::warn!(waiting, why, "stored pods wait for the API server");
        }
        if pods.is_empty() {
            return;
        }
        tracing::warn!(pods = pods.len(), wait = ?self.config.wait,
            "the API server has not answered: going on with the pods that it last gave");
        self.set.restore(pods);
        self.known = true;
        self.publish(ApiSourceView {
            from_store: true,
            synced: false,
            pods: self.set.len(),
            error: view.error.clone(),
        });
        hand_over(self, ctx);
    }

    /// Writes what changed to the store, one batch at a time. Only what the server itself said is written.
    fn keep(&mut self, ctx: &mut Ctx<Self>) {
        self.to_store = true;
        if self.writing || !self.store_read || !self.config.store || !self.view.get().synced || !self.known {
            return;
        }
        self.to_store = false;
        let changes = self.stored.changes(self.set.pods());
        if changes.is_empty() {
            return;
        }
        self.writing = true;
        let (journal, effects) = (self.deps.journal.clone(), ctx.effects());
        let work = async move {
            effects.hit("store").await;
            let shares = changes.chunks(changes.len().div_ceil(WRITERS)).map(|share| {
                let (journal, work, effects) = (journal.clone(), share.to_vec(), effects.clone());
                // A write that panicked is not a write.
                async move {
                    let written = effects.attempt(Class::Journal, move || store::write(&*journal, work)).await;
                    written.unwrap_or_else(|e| store::all_failed(share, &e.to_string()))
                }
            });
            futures::future::join_all(shares).await.concat()
        };
        ctx.run(work, |act: &mut Self, failed, ctx| {
            act.writing = false;
            if let Some((uid, error)) = failed.first() {
                tracing::warn!(%uid, error, count = failed.len(), "pods are not stored; trying again");
                failed.iter().for_each(|(uid, _)| act.stored.forget(uid));
                ctx.after(RETRY, |act, ctx| act.keep(ctx));
            } else if act.to_store {
                act.keep(ctx);
            }
        });
    }
}

impl PodSource for ApiSource {
    type Role = Role;

    fn hand_over_state(&mut self) -> &mut HandOver {
        &mut self.hand_over
    }

    fn crew(&self) -> &Crew<Role> {
        &self.crew
    }

    fn set(&self) -> SetPods {
        let provisional = self.view.get().from_store;
        SetPods { source: Source::Api, pods: self.set.pods().cloned().collect(), provisional }
    }

    fn delivered(&mut self) {}
}
