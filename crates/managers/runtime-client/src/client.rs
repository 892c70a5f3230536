//! The actor: state, start, and what it publishes. Its handlers are in the files below.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::{Actor, Ctx, supervised};
use contract::board::{BoardPoster, ValuePoster};
use contract::runtime::{Observed, RuntimeInfo};
use contract::{Crew, RuntimeClient as Role};
use model::runtime::EventTier;
use model::{PodUid, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::deps::Deps;
use crate::index::Index;
use crate::link::Link;
use crate::relisting::Relisting;
use crate::requests::PodRequests;
use crate::subscription::Subscription;

mod calls;
mod events;
mod inspections;
mod link;
mod relist;

/// The actor. Give it a mailbox of a thousand or more: every call of every pod goes through it.
pub struct RuntimeClient {
    deps: Deps,
    /// One row per pod that the runtime knows.
    pods: BoardPoster<PodUid, Observed>,
    /// The runtime itself.
    published: ValuePoster<RuntimeInfo>,
    /// The board's rows; this actor is the only one who posts them.
    rows: BTreeMap<PodUid, Arc<Observed>>,
    requests: BTreeMap<PodUid, PodRequests>,
    index: Index,
    /// Counts what happens, so that "began before" can be told where the clock stands still.
    seq: u64,
    /// Permits of inspections.
    inspections: Arc<Semaphore>,
    info: RuntimeInfo,
    link: Link,
    events: Subscription,
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
        let inspections = Arc::new(Semaphore::new(deps.config.inspections.max(1)));
        let relisting = Relisting::new(deps.config.relist_at_first);
        Self {
            pods,
            published,
            rows,
            requests: BTreeMap::new(),
            index,
            seq: 0,
            inspections,
            info: RuntimeInfo { tier: EventTier::Relist, ..info },
            link: Link::default(),
            events: Subscription::default(),
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
