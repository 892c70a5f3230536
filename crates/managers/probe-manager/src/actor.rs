//! The actor: turns messages, status changes and one timer into ticks, and ticks into probes.

mod pods;
mod publish;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use actor::{Actor, ActorFutureExt, AsyncContext, Class, Ctx, SpawnHandle, WrapFuture, supervised};
use contract::Crew;
use contract::board::{BoardPoster, BoardReader};
use contract::probe::PodProbes;
use contract::status::StatusEntry;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod::{self, ContainerKind};
use model::probe::{ProbeOutcome, ProbeVerdict};
use model::{ContainerId, PodUid, Timestamp};
use probe_schedule::{Change, Next, Schedule, Seen, Times, target, told, words};
use tokio::time::Instant;

use crate::effects::{Job, ProbeTools, run};
use crate::entry::{Entry, ProbeId};
use crate::journal::{self, Kept};
use crate::measure;
use crate::{Config, Deps};

/// How long verdicts of an earlier daemon are kept for containers that have not shown up yet.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// When a container that was probed at once after its start, and was not ready then, is probed again.
const SECOND_PROBE: Duration = Duration::from_secs(1);

/// The manager; see the crate's charter.
pub struct ProbeManager {
    crew: Crew<contract::ProbeManager>,
    status: BoardReader<PodUid, StatusEntry>,
    view: BoardPoster<PodUid, PodProbes>,
    deps: Deps,
    config: Config,
    pods: BTreeMap<PodUid, Entry>,
    schedule: Schedule<ProbeId>,
    /// Due, but all slots are taken.
    queue: VecDeque<ProbeId>,
    running: usize,
    /// Probed at once after a status, not at their period.
    eager: BTreeSet<ProbeId>,
    timer: Option<(Duration, SpawnHandle)>,
    began_at: Option<Instant>,
    serial: u64,
    dirty: BTreeSet<PodUid>,
    kept: Kept,
    /// Rows of the one that had the place before, of pods that this one was not told of yet.
    former: BTreeSet<PodUid>,
}

supervised!(ProbeManager);

impl Actor for ProbeManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        let Some(journal) = self.deps.journal.clone() else { return self.resume(ctx) };
        let effects = ctx.effects();
        let load = async move { effects.attempt(Class::Journal, move || journal::load(&journal)).await };
        // The mailbox stays shut: a pod that is adopted before its verdicts are known would turn unready.
        ctx.wait(load.into_actor(self).map(|loaded, this, ctx| {
            match loaded {
                Ok(Ok(kept)) => this.kept = kept,
                Ok(Err(e)) => tracing::warn!(error = %e, "verdicts of earlier probes cannot be read"),
                Err(e) => tracing::warn!(error = %e, "reading verdicts of earlier probes was cut off"),
            }
            if !this.kept.is_empty() {
                ctx.after(KEPT_FOR, Self::drop_unclaimed);
            }
            this.resume(ctx);
        }));
    }
}

impl ProbeManager {
    /// A manager that probes nothing yet.
    #[must_use]
    pub fn new(crew: Crew<contract::ProbeManager>, deps: Deps, config: Config) -> Self {
        Self {
            status: crew.board(),
            view: crew.poster(),
            crew,
            deps,
            config,
            pods: BTreeMap::new(),
            schedule: Schedule::default(),
            queue: VecDeque::new(),
            running: 0,
            eager: BTreeSet::new(),
            timer: None,
            began_at: None,
            serial: 0,
            dirty: BTreeSet::new(),
            kept: Kept::new(),
            former: BTreeSet::new(),
        }
    }

    /// Monotonic time since this generation began.
    fn now(&mut self, ctx: &Ctx<Self>) -> Duration {
        let now = ctx.clock().now();
        now.duration_since(*self.began_at.get_or_insert(now))
    }

    fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }

    /// Ticks what is due.
    fn wake(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fault_point("probe.tick");
        let now = self.now(ctx);
        for id in self.schedule.pop_due(now) {
            ctx.for_subject(id.uid.as_str(), |ctx| self.tick(&id, ctx));
        }
        self.end_turn(ctx);
    }

    fn tick(&mut self, id: &ProbeId, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        let status = self.status.get(&id.uid);
        let seen = match (&status, entry.find(&id.container, id.kind)) {
            (Some(status), Some((container, _))) => Some(Seen::of(&entry.pod, container, &status.status)),
            _ => None,
        };
        let Some(worker) = entry.workers.get_mut(&(id.container.clone(), id.kind)) else { return };
        let instance = seen.as_ref().and_then(|s| s.container.as_ref()).map(|c| &c.id);
        let kept = instance.filter(|new| worker.container() != Some(new)).and_then(|new| {
            let written = self.kept.get(new).and_then(|kinds| kinds.get(&id.kind)).copied();
            written.or_else(|| told(&entry.pod, &id.container, new, id.kind))
        });
        let times = Times { now: Self::wall(ctx), daemon_started: self.config.daemon_started, kept };
        let tick = worker.tick(seen.as_ref(), times);
        let container = worker.container().cloned();
        let timeout = worker.settings().timeout;
        for change in &tick.changes {
            self.change(id, change, false);
        }
        match (tick.next, container) {
            (Next::Run, Some(container)) if self.running < self.config.max_running => {
                let pod_ip = status.as_ref().and_then(|s| s.status.pod_ip.as_deref()).unwrap_or_default();
                self.launch(id, container, pod_ip, timeout, ctx);
            }
            (Next::Run, _) => {
                self.schedule.begin(id);
                self.queue.push_back(id.clone());
            }
            (Next::Exit, _) => self.drop_worker(id),
            (Next::Wait(_), _) => {}
        }
    }

    fn launch(&mut self, id: &ProbeId, container: ContainerId, pod_ip: &str, timeout: Duration, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.get(&id.uid) else { return };
        let Some((spec, probe)) = entry.find(&id.container, id.kind) else { return };
        let job = Job {
            uid: id.uid.clone(),
            container: container.clone(),
            target: target::aim(probe, spec, pod_ip, &self.config.user_agent),
            timeout,
        };
        let tools = ProbeTools { crew: self.crew.clone(), net: self.deps.net.clone(), faults: ctx.faults() };
        let (id, serial) = (id.clone(), entry.serial);
        self.schedule.begin(&id);
        self.running += 1;
        let clock = ctx.clock().clone();
        let work = async move {
            let began = clock.now();
            let (outcome, output) = run(tools, job).await;
            (outcome, output, clock.now().saturating_duration_since(began))
        };
        ctx.run(work, move |this, (outcome, output, took), ctx| {
            this.running -= 1;
            let current = this.pods.get(&id.uid).filter(|e| e.serial == serial).is_some_and(|e| {
                e.workers.get(&(id.container.clone(), id.kind)).is_some_and(|w| w.container() == Some(&container))
            });
            if current {
                if let Some(entry) = this.pods.get(&id.uid) {
                    measure::count(&entry.pod, &id, outcome, took);
                }
                this.finish(&id, outcome, &output, ctx);
            }
            this.refill(ctx);
            this.end_turn(ctx);
        });
    }

    fn finish(&mut self, id: &ProbeId, outcome: ProbeOutcome, output: &str, ctx: &mut Ctx<Self>) {
        ctx.fault_point("probe.finish");
        let missed = self.schedule.end(id);
        let second_probe = self.now(ctx) + SECOND_PROBE;
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        let Some(worker) = entry.workers.get_mut(&(id.container.clone(), id.kind)) else { return };
        let change = worker.finish(outcome);
        // COMPAT(kubelet): there, the first probe comes with the next relist, when most containers listen already; here it
        // comes within milliseconds, and a whole period until the next would make pods ready later than a kubelet does.
        if self.eager.remove(id) && worker.verdict() != Some(ProbeVerdict::Success) {
            self.schedule.hasten(id, second_probe);
        }
        if let Some((reason, message)) = words::event(id.kind, outcome, output) {
            let event =
                NodeEvent { kind: EventType::Warning, reason: reason.into(), message, object: object(&entry.pod, id) };
            self.crew.emit(event);
        }
        if let Some(change) = change {
            tracing::info!(pod = %id.uid, container = %id.container, kind = %id.kind, ?outcome, "probe verdict");
            self.change(id, &change, true);
        }
        if missed {
            self.tick(id, ctx);
        }
    }

    /// Gives free slots to probes that wait for one, where they are still to run.
    fn refill(&mut self, ctx: &mut Ctx<Self>) {
        while self.running < self.config.max_running {
            let Some(id) = self.queue.pop_front() else { return };
            self.schedule.end(&id);
            self.tick(&id, ctx);
        }
    }

    /// Applies a change to the pod's row; a `decided` one goes to the journal, too.
    fn change(&mut self, id: &ProbeId, change: &Change, decided: bool) {
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        entry.apply(id.kind, change);
        self.dirty.insert(id.uid.clone());
        match change {
            Change::Set(container, _) if decided => self.keep(&id.uid, container),
            Change::Set(..) => {}
            Change::Remove(container) => self.keep(&id.uid, container),
        }
    }

    fn unschedule(&mut self, id: &ProbeId) {
        self.schedule.remove(id);
        self.eager.remove(id);
        self.queue.retain(|queued| queued != id);
    }

    fn drop_worker(&mut self, id: &ProbeId) {
        self.unschedule(id);
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        let instance = entry.remove(&id.container, id.kind);
        measure::forget(&entry.pod, id);
        self.dirty.insert(id.uid.clone());
        if let Some(instance) = instance {
            self.keep(&id.uid, &instance);
        }
    }
}

/// The container as events name it.
fn object(pod: &Pod, id: &ProbeId) -> EventObject {
    let kind = pod::find_container(pod, &id.container).map_or(ContainerKind::Regular, |(kind, _)| kind);
    EventObject::Pod {
        namespace: pod::namespace(pod).to_owned(),
        name: pod::name(pod).to_owned(),
        uid: id.uid.clone(),
        field_path: format!("{}{{{}}}", kind.field_path(), id.container),
    }
}
