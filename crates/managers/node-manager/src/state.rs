//! What NodeManager remembers, by what changes together. Plain data; nothing here waits or calls.

use std::sync::Arc;
use std::time::Duration;

use contract::node::{NodeOrigin, NodeView};
use model::core::Node;
use model::node::Pressure;
use node_status::{Reporting, without_devices};
use tokio::time::Instant;

use crate::config::Config;
use crate::health::Runtime;
use crate::observe::Observation;
use crate::requests::Reported;

/// Between tries to register.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(7);

/// The Node, as the API server has it and as this machine makes it.
#[derive(Debug)]
pub(crate) struct KnownNode {
    /// The API server's, the newest that was seen.
    pub api: Option<Arc<Node>>,
    /// Made from facts of the host alone.
    pub local: Option<Arc<Node>>,
    unschedulable: bool,
}

/// Networks of pods, as the runtime was told.
#[derive(Debug, Default)]
pub(crate) struct PodNetworks {
    /// What it knows.
    pub told: String,
    /// It is being told.
    pub telling: bool,
}

/// What a state of the API server's Node changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is older than the one that is known.
    Older,
    /// It is the newest now.
    Newer {
        /// `spec.unschedulable`, when it differs from before.
        unschedulable: Option<bool>,
    },
}

impl KnownNode {
    pub(crate) fn from_view(view: &NodeView) -> Self {
        let of = |origin: NodeOrigin| view.node.clone().filter(|_| view.origin == origin);
        let api = of(NodeOrigin::Api);
        let unschedulable = api.as_ref().is_some_and(|n| is_unschedulable(n));
        Self { api, local: of(NodeOrigin::Host), unschedulable }
    }

    pub(crate) fn origin(&self) -> NodeOrigin {
        match (&self.api, &self.local) {
            (Some(_), _) => NodeOrigin::Api,
            (None, Some(_)) => NodeOrigin::Host,
            (None, None) => NodeOrigin::Unknown,
        }
    }

    /// What others read. Pods are admitted by it, also while the registration that zeroes the Node's devices is still under way.
    pub(crate) fn published(&self, registered: bool) -> Option<Arc<Node>> {
        let api = self.api.as_ref().map(|n| if registered { n.clone() } else { Arc::new(without_devices(n)) });
        api.or_else(|| self.local.clone())
    }

    /// Keeps the newest state of the API server's Node.
    pub(crate) fn accept(&mut self, node: Arc<Node>) -> Accepted {
        let version = |n: &Node| n.metadata.resource_version.as_ref().and_then(|v| v.parse::<u64>().ok());
        let known = self.api.as_ref();
        let same = known.is_some_and(|k| k.metadata.uid == node.metadata.uid);
        let older = same && matches!((known.and_then(|k| version(k)), version(&node)), (Some(a), Some(b)) if b < a);
        if older {
            return Accepted::Older;
        }
        let before = std::mem::replace(&mut self.unschedulable, is_unschedulable(&node));
        self.api = Some(node);
        Accepted::Newer { unschedulable: Some(self.unschedulable).filter(|now| *now != before) }
    }
}

fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|s| s.unschedulable).unwrap_or(false)
}

/// How far the Node's registration is.
#[derive(Debug)]
pub(crate) struct Registration {
    pub done: bool,
    /// It failed, and it is not yet time for another try.
    pub backing_off: bool,
    backoff: Duration,
    /// When registration of a new Node was first tried, and when it succeeded: told in metrics, once.
    pub first_try: Option<Instant>,
    pub created_at: Option<Instant>,
}

impl Registration {
    pub(crate) fn new(done: bool) -> Self {
        Self { done, backing_off: false, backoff: RETRY_FIRST, first_try: None, created_at: None }
    }

    /// A try failed. Answers how long to wait for the next.
    pub(crate) fn failed(&mut self) -> Duration {
        let wait = self.backoff;
        self.backoff = (wait * 2).min(RETRY_MOST);
        self.backing_off = true;
        wait
    }
}

/// Which reports were made.
#[derive(Debug)]
pub(crate) struct Reports {
    pub schedule: Reporting,
    /// The latest one, with what became of it.
    pub last: Option<Arc<Reported>>,
    /// Why registration or a report failed last.
    pub error: Option<String>,
}

impl Reports {
    pub(crate) fn new(config: &Config) -> Self {
        Self { schedule: Reporting::new(config.report_every), last: None, error: None }
    }
}

/// What was observed of host and runtime.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub runtime: Runtime,
    /// The host's state, and when its slow part was read.
    pub host: Option<(Observation, Instant)>,
}

/// What the Node says of itself.
#[derive(Debug)]
pub(crate) struct Conditions {
    /// Whether it is ready, and what speaks against it; `None` before the first observation.
    pub ready: Option<(bool, String)>,
    pub pressure: Vec<Pressure>,
    /// All was well once in this generation: what it says against the node from then on is true.
    pub was_ready: bool,
}

impl Conditions {
    pub(crate) fn from_view(view: &NodeView) -> Self {
        let pressure = view.pressure.iter().filter_map(|p| Pressure::parse(p)).collect();
        Self { ready: view.ready.clone(), pressure, was_ready: false }
    }
}

/// When the status is worked out: one pass at a time, and at most one after it.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    pub running: bool,
    /// Another pass was asked for meanwhile.
    pub again: bool,
    /// A timer for another pass runs.
    pub timer: bool,
}
