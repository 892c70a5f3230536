//! The actor: turns messages, status changes and one timer into ticks, and ticks into probes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, ActorFutureExt, AsyncContext, Ctx, Handler, SpawnHandle, WrapFuture, supervised};
use contract::probe::{PodProbes, RetainProbes, StartProbes, StopProbes};
use contract::status::StatusEntry;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod::{self, ContainerKind};
use model::{ContainerId, PodUid, Timestamp};
use probe_schedule::{Change, Kind, Life, Next, Outcome, Schedule, Seen, Times, Worker, probes_of, target, words};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::effects::{Hands, Job, carry_out};
use crate::entry::{Entry, ProbeId, kind_out, verdict_in};
use crate::journal::{self, Kept, Writes};
use crate::{Config, Deps};

/// How long verdicts of an earlier daemon are kept for containers that nobody has shown yet.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The manager; see the crate's charter.
pub struct ProbeManager {
    deps: Deps,
    config: Config,
    pods: std::collections::BTreeMap<PodUid, Entry>,
    schedule: Schedule<ProbeId>,
    /// Due, but all slots are taken.
    queue: VecDeque<ProbeId>,
    running: usize,
    alarm: Option<(Duration, SpawnHandle)>,
    born: Option<Instant>,
    serial: u64,
    dirty: BTreeSet<PodUid>,
    kept: Kept,
    writes: Writes,
}

supervised!(ProbeManager);

impl Actor for ProbeManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        let Some(journal) = self.deps.journal.clone() else { return self.resume(ctx) };
        let load = tokio::task::spawn_blocking(move || journal::load(&journal));
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
    pub fn new(deps: Deps, config: Config) -> Self {
        Self {
            deps,
            config,
            pods: std::collections::BTreeMap::new(),
            schedule: Schedule::default(),
            queue: VecDeque::new(),
            running: 0,
            alarm: None,
            born: None,
            serial: 0,
            dirty: BTreeSet::new(),
            kept: Kept::new(),
            writes: Writes::default(),
        }
    }

    /// Monotonic time since this generation began.
    fn now(&mut self, ctx: &Ctx<Self>) -> Duration {
        let now = ctx.clock().now();
        now.duration_since(*self.born.get_or_insert(now))
    }

    fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }

    /// Takes up the pods of the former generation.
    fn resume(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, pod) in self.deps.intake.snapshot() {
            let row = self.deps.view.get(&uid);
            self.add(uid, pod, row.as_deref(), ctx);
        }
        self.end_turn(ctx);
    }

    /// Adds a pod; `former` is its row from the generation before.
    fn add(&mut self, uid: PodUid, pod: Arc<Pod>, former: Option<&PodProbes>, ctx: &mut Ctx<Self>) {
        let now = self.now(ctx);
        // A rebuilt manager spreads its probes as a young daemon does.
        let age = match former {
            Some(_) => Duration::ZERO,
            None => Duration::from_nanos(
                u64::try_from(Self::wall(ctx).nanos_since(self.config.daemon_started)).unwrap_or(0),
            ),
        };
        let status = self.deps.status.get(&uid);
        let deleting = pod.metadata.deletion_timestamp.is_some();
        self.serial += 1;
        let mut entry = Entry::new(pod.clone(), self.serial);
        for (container, settings, _) in probes_of(&pod) {
            let kind = settings.kind;
            // A probe that had ended stays ended.
            if former.is_some_and(|row| !row.has(&container.name, kind_out(kind))) {
                continue;
            }
            let seen = status.as_ref().and_then(|s| Seen::of(&pod, container, &s.status).container);
            let verdict = seen.and_then(|c| Some((former?.verdict(&c.id, kind_out(kind))?, c.id)));
            let worker = match verdict {
                Some((verdict, id)) => Worker::resumed(settings, deleting, id, verdict_in(verdict)),
                None => Worker::new(settings, deleting),
            };
            let name: Arc<str> = container.name.as_str().into();
            entry.add(&name, worker);
            let id = ProbeId { uid: uid.clone(), container: name, kind };
            self.schedule.insert(id, now, age, settings.period, ctx.rng().f64());
        }
        if entry.workers.is_empty() && former.is_none() {
            return;
        }
        self.deps.intake.post(uid.clone(), pod);
        self.dirty.insert(uid.clone());
        self.pods.insert(uid.clone(), entry);
        let rx = self.deps.status.subscribe(uid.clone());
        self.follow(uid, rx, ctx);
    }

    /// Waits for the next status of a pod.
    fn follow(&mut self, uid: PodUid, mut rx: watch::Receiver<Option<Arc<StatusEntry>>>, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.get_mut(&uid) else { return };
        let next = async move { rx.changed().await.is_ok().then_some(rx) };
        entry.watch = Some(ctx.run(next, move |this, rx, ctx| {
            let Some(rx) = rx else { return };
            this.status_changed(&uid, ctx);
            this.follow(uid, rx, ctx);
        }));
    }

    /// A container that runs but is not ready yet is looked at at once (8.4), so that readiness follows a start closely.
    fn status_changed(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        let (Some(entry), Some(status)) = (self.pods.get(uid), self.deps.status.get(uid)) else { return };
        let eager: Vec<ProbeId> = entry
            .workers
            .iter()
            .filter(|((name, kind), worker)| {
                *kind == Kind::Readiness
                    && entry.find(name, *kind).is_some_and(|(container, _)| {
                        let seen = Seen::of(&entry.pod, container, &status.status).container;
                        seen.is_some_and(|c| {
                            let ready = worker.container() == Some(&c.id)
                                && worker.verdict() == Some(probe_schedule::Verdict::Success);
                            matches!(c.life, Life::Running { .. }) && c.started && !ready
                        })
                    })
            })
            .map(|((name, kind), _)| ProbeId { uid: uid.clone(), container: name.clone(), kind: *kind })
            .collect();
        if eager.is_empty() {
            return;
        }
        let now = self.now(ctx);
        eager.iter().for_each(|id| self.schedule.trigger(id, now));
        self.wake(ctx);
    }

    /// Ticks what is due.
    fn wake(&mut self, ctx: &mut Ctx<Self>) {
        ctx.fault_point("probe.tick");
        let now = self.now(ctx);
        for id in self.schedule.take_due(now) {
            self.tick(&id, ctx);
        }
        self.end_turn(ctx);
    }

    fn tick(&mut self, id: &ProbeId, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        let status = self.deps.status.get(&id.uid);
        let seen = match (&status, entry.find(&id.container, id.kind)) {
            (Some(status), Some((container, _))) => Some(Seen::of(&entry.pod, container, &status.status)),
            _ => None,
        };
        let kept = seen.as_ref().and_then(|s| self.kept.get(&s.container.as_ref()?.id)?.get(&id.kind)).copied();
        let Some(worker) = entry.workers.get_mut(&(id.container.clone(), id.kind)) else { return };
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
            user_agent: self.config.user_agent.clone(),
        };
        let hands = Hands { runtime: self.deps.runtime.clone(), net: self.deps.net.clone(), faults: ctx.faults() };
        let (id, serial) = (id.clone(), entry.serial);
        self.schedule.begin(&id);
        self.running += 1;
        ctx.run(carry_out(hands, job), move |this, (outcome, output), ctx| {
            this.running -= 1;
            let current = this.pods.get(&id.uid).filter(|e| e.serial == serial).is_some_and(|e| {
                e.workers.get(&(id.container.clone(), id.kind)).is_some_and(|w| w.container() == Some(&container))
            });
            if current {
                this.finish(&id, outcome, &output, ctx);
            }
            this.refill(ctx);
            this.end_turn(ctx);
        });
    }

    fn finish(&mut self, id: &ProbeId, outcome: Outcome, output: &str, ctx: &mut Ctx<Self>) {
        ctx.fault_point("probe.finish");
        let missed = self.schedule.end(id);
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        let Some(worker) = entry.workers.get_mut(&(id.container.clone(), id.kind)) else { return };
        let change = worker.finish(outcome);
        if let Some((reason, message)) = words::event(id.kind, outcome, output) {
            let event = NodeEvent { kind: EventType::Warning, reason, message, object: object(&entry.pod, id) };
            self.deps.events.emit(event);
        }
        if let Some(change) = change {
            tracing::info!(pod = %id.uid, container = %id.container, kind = %id.kind, ?outcome, "probe verdict");
            self.change(id, &change, true);
        }
        if missed {
            self.tick(id, ctx);
        }
    }

    /// Gives free slots to probes that wait for one; each looks again first.
    fn refill(&mut self, ctx: &mut Ctx<Self>) {
        while self.running < self.config.max_running {
            let Some(id) = self.queue.pop_front() else { return };
            self.schedule.end(&id);
            self.tick(&id, ctx);
        }
    }

    /// Carries a change into the pod's row; a `decided` one outlives the daemon.
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

    /// Has the journal say what the row says of an instance.
    fn keep(&mut self, uid: &PodUid, container: &ContainerId) {
        if self.deps.journal.is_none() {
            return;
        }
        match self.pods.get(uid).filter(|e| e.row.verdicts.contains_key(container)) {
            Some(entry) => self.writes.save(container, entry.verdicts(container)),
            None => {
                self.kept.remove(container);
                self.writes.remove(container);
            }
        }
    }

    fn drop_worker(&mut self, id: &ProbeId) {
        self.schedule.remove(id);
        let Some(entry) = self.pods.get_mut(&id.uid) else { return };
        let instance = entry.remove(&id.container, id.kind);
        self.dirty.insert(id.uid.clone());
        if let Some(instance) = instance {
            self.keep(&id.uid, &instance);
        }
    }

    fn drop_pod(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.remove(uid) else { return };
        if let Some(watch) = entry.watch {
            ctx.cancel_future(watch);
        }
        for (container, kind) in entry.workers.keys() {
            self.schedule.remove(&ProbeId { uid: uid.clone(), container: container.clone(), kind: *kind });
        }
        for container in entry.row.verdicts.keys() {
            self.keep(uid, container);
        }
        self.dirty.remove(uid);
        self.deps.intake.remove(uid);
        self.deps.view.remove(uid);
    }

    /// Forgets what no container has claimed.
    fn drop_unclaimed(&mut self, ctx: &mut Ctx<Self>) {
        let known: BTreeSet<&ContainerId> = self.pods.values().flat_map(|e| e.row.verdicts.keys()).collect();
        let unclaimed: Vec<ContainerId> = self.kept.keys().filter(|id| !known.contains(id)).cloned().collect();
        for id in unclaimed {
            self.kept.remove(&id);
            self.writes.remove(&id);
        }
        self.end_turn(ctx);
    }

    /// Publishes what changed, writes the journal, sets the timer.
    fn end_turn(&mut self, ctx: &mut Ctx<Self>) {
        for uid in std::mem::take(&mut self.dirty) {
            if let Some(entry) = self.pods.get(&uid) {
                self.deps.view.post(uid, Arc::new(entry.row.clone()));
            }
        }
        self.flush(ctx);
        self.arm(ctx);
    }

    fn flush(&mut self, ctx: &mut Ctx<Self>) {
        let Some(journal) = self.deps.journal.clone() else { return };
        let Some(batch) = self.writes.take() else { return };
        let write = tokio::task::spawn_blocking(move || journal::write(&*journal, batch));
        ctx.run(write, |this, written, ctx| {
            if let Ok(Err(e)) = written {
                tracing::warn!(error = %e, "probe verdicts cannot be kept over a restart");
            }
            this.writes.written();
            this.flush(ctx);
        });
    }

    fn arm(&mut self, ctx: &mut Ctx<Self>) {
        let Some(due) = self.schedule.next_due() else { return };
        if let Some((at, handle)) = self.alarm {
            if at <= due {
                return;
            }
            ctx.cancel_future(handle);
        }
        let wait = due.saturating_sub(self.now(ctx));
        let handle = ctx.after(wait, |this, ctx| {
            this.alarm = None;
            this.wake(ctx);
        });
        self.alarm = Some((due, handle));
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

impl Handler<StartProbes> for ProbeManager {
    type Result = ();

    fn handle(&mut self, m: StartProbes, ctx: &mut Ctx<Self>) {
        let uid = pod::uid(&m.pod);
        if self.pods.contains_key(&uid) {
            return;
        }
        ctx.fault_point("probe.start");
        self.add(uid, m.pod, None, ctx);
        self.wake(ctx);
    }
}

impl Handler<StopProbes> for ProbeManager {
    type Result = ();

    fn handle(&mut self, m: StopProbes, ctx: &mut Ctx<Self>) {
        ctx.fault_point("probe.stop");
        if !m.keep_readiness {
            self.drop_pod(&m.uid, ctx);
            return self.end_turn(ctx);
        }
        let Some(entry) = self.pods.get(&m.uid) else { return };
        let regular = |name: &str| pod::regular_containers(&entry.pod).iter().any(|c| c.name == name);
        let over: Vec<ProbeId> = entry
            .workers
            .keys()
            .filter(|(name, kind)| *kind != Kind::Readiness && regular(name))
            .map(|(name, kind)| ProbeId { uid: m.uid.clone(), container: name.clone(), kind: *kind })
            .collect();
        over.iter().for_each(|id| self.drop_worker(id));
        self.end_turn(ctx);
    }
}

impl Handler<RetainProbes> for ProbeManager {
    type Result = ();

    fn handle(&mut self, m: RetainProbes, ctx: &mut Ctx<Self>) {
        let gone: Vec<PodUid> = self.pods.keys().filter(|uid| !m.known.contains(*uid)).cloned().collect();
        gone.iter().for_each(|uid| self.drop_pod(uid, ctx));
        self.end_turn(ctx);
    }
}
