//! The actor: looks, and brings about what follows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Clock, Ctx, supervised};
use contract::board::{BoardReader, ValuePoster};
use contract::eviction::{NodePressure, PressureView};
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::stats::{StatsError, Summarise};
use contract::{Crew, EvictionManager as Role};
use eviction::{Layout, Ledger, Resource, SHORTEST, Signals, Threshold, next_look};
use model::event::{EventObject, EventType, NodeEvent};
use model::node::Pressure;
use model::stats::Summary;
use model::{PodUid, Timestamp, pod};
use tokio::time::Instant;

use crate::config::{Config, Deps};
use crate::disks::DiskLooks;
use crate::evict::{self, Answer, Order};
use crate::notifications::Notifications;
use crate::observe::{DisksSeen, Look, Places, look};
use crate::reclaim;
use crate::unseen::Unseen;
use crate::view::{self, Observation};

/// What pods use of their own limits is asked for at most so often: their volumes are measured once a minute.
const LOCAL_PERIOD: Duration = Duration::from_secs(10);
/// While memory is short, limits of pods' own are compared only when they were not for so long.
const LATE_LIMITS: Duration = Duration::from_secs(60);
/// An order that its worker was told is on the worker's row by then.
const TAKEN_LIMIT: Duration = Duration::from_secs(1);
/// How long a pass waits for volumes that were never measured.
const MEASURED_LIMIT: Duration = Duration::from_secs(20);
/// How often it looks whether they are.
const MEASURED_PERIOD: Duration = Duration::from_secs(1);
/// How long a pass waits for pods that it ended to be gone, once they have stopped.
const CLEANED_LIMIT: Duration = Duration::from_secs(30);
/// How often it looks whether they are.
const CLEANED_PERIOD: Duration = Duration::from_millis(200);

/// The actor.
#[derive(Debug)]
pub struct EvictionManager {
    pub(crate) crew: Crew<Role>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pressure: ValuePoster<NodePressure>,
    view: ValuePoster<PressureView>,
    workers: BoardReader<PodUid, WorkerState>,
    /// With those that follow from the disks of this machine.
    pub(crate) thresholds: Vec<Threshold>,
    places: Option<Places>,
    disks: DiskLooks<DisksSeen>,
    /// Pods whose volumes were waited for in vain.
    unmeasured: BTreeSet<PodUid>,
    unseen: Unseen,
    ledger: Ledger,
    started: Option<Instant>,
    last: Option<(Instant, Signals)>,
    /// When pods' own limits were compared last.
    limits_at: Option<Instant>,
    /// Pause between two looks while nothing falls.
    pub(crate) longest: Duration,
    /// Nobody could be evicted: until then the kernel's alarms change nothing.
    deaf_until: Option<Instant>,
    pub(crate) notifications: Notifications,
    pass: Pass,
}

/// Where the pass under way is.
#[derive(Debug, Default)]
struct Pass {
    running: bool,
    /// Somebody wants another look meanwhile.
    again: bool,
    /// Number of the timer that counts: an older one is passed over.
    timer: u64,
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
        self.pass.running = true;
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
            unseen: Unseen::default(),
            ledger: Ledger::default(),
            started: None,
            last: None,
            limits_at: None,
            longest: eviction::LONGEST,
            deaf_until: None,
            notifications: Notifications::default(),
            pass: Pass::default(),
        }
    }

    /// What pods have that end already may be all that is missing.
    fn go_on(&mut self, ctx: &mut Ctx<Self>) {
        match evict::ending(&self.crew) {
            ending if ending.is_empty() => self.begin(ctx),
            ending => self.await_orders(ending, None, ctx),
        }
    }

    /// A pass begins, unless one is under way; then another one follows it.
    fn look(&mut self, ctx: &mut Ctx<Self>) {
        if std::mem::replace(&mut self.pass.running, true) {
            self.pass.again = true;
            return;
        }
        self.begin(ctx);
    }

    fn begin(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let (places, disks) = (self.places.clone(), self.disks.clone());
        let work = async move { look(deps, config, places, disks, &effects).await };
        ctx.run(work, |act: &mut Self, seen, ctx| match seen {
            Some(seen) => act.on_look(seen, ctx),
            None => {
                tracing::warn!("the machine does not answer: nobody knows what runs short");
                act.done(eviction::LONGEST, ctx);
            }
        });
    }

    /// The kernel said that memory runs short.
    pub(crate) fn look_soon(&mut self, ctx: &mut Ctx<Self>) {
        let now = ctx.clock().now();
        if self.deaf_until.is_some_and(|until| now < until) {
            return;
        }
        let ago = self.last.as_ref().map(|(at, _)| now.saturating_duration_since(*at));
        match ago.and_then(|ago| SHORTEST.checked_sub(ago)).filter(|left| !left.is_zero()) {
            Some(left) if !self.pass.running => self.look_in(left, ctx),
            _ => self.look(ctx),
        }
    }

    fn look_in(&mut self, pause: Duration, ctx: &mut Ctx<Self>) {
        self.pass.timer += 1;
        let timer = self.pass.timer;
        ctx.after(pause, move |act, ctx| {
            if act.pass.timer == timer {
                act.look(ctx);
            }
        });
    }

    /// The pass is over.
    fn done(&mut self, pause: Duration, ctx: &mut Ctx<Self>) {
        self.pass.running = false;
        let pause = if std::mem::take(&mut self.pass.again) { SHORTEST } else { pause };
        self.look_in(pause, ctx);
    }

    fn on_look(&mut self, seen: Look, ctx: &mut Ctx<Self>) {
        ctx.fault_point("looked");
        if self.places != seen.places {
            self.places.clone_from(&seen.places);
            self.thresholds = eviction::for_layout(&self.config.thresholds, self.layout());
        }
        self.unseen.observe(seen.missed.clone()).tell();
        self.set_notifications(&seen, ctx);
        let (now, transition) = (ctx.clock().now(), self.config.pressure_transition);
        let since = self.started.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let verdict = self.ledger.observe(&self.thresholds, &seen.signals, since, transition);
        self.publish(&verdict.pressures);
        self.show(&seen.signals, since, ctx);
        let pause = self.next_look(&seen.signals, now);
        self.last = Some((now, seen.signals.clone()));
        let limits = self.limits_are_due(now);
        if verdict.due.is_empty() && !limits {
            return self.done(pause, ctx);
        }
        let due = verdict.due.first().map(|t| t.signal.resource());
        let compared = self.limits_at.or(self.started);
        let is_late = compared.is_none_or(|at| now.saturating_duration_since(at) > LATE_LIMITS);
        if limits && is_late {
            // Not again with each look when that takes long.
            self.limits_at = Some(now);
        }
        let limits = limits && (is_late || due != Some(Resource::Memory));
        let (crew, effects, clock) = (self.crew.clone(), ctx.effects(), ctx.clock().clone());
        let known = self.config.measures_volumes.then(|| self.unmeasured.clone());
        let work = async move {
            effects.hit("measure").await;
            measure(&crew, &clock, limits, due, known).await
        };
        ctx.run(work, move |act: &mut Self, measured, ctx| {
            act.on_measured(measured, verdict.due, seen.signals, pause, ctx);
        });
    }

    /// When to look again if nothing happens.
    fn next_look(&self, seen: &Signals, now: Instant) -> Duration {
        let before = self.last.as_ref().map(|(at, seen)| (now.saturating_duration_since(*at), seen));
        next_look(&self.thresholds, before.filter(|_| self.config.early_looks), seen, self.longest)
    }

    /// Whether some pod's own limits are to be compared with what it uses.
    fn limits_are_due(&self, now: Instant) -> bool {
        let is_early = self.limits_at.is_some_and(|at| now.saturating_duration_since(at) < LOCAL_PERIOD);
        let is_limited = || evict::active(&self.crew).iter().any(|pod| eviction::has_local_limit(pod));
        self.config.local_storage && !is_early && is_limited()
    }

    fn layout(&self) -> Layout {
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
    fn show(&self, seen: &Signals, since: Duration, ctx: &Ctx<Self>) {
        let observation = Observation {
            thresholds: &self.thresholds,
            seen,
            ledger: &self.ledger,
            transition: self.config.pressure_transition,
            now: (since, Self::wall(ctx)),
        };
        self.view.publish(observation.onto(&self.view.get()));
    }

    fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }

    fn on_measured(
        &mut self,
        measured: Result<Measured, StatsError>,
        due: Vec<Threshold>,
        seen: Signals,
        pause: Duration,
        ctx: &mut Ctx<Self>,
    ) {
        let Measured { summary, disks, unmeasured } = match measured {
            Ok(measured) => measured,
            Err(e) => {
                tracing::warn!(error = %e, "what pods use is not known: none is evicted");
                return self.done(pause, ctx);
            }
        };
        let now = ctx.clock().now();
        if let Some(unmeasured) = unmeasured {
            self.unmeasured = unmeasured;
        }
        if disks && self.config.local_storage && self.places.is_some() {
            self.limits_at = Some(now);
            let orders = evict::over_limits(&evict::active(&self.crew), &summary, self.layout());
            if !orders.is_empty() {
                return self.evict(orders, How::AllOf, ctx);
            }
        }
        let Some(threshold) = due.first().copied() else { return self.done(pause, ctx) };
        let resource = threshold.signal.resource().as_str();
        let message = format!("Attempting to reclaim {resource}");
        let (kind, object) = (EventType::Warning, EventObject::Node);
        self.crew.emit(NodeEvent { kind, reason: "EvictionThresholdMet".into(), message, object });
        let steps = eviction::reclaim(threshold.signal, self.layout());
        if steps.is_empty() {
            return self.evict_one(&summary, &due, &seen, now, ctx);
        }
        let (crew, effects) = (self.crew.clone(), ctx.effects());
        let (deps, config) = (self.deps.clone(), self.config.clone());
        let (places, disks) = (self.places.clone(), self.disks.clone());
        let work = async move {
            let freed = reclaim::run(&crew, steps, &effects).await;
            (freed, look(deps, config, places, disks, &effects).await)
        };
        ctx.run(work, move |act: &mut Self, (freed, after), ctx| {
            let enough = after.is_some_and(|after| eviction::is_relieved(&act.thresholds, &after.signals));
            let reclaim = Some(view::reclaimed(Self::wall(ctx), threshold.signal, freed, enough));
            act.view.publish(PressureView { reclaim, ..(*act.view.get()).clone() });
            if enough {
                tracing::info!(resource, "enough was tidied up: no pod has to go");
                return act.done(pause, ctx);
            }
            act.evict_one(&summary, &due, &seen, now, ctx);
        });
    }

    /// One pod goes: the first that somebody can end.
    fn evict_one(
        &mut self,
        summary: &Summary,
        due: &[Threshold],
        seen: &Signals,
        seen_at: Instant,
        ctx: &mut Ctx<Self>,
    ) {
        let pods = evict::active(&self.crew);
        let orders = evict::for_threshold(&pods, summary, self.layout(), due, seen, self.config.max_pod_grace);
        let age = ctx.clock().now().saturating_duration_since(seen_at).as_secs_f64();
        for threshold in due.iter().filter(|_| !orders.is_empty()) {
            metrics::eviction::STATS_AGE.with_label_values(&[threshold.signal.as_str()]).observe(age);
        }
        self.evict(orders, How::FirstOf, ctx);
    }

    fn evict(&mut self, orders: Vec<Order>, how: How, ctx: &mut Ctx<Self>) {
        let (crew, effects) = (self.crew.clone(), ctx.effects());
        let work = async move {
            let mut given = Vec::new();
            for order in orders {
                effects.hit("evict").await;
                match evict::give(&crew, &order).await {
                    Answer::Taken => given.push(order),
                    Answer::Nobody => continue,
                    // It may go all the same: no other one goes before that is known.
                    Answer::Unknown => return (given, Some(order)),
                }
                if how == How::FirstOf {
                    break;
                }
            }
            (given, None)
        };
        ctx.run(work, Self::on_evicted);
    }

    fn on_evicted(&mut self, (given, unanswered): (Vec<Order>, Option<Order>), ctx: &mut Ctx<Self>) {
        if unanswered.is_some() {
            ctx.after(TAKEN_LIMIT, |act, ctx| act.await_orders(given, unanswered, ctx));
            return;
        }
        if given.is_empty() {
            tracing::warn!("something runs short and no pod could be evicted");
            self.deaf_until = Some(ctx.clock().now() + eviction::LONGEST);
            return self.done(eviction::LONGEST, ctx);
        }
        let victim = view::victim(Self::wall(ctx), &given);
        self.view.publish(PressureView { victim, ..(*self.view.get()).clone() });
        self.await_orders(given, None, ctx);
    }

    /// `late`: one that nobody answered; by now it is known whether it was taken.
    fn await_orders(&mut self, mut given: Vec<Order>, late: Option<Order>, ctx: &mut Ctx<Self>) {
        let is_taken = |order: &Order| self.workers.get(&pod::uid(&order.pod)).is_some_and(|row| evict::knows(&row));
        if let Some(order) = late.filter(is_taken) {
            evict::tell_evicted(&self.crew, &order);
            given.push(order);
        }
        let now = ctx.clock().now();
        let stopped_by = now + given.iter().map(Order::stop_limit).max().unwrap_or_default();
        self.await_gone(given, stopped_by, stopped_by + CLEANED_LIMIT, ctx);
    }

    /// Waits for pods that were ended; then looks at once.
    fn await_gone(&mut self, mut late: Vec<Order>, stopped_by: Instant, gone_by: Instant, ctx: &mut Ctx<Self>) {
        let now = ctx.clock().now();
        let phase = |order: &Order| self.workers.get(&pod::uid(&order.pod)).map(|worker| worker.phase);
        late.retain(|order| phase(order).is_some_and(|phase| phase < WorkerPhase::Finished));
        if late.is_empty() || now >= gone_by {
            for order in &late {
                tracing::warn!(pod = %pod::describe(&order.pod), "an evicted pod is not gone yet: the next pass does not wait for it");
            }
            return self.done(SHORTEST, ctx);
        }
        let told_by = if now >= stopped_by {
            let running = late.iter().filter(|order| phase(order).is_some_and(|phase| phase < WorkerPhase::Terminated));
            running.for_each(|order| evict::tell_late(&self.crew, &order.pod));
            // Once.
            gone_by
        } else {
            stopped_by
        };
        ctx.after(CLEANED_PERIOD, move |act, ctx| act.await_gone(late, told_by, gone_by, ctx));
    }
}

/// Which of those that may be evicted go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The first that somebody can end.
    FirstOf,
    AllOf,
}

/// What pods use.
struct Measured {
    summary: Arc<Summary>,
    /// Disks, too.
    disks: bool,
    /// Pods with volumes that were never measured, where that was looked at.
    unmeasured: Option<BTreeSet<PodUid>>,
}

/// Measures pods. When memory is short processor and memory are enough, which takes the kernel's files alone: a runtime that
/// is short of memory itself may not answer. When a disk is, it waits for pods whose volumes were never measured: they would
/// count as empty. Not again for those that are `known` as such; where that is `None` for nobody.
async fn measure(
    crew: &Crew<Role>,
    clock: &Clock,
    limits: bool,
    due: Option<Resource>,
    known: Option<BTreeSet<PodUid>>,
) -> Result<Measured, StatsError> {
    let of_memory = due == Some(Resource::Memory);
    let of_disk = matches!(due, Some(Resource::EphemeralStorage | Resource::Inodes));
    let known = known.filter(|_| of_disk);
    let ask = async |only_cpu_and_memory: bool| {
        let summary = crew.call(Summarise { only_cpu_and_memory }).await?;
        let unmeasured = known.is_some().then(|| evict::unmeasured(crew, &summary));
        Ok(Measured { summary, disks: !only_cpu_and_memory, unmeasured })
    };
    let is_awaited = |measured: &Measured| match (&measured.unmeasured, &known) {
        (Some(unmeasured), Some(known)) => !unmeasured.is_subset(known),
        _ => false,
    };
    let until = clock.now() + MEASURED_LIMIT;
    loop {
        match ask(of_memory && !limits).await {
            Err(e) if of_memory && limits => {
                tracing::warn!(error = %e, "limits on local storage are not compared while memory is short");
                return ask(true).await;
            }
            Ok(measured) if is_awaited(&measured) && clock.now() < until => {
                clock.sleep(MEASURED_PERIOD).await;
            }
            answer => return answer,
        }
    }
}
