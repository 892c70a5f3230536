//! The actor: what it knows, and what wakes it.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, supervised};
use contract::board::{ValuePoster, ValueReader};
use contract::eviction::NodePressure;
use contract::node::{LeaseState, NodeView};
use contract::runtime::RuntimeInfo;
use contract::shutdown::Shutdown;
use contract::volume::VolumesInUse;
use contract::{Crew, NodeManager as Role};
use futures::StreamExt;
use futures::stream::BoxStream;
use model::Timestamp;
use model::core::Node;
use model::event::{EventObject, EventType, NodeEvent};
use node_status::event;
use ports::api::{Followed, Kind, Object, Selection};
use tokio::time::Instant;

use crate::config::{Config, Deps};
use crate::state::{Accepted, Conditions, KnownNode, Observed, Passes, PodNetworks, Registration, Reports};

/// Status passes come up to this share of the period late.
const JITTER: f64 = 0.04;
/// A runtime that is out of reach for so long is down, as a kubelet has it.
const AWAY: Duration = Duration::from_secs(30);
/// Readers of the view are not woken for every renewal of the lease.
const LEASE_NEWS: i64 = 60_000_000_000;

/// The actor.
pub struct NodeManager {
    pub(crate) crew: Crew<Role>,
    view: ValuePoster<NodeView>,
    lease: ValueReader<LeaseState>,
    pub(crate) runtime_info: ValueReader<RuntimeInfo>,
    pub(crate) volumes: ValueReader<VolumesInUse>,
    pub(crate) pressure: ValueReader<NodePressure>,
    pub(crate) shutdown: ValueReader<Shutdown>,
    /// The latest pass that was asked for took this into account.
    going_down: bool,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) started: Option<Instant>,
    pub(crate) node: KnownNode,
    pub(crate) registration: Registration,
    pub(crate) reports: Reports,
    pub(crate) observed: Observed,
    pub(crate) conditions: Conditions,
    pub(crate) passes: Passes,
    pub(crate) networks: PodNetworks,
    /// One change for drivers at a time.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
}

impl std::fmt::Debug for NodeManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeManager({})", self.config.plan.name)
    }
}

supervised!(NodeManager);

impl Actor for NodeManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.started = Some(ctx.clock().now());
        if ctx.generation() == 0 {
            let message = "Starting kubelet.".to_owned();
            self.emit([NodeEvent {
                kind: EventType::Normal,
                reason: "Starting".into(),
                message,
                object: EventObject::Node,
            }]);
        }
        if let Some(api) = &self.deps.api {
            let selection = Selection {
                kind: Kind::Node,
                namespace: None,
                field_selector: format!("metadata.name={}", self.config.plan.name),
            };
            let stream = api.follow(selection);
            self.pump(stream, ctx);
        }
        ctx.watch(self.runtime_info.subscribe(), |act, info, ctx| act.on_runtime(&info, ctx));
        ctx.watch(self.lease.subscribe(), |act, _, _| act.publish());
        ctx.watch(self.pressure.subscribe(), |act, pressure, ctx| act.on_pressure(&pressure, ctx));
        ctx.watch(self.volumes.subscribe(), |act, volumes, ctx| act.on_volumes(&volumes, ctx));
        ctx.watch(self.shutdown.subscribe(), |act, _, ctx| act.on_shutdown(ctx));
        self.tick(ctx);
    }
}

impl NodeManager {
    /// A new generation. The view outlives it: a Node that was registered need not be registered again.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let published = crew.publisher::<NodeView>();
        let view = published.get();
        let registered = view.registered || !config.register || deps.api.is_none();
        Self {
            view: published,
            lease: crew.value(),
            runtime_info: crew.value(),
            volumes: crew.value(),
            pressure: crew.value(),
            shutdown: crew.value(),
            going_down: false,
            crew,
            started: None,
            node: KnownNode::from_view(&view),
            registration: Registration::new(registered),
            reports: Reports::new(&config),
            observed: Observed::default(),
            conditions: Conditions::from_view(&view),
            passes: Passes::default(),
            networks: PodNetworks::default(),
            turn: Arc::default(),
            config,
            deps,
        }
    }

    /// Works the status out every period, a little late by chance.
    fn tick(&mut self, ctx: &mut Ctx<Self>) {
        // While it waits to try again, that timer alone drives it.
        if !self.passes.timer {
            self.sync(ctx);
        }
        let wait = self.config.update_every.mul_f64(1.0 + JITTER * ctx.rng().f64());
        ctx.after(wait, Self::tick);
    }

    fn pump(&mut self, mut stream: BoxStream<'static, Followed>, ctx: &mut Ctx<Self>) {
        let next = async move { (stream.next().await, stream) };
        ctx.run(next, |act: &mut Self, (step, stream), ctx| {
            ctx.fault_point("watched");
            let Some(step) = step else { return };
            act.on_step(step);
            act.pump(stream, ctx);
        });
    }

    fn on_step(&mut self, step: Followed) {
        let own = |o: Object| match o {
            Object::Node(node) if node.metadata.name.as_deref() == Some(self.config.plan.name.as_str()) => Some(node),
            _ => None,
        };
        match step {
            Followed::All(all) => {
                if let Some(node) = all.into_iter().find_map(own) {
                    self.note_node(node);
                }
            }
            Followed::Applied(object) => {
                if let Some(node) = own(object) {
                    self.note_node(node);
                }
            }
            Followed::Deleted(_) => tracing::warn!("the Node object of this machine was deleted"),
            Followed::Failed(error) => tracing::debug!(%error, "the own Node cannot be watched"),
        }
    }

    /// Keeps the newest state of the API server's Node.
    pub(crate) fn note_node(&mut self, node: Arc<Node>) {
        let Accepted::Newer { unschedulable } = self.node.accept(node) else { return };
        if let Some(unschedulable) = unschedulable {
            let reason = if unschedulable { "NodeNotSchedulable" } else { "NodeSchedulable" };
            self.emit([event(&self.config.plan, reason)]);
        }
        self.publish();
    }

    fn on_runtime(&mut self, info: &RuntimeInfo, ctx: &mut Ctx<Self>) {
        if self.observed.runtime.update(info, ctx.clock().now()) {
            if self.observed.runtime.is_away() {
                ctx.after(AWAY, Self::sync);
            }
            self.sync(ctx);
        }
    }

    /// Schedulers must know soon: no more pods come to a node that evicts.
    fn on_pressure(&mut self, pressure: &NodePressure, ctx: &mut Ctx<Self>) {
        if !pressure.conditions.iter().eq(self.conditions.pressure.iter().map(|p| p.as_str())) {
            self.sync(ctx);
        }
    }

    /// A pod that waits for its volume waits for this report; without one, nothing is to be told.
    fn on_volumes(&mut self, volumes: &VolumesInUse, ctx: &mut Ctx<Self>) {
        let told =
            self.node.api.as_ref().and_then(|n| n.status.as_ref()?.volumes_in_use.as_deref()).unwrap_or_default();
        if volumes.names.as_ref().is_some_and(|names| !names.iter().eq(told)) {
            self.sync(ctx);
        }
    }

    /// The machine goes down, or stays up after all: pods are refused or taken from now on, and the API server is told at once.
    fn on_shutdown(&mut self, ctx: &mut Ctx<Self>) {
        let going_down = self.shutdown.get().shutting_down;
        if std::mem::replace(&mut self.going_down, going_down) != going_down {
            self.publish();
            self.sync(ctx);
        }
    }

    pub(crate) fn emit(&self, events: impl IntoIterator<Item = NodeEvent>) {
        for event in events {
            self.crew.emit(event);
        }
    }

    /// Publishes the view when it differs from what was published in more than a fresh heartbeat.
    pub(crate) fn publish(&self) {
        let (lease, before) = (self.lease.get(), self.view.get());
        let error = self.reports.error.clone();
        let view = NodeView {
            node: self.node.published(self.registration.done),
            origin: self.node.origin(),
            registered: self.registration.done,
            ready: self.conditions.ready.clone(),
            pressure: self.conditions.pressure.iter().map(|p| p.as_str().to_owned()).collect(),
            shutting_down: self.shutdown.get().shutting_down,
            lease_renewed_at: before.lease_renewed_at,
            error: error.or_else(|| lease.error.as_ref().map(|e| format!("lease: {e}"))),
        };
        let news = match (before.lease_renewed_at, lease.renewed_at) {
            (Some(told), Some(at)) => at.nanos_since(told) >= LEASE_NEWS,
            (told, at) => told != at,
        };
        if news || *before != view {
            self.view.publish(NodeView { lease_renewed_at: lease.renewed_at, ..view });
        }
    }

    /// Another pass after a while, unless one is due already.
    pub(crate) fn sync_after(&mut self, wait: Duration, ctx: &mut Ctx<Self>) {
        if !self.passes.timer {
            self.passes.timer = true;
            ctx.after(wait, |act, ctx| {
                act.passes.timer = false;
                act.registration.backing_off = false;
                act.sync(ctx);
            });
        }
    }

    pub(crate) fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }
}
