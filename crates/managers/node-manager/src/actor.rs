//! The actor: what it knows, and what wakes it.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, supervised};
use contract::board::{ValuePoster, ValueReader};
use contract::node::{LeaseState, NodeOrigin, NodeView};
use contract::runtime::RuntimeInfo;
use contract::{Crew, NodeManager as Role};
use futures::StreamExt;
use futures::stream::BoxStream;
use model::Timestamp;
use model::core::Node;
use model::event::{EventObject, EventType, NodeEvent};
use model::node::Pressure;
use node_status::pressure::Pressures;
use node_status::{Reporting, event, without_devices};
use ports::api::{Followed, Kind, Object, Selection};
use tokio::time::Instant;

use crate::calls::Sent;
use crate::config::{Config, Deps};
use crate::health::Runtime;
use crate::look::Seen;

/// Status passes come up to this share of the period late.
const JITTER: f64 = 0.04;
/// Between tries to register.
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(100);
pub(crate) const RETRY_MOST: Duration = Duration::from_secs(7);
/// A runtime that stays away is looked at again then; a kubelet's word is that it is down after 30 s.
const AWAY_LOOK: Duration = Duration::from_secs(30);
/// Readers of the view are not woken for every renewal of the lease.
const LEASE_NEWS: i64 = 60_000_000_000;

/// The actor.
pub struct NodeManager {
    crew: Crew<Role>,
    view: ValuePoster<NodeView>,
    lease: ValueReader<LeaseState>,
    pub(crate) runtime_info: ValueReader<RuntimeInfo>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) started: Option<Instant>,
    /// When registration of a new Node was first tried, and when it succeeded: told in metrics, once.
    pub(crate) first_try: Option<Instant>,
    pub(crate) made_at: Option<Instant>,
    /// The API server's Node, the newest that was seen.
    pub(crate) node: Option<Arc<Node>>,
    /// Made from facts alone.
    pub(crate) local: Option<Arc<Node>>,
    pub(crate) registered: bool,
    pub(crate) register_retry: Duration,
    pub(crate) reporting: Reporting,
    pub(crate) pressures: Pressures,
    pub(crate) runtime: Runtime,
    /// What was seen last, and when its slow part was read.
    pub(crate) seen: Option<(Seen, Instant)>,
    /// A pass is under way.
    pub(crate) busy: bool,
    /// Another pass was asked for meanwhile.
    pub(crate) again: bool,
    /// A timer for another pass runs.
    pub(crate) waits: bool,
    /// The latest report, with what became of it.
    pub(crate) sent: Option<Arc<Sent>>,
    /// All was well once in this generation: what it says against the node from then on is true.
    pub(crate) was_ready: bool,
    /// Registration failed, and it is not yet time for another try.
    pub(crate) pausing: bool,
    pub(crate) ready: Option<(bool, String)>,
    pub(crate) pressure: Vec<Pressure>,
    pub(crate) error: Option<String>,
    unschedulable: bool,
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
        self.tick(ctx);
    }
}

impl NodeManager {
    /// A new generation. The view outlives it: a Node that was registered need not be registered again.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let published = crew.publisher::<NodeView>();
        let view = published.get();
        let node = view.node.clone().filter(|_| view.origin == NodeOrigin::Api);
        let unschedulable = node.as_ref().is_some_and(|n| is_unschedulable(n));
        let local = view.node.clone().filter(|_| view.origin == NodeOrigin::Host);
        let reporting = Reporting::new(config.report_every);
        Self {
            view: published,
            lease: crew.value(),
            runtime_info: crew.value(),
            crew,
            started: None,
            first_try: None,
            made_at: None,
            node,
            local,
            registered: view.registered || !config.register || deps.api.is_none(),
            register_retry: RETRY_FIRST,
            reporting,
            pressures: Pressures::default(),
            runtime: Runtime::default(),
            seen: None,
            busy: false,
            again: false,
            waits: false,
            sent: None,
            was_ready: false,
            pausing: false,
            ready: view.ready.clone(),
            pressure: view.pressure.iter().filter_map(|p| Pressure::parse(p)).collect(),
            error: None,
            unschedulable,
            config,
            deps,
        }
    }

    /// Looks every period, a little late by chance.
    fn tick(&mut self, ctx: &mut Ctx<Self>) {
        // While it waits to try again, that timer alone drives it.
        if !self.waits {
            self.pass(ctx);
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
                    self.take(node);
                }
            }
            Followed::Applied(object) => {
                if let Some(node) = own(object) {
                    self.take(node);
                }
            }
            Followed::Deleted(_) => tracing::warn!("the Node object of this machine was deleted"),
            Followed::Failed(error) => tracing::debug!(%error, "the own Node cannot be watched"),
        }
    }

    /// Keeps the newest state of the API server's Node.
    pub(crate) fn take(&mut self, node: Arc<Node>) {
        let version = |n: &Node| n.metadata.resource_version.as_ref().and_then(|v| v.parse::<u64>().ok());
        let known = self.node.as_ref();
        let same = known.is_some_and(|k| k.metadata.uid == node.metadata.uid);
        let older = same && matches!((known.and_then(|k| version(k)), version(&node)), (Some(a), Some(b)) if b < a);
        if older {
            return;
        }
        let unschedulable = is_unschedulable(&node);
        if unschedulable != self.unschedulable {
            self.unschedulable = unschedulable;
            let reason = if unschedulable { "NodeNotSchedulable" } else { "NodeSchedulable" };
            self.emit([event(&self.config.plan, reason)]);
        }
        self.node = Some(node);
        self.publish();
    }

    fn on_runtime(&mut self, info: &RuntimeInfo, ctx: &mut Ctx<Self>) {
        if self.runtime.take(info, ctx.clock().now()) {
            if self.runtime.is_away() {
                ctx.after(AWAY_LOOK, Self::pass);
            }
            self.pass(ctx);
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
        let origin = match (&self.node, &self.local) {
            (Some(_), _) => NodeOrigin::Api,
            (None, Some(_)) => NodeOrigin::Host,
            (None, None) => NodeOrigin::Unknown,
        };
        // Pods are admitted by this view, also while the registration that zeroes its devices is still under way.
        let api = self.node.as_ref().map(|n| if self.registered { n.clone() } else { Arc::new(without_devices(n)) });
        let view = NodeView {
            node: api.or_else(|| self.local.clone()),
            origin,
            registered: self.registered,
            ready: self.ready.clone(),
            pressure: self.pressure.iter().map(|p| p.as_str().to_owned()).collect(),
            shutting_down: false,
            lease_renewed_at: before.lease_renewed_at,
            error: self.error.clone().or_else(|| lease.error.as_ref().map(|e| format!("lease: {e}"))),
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
    pub(crate) fn pass_after(&mut self, wait: Duration, ctx: &mut Ctx<Self>) {
        if !self.waits {
            self.waits = true;
            ctx.after(wait, |act, ctx| {
                act.waits = false;
                act.pausing = false;
                act.pass(ctx);
            });
        }
    }

    pub(crate) fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }
}

fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|s| s.unschedulable).unwrap_or(false)
}
