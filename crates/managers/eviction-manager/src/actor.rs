//! The actor: two lanes in which one look follows another, and what all looks add up to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, supervised};
use contract::board::{BoardReader, ValuePoster};
use contract::eviction::{NodePressure, PressureView};
use contract::pod_worker::WorkerState;
use contract::{Crew, EvictionManager as Role};
use eviction::{Layout, Ledger, Resource, SHORTEST, Signals, Threshold};
use model::node::Pressure;
use model::{PodUid, Timestamp};
use tokio::time::Instant;

use crate::config::{Config, Deps};
use crate::disks::DiskLooks;
use crate::evict::{self, Order, TAKEN_LIMIT};
use crate::lane::{Lane, Pass};
use crate::notifications::Notifications;
use crate::observe::{OthersLook, Places};
use crate::unseen::Unseen;
use crate::view::Observation;

/// The actor.
#[derive(Debug)]
pub struct EvictionManager {
    pub(crate) crew: Crew<Role>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pressure: ValuePoster<NodePressure>,
    pub(crate) view: ValuePoster<PressureView>,
    pub(crate) workers: BoardReader<PodUid, WorkerState>,
    /// With those that follow from the disks of this machine.
    pub(crate) thresholds: Vec<Threshold>,
    pub(crate) places: Option<Places>,
    pub(crate) disks: DiskLooks<OthersLook>,
    /// Pods whose volumes were waited for in vain.
    pub(crate) unmeasured: BTreeSet<PodUid>,
    /// Of memory, and of all else.
    pub(crate) unseen: [Unseen; 2],
    /// What each lane saw last.
    pub(crate) seen: Signals,
    pub(crate) ledger: Ledger,
    started: Option<Instant>,
    /// The last look at memory.
    pub(crate) last: Option<(Instant, Signals)>,
    /// When pods' own limits were compared last.
    pub(crate) limits_at: Option<Instant>,
    /// Pause between two looks at memory while nothing falls.
    pub(crate) longest: Duration,
    /// Nobody could be evicted for memory: until then the kernel's alarms change nothing.
    pub(crate) deaf_until: Option<Instant>,
    pub(crate) notifications: Notifications,
    pub(crate) memory: Pass,
    pub(crate) others: Pass,
    /// Somebody would go for a disk or processes if memory had not its turn.
    pub(crate) is_put_off: bool,
    /// A pod is being told to end, by either lane: the other one waits until it is known whether it does.
    pub(crate) is_ordering: bool,
}

impl Actor for EvictionManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.started = Some(ctx.clock().now());
        let before = self.pressure.get();
        let held = before.conditions.iter().filter_map(|name| Pressure::parse(name));
        self.ledger.recover(held, Duration::ZERO);
        if self.config.thresholds.is_empty() && !self.config.local_storage {
            tracing::info!("no eviction thresholds and no limits on local storage: no pod is evicted");
            return;
        }
        self.listen(ctx);
        self.memory.begin();
        self.others.begin();
        if ctx.generation() == 0 {
            return self.go_on(ctx);
        }
        // An order that a former instance gave as it died is on its worker's row soon.
        ctx.after(TAKEN_LIMIT, Self::go_on);
    }
}
supervised!(EvictionManager);

impl EvictionManager {
    /// A fresh instance; it looks when it starts.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            pressure: crew.publisher(),
            view: crew.publisher(),
            workers: crew.board(),
            crew,
            thresholds: config.thresholds.clone(),
            config,
            deps,
            places: None,
            disks: DiskLooks::default(),
            unmeasured: BTreeSet::new(),
            unseen: <[Unseen; 2]>::default(),
            seen: Signals::new(),
            ledger: Ledger::default(),
            started: None,
            last: None,
            limits_at: None,
            longest: eviction::LONGEST,
            deaf_until: None,
            notifications: Notifications::default(),
            memory: Pass::default(),
            others: Pass::default(),
            is_put_off: false,
            is_ordering: false,
        }
    }

    /// What was ordered and not answered is found out; pods that end already may be all that is missing.
    fn go_on(&mut self, ctx: &mut Ctx<Self>) {
        self.settle_by_row(ctx);
        let is_for_memory = |order: &Order| eviction::was_for(Resource::Memory, &order.message);
        let (memory, others) = evict::ending(&self.crew).into_iter().partition::<Vec<_>, _>(is_for_memory);
        for (lane, ending) in [(Lane::Memory, memory), (Lane::Others, others)] {
            if !self.is_looked_at(lane) {
                continue;
            }
            match ending {
                ending if ending.is_empty() => self.begin(lane, ctx),
                ending => self.await_gone(lane, ending, ctx),
            }
        }
    }

    /// Whether somebody wants it to be.
    fn is_looked_at(&self, lane: Lane) -> bool {
        let has_threshold = self.config.thresholds.iter().any(|t| Lane::of(t.signal) == lane);
        has_threshold || (lane == Lane::Others && self.config.local_storage)
    }

    pub(crate) fn pass(&mut self, lane: Lane) -> &mut Pass {
        match lane {
            Lane::Memory => &mut self.memory,
            Lane::Others => &mut self.others,
        }
    }

    /// A pass begins, unless one is under way; then another one follows it.
    pub(crate) fn look(&mut self, lane: Lane, ctx: &mut Ctx<Self>) {
        if self.pass(lane).begin() {
            self.begin(lane, ctx);
        }
    }

    fn begin(&mut self, lane: Lane, ctx: &mut Ctx<Self>) {
        match lane {
            Lane::Memory => self.begin_memory(ctx),
            Lane::Others => self.begin_others(ctx),
        }
    }

    pub(crate) fn look_in(&mut self, lane: Lane, pause: Duration, ctx: &mut Ctx<Self>) {
        let timer = self.pass(lane).set_timer();
        ctx.after(pause, move |act, ctx| {
            if act.pass(lane).counts(timer) {
                act.look(lane, ctx);
            }
        });
    }

    /// The pass is over.
    pub(crate) fn done(&mut self, lane: Lane, pause: Duration, ctx: &mut Ctx<Self>) {
        let pause = if self.pass(lane).end() { SHORTEST } else { pause };
        self.look_in(lane, pause, ctx);
    }

    /// Takes in what a lane saw, and answers which of its thresholds are due, the most urgent first.
    pub(crate) fn observe(&mut self, lane: Lane, signals: Signals, ctx: &mut Ctx<Self>) -> Vec<Threshold> {
        self.seen.retain(|signal, _| Lane::of(*signal) != lane);
        self.seen.extend(signals);
        let (now, transition) = (ctx.clock().now(), self.config.pressure_transition);
        let since = self.started.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let verdict = self.ledger.observe(&self.thresholds, &self.seen, since, transition);
        self.publish(&verdict.pressures);
        self.show(since, ctx);
        verdict.due.into_iter().filter(|t| Lane::of(t.signal) == lane).collect()
    }

    pub(crate) fn layout(&self) -> Layout {
        self.places.as_ref().map_or(Layout::Single, |places| places.layout)
    }

    fn publish(&self, pressures: &[Pressure]) {
        let conditions: Vec<String> = pressures.iter().map(|p| p.as_str().to_owned()).collect();
        if self.pressure.get().conditions != conditions {
            tracing::info!(?conditions, "the node's pressure conditions");
            self.pressure.publish(NodePressure { conditions });
        }
    }

    /// What people see of it.
    fn show(&self, since: Duration, ctx: &Ctx<Self>) {
        let observation = Observation {
            thresholds: &self.thresholds,
            seen: &self.seen,
            ledger: &self.ledger,
            transition: self.config.pressure_transition,
            now: (since, Self::wall(ctx)),
        };
        self.view.publish(observation.onto(&self.view.get()));
    }

    pub(crate) fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }
}
