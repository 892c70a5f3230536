//! The actor: state, start, and what it publishes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, supervised};
use contract::board::{BoardPoster, ValuePoster};
use contract::runtime::{CallError, CallErrorKind, Observed, RuntimeInfo};
use contract::{Crew, RuntimeClient as Role};
use model::{PodUid, Timestamp};
use ports::host::HostFs;
use ports::runtime::{ContainerRuntime, RuntimeCode, RuntimeError};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::lanes::Lanes;

mod calls;
mod events;
mod index;
mod link;
mod looks;
mod pool;
mod relist;

use events::Events;
use index::Index;
use link::Link;
use looks::Slot;
use model::runtime::EventTier;
use relist::Relisting;

/// Periods of RuntimeClient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Relist period without events.
    pub relist_without_events: Duration,
    /// Relist period beside events at first, and after a relist found what events had not told.
    pub relist_at_first: Duration,
    /// Longest relist period: it doubles as long as events and relists agree.
    pub relist_at_most: Duration,
    /// Period of the Status poll.
    pub status: Duration,
    /// How long a Version answer is believed.
    pub version: Duration,
    /// Looks at pods that run at once.
    pub looks: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            relist_without_events: Duration::from_secs(1),
            relist_at_first: Duration::from_secs(10),
            relist_at_most: Duration::from_secs(60),
            status: Duration::from_secs(5),
            version: Duration::from_secs(60),
            looks: 16,
        }
    }
}

/// What RuntimeClient works with; outlives its restarts.
#[derive(Clone)]
pub struct Deps {
    /// The runtime.
    pub runtime: Arc<dyn ContainerRuntime>,
    /// Where containers leave their termination messages.
    pub fs: Arc<dyn HostFs>,
    /// Lanes for calls.
    pub lanes: Arc<Lanes>,
    /// Periods.
    pub config: Config,
}

impl Deps {
    /// With default lanes and periods.
    #[must_use]
    pub fn new(runtime: Arc<dyn ContainerRuntime>, fs: Arc<dyn HostFs>) -> Self {
        Self { runtime, fs, lanes: Arc::default(), config: Config::default() }
    }
}

/// The actor. Give it a mailbox of a thousand or more: every call of every pod goes through it.
pub struct RuntimeClient {
    deps: Deps,
    /// One row per pod that the runtime knows.
    pods: BoardPoster<PodUid, Observed>,
    /// The runtime itself.
    published: ValuePoster<RuntimeInfo>,
    /// The board's rows; this actor is the only one who posts them.
    rows: BTreeMap<PodUid, Arc<Observed>>,
    slots: BTreeMap<PodUid, Slot>,
    index: Index,
    /// Counts what happens, so that "began before" can be told where the clock stands still.
    seq: u64,
    looks: Arc<Semaphore>,
    info: RuntimeInfo,
    link: Link,
    events: Events,
    relisting: Relisting,
    version_at: Option<Instant>,
}

impl RuntimeClient {
    /// A new generation: rows of the last one are its first guess.
    #[must_use]
    pub fn new(crew: &Crew<Role>, deps: Deps) -> Self {
        let (pods, published) = (crew.poster::<Observed>(), crew.publisher::<RuntimeInfo>());
        let rows = pods.snapshot();
        let mut index = Index::default();
        for row in rows.values() {
            index.learn_pod(&row.pod, 0);
        }
        let info = (*published.get()).clone();
        let looks = Arc::new(Semaphore::new(deps.config.looks.max(1)));
        let relisting = Relisting::new(deps.config.relist_at_first);
        Self {
            pods,
            published,
            rows,
            slots: BTreeMap::new(),
            index,
            seq: 0,
            looks,
            info: RuntimeInfo { tier: EventTier::Relist, ..info },
            link: Link::default(),
            events: Events::default(),
            relisting,
            version_at: None,
            deps,
        }
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn now(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }

    /// Publishes what is known of the runtime when that changed.
    fn publish(&self) {
        if *self.published.get() != self.info {
            self.published.publish(self.info.clone());
        }
    }
}

supervised!(RuntimeClient);

impl Actor for RuntimeClient {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.relist(ctx);
        self.subscribe(ctx);
        self.poll(ctx);
        ctx.every(self.deps.config.status, Self::poll);
    }
}

/// The contract's error for a failed call.
fn call_error(e: RuntimeError) -> CallError {
    let kind = match e.code {
        RuntimeCode::NotFound => CallErrorKind::NotFound,
        RuntimeCode::Unimplemented => CallErrorKind::Unimplemented,
        RuntimeCode::DeadlineExceeded => CallErrorKind::Timeout,
        RuntimeCode::Unavailable => CallErrorKind::Unavailable,
        _ => CallErrorKind::Failed,
    };
    CallError { kind, message: e.message, code: e.code.as_str().to_owned() }
}
