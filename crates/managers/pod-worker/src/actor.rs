//! The actor: applies updates, runs one step at a time, decides when the next one is due.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AsyncContext, Class, Ctx, Handler, SpawnHandle, supervised, watch};
use contract::Crew;
use contract::board::BoardPoster;
use contract::pod_worker::{GrantStart, UpdatePod, WorkerPhase, WorkerState};
use contract::probe::PodProbes;
use contract::runtime::Observed;
use model::allocation::{ResizeInProgress, asks_the_same};
use model::core::Pod;
use model::{PodUid, Timestamp};
use tokio::time::Instant;
use trace::Span;

use crate::chronicle::Chronicle;
use crate::deps::Deps;
use crate::job::{AskRetries, Failure, Job, Signal, Stage};
use crate::machine::{Machine, Reaction, Step};
use crate::measure;
use crate::memo::{Memo, Record};
use crate::terminate::synthetic_pod;
use crate::traced;

mod outcome;

/// The end of a pod takes seconds. What takes longer, on top of the grace that containers have, is reported.
const SLOW_END: Duration = Duration::from_secs(30);
/// And again after this time.
const SLOW_END_AGAIN: Duration = Duration::from_secs(300);

/// Cause of a step that follows a message about the pod.
const UPDATED: &str = "told of a change";

/// The actor of one pod UID.
#[derive(Debug)]
pub struct PodWorker {
    uid: PodUid,
    crew: Crew<contract::PodWorker>,
    row: BoardPoster<PodUid, WorkerState>,
    deps: Arc<Deps>,
    machine: Machine,
    memo: Memo,
    signal: watch::Sender<Signal>,
    /// The journal was read.
    loaded: bool,
    steps: Steps,
    shown: Shown,
    /// What happened to the pod, for people.
    chronicle: Chronicle,
}

/// The step under way, and the next one.
#[derive(Debug, Default)]
struct Steps {
    /// A step is under way.
    running: bool,
    /// Something happened during the step: another one follows.
    again: bool,
    /// When the next one is due.
    timer: Option<SpawnHandle>,
    /// What the step under way waits for.
    stage: Stage,
    /// Fires when a step that ends the pod takes too long.
    slow_end: Option<SpawnHandle>,
}

/// What the worker's board row says of its steps.
#[derive(Debug)]
struct Shown {
    /// End of the last step.
    synced_at: Timestamp,
    error: Option<String>,
    /// Why the last step was taken.
    cause: String,
}

impl Actor for PodWorker {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if let Some(row) = self.row.get(&self.uid) {
            self.machine = Machine::recover(&row);
            self.memo.is_behind = row.resizing.is_some();
            self.shown.synced_at = row.synced_at;
        }
        self.load_record(ctx);
        ctx.watch(self.crew.board::<Observed>().subscribe(self.uid.clone()), |act, _row, ctx| {
            act.next_step("the runtime reports a change", ctx);
        });
        ctx.watch(self.crew.board::<PodProbes>().subscribe(self.uid.clone()), |act, _row, ctx| {
            act.next_step("a probe changed its verdict", ctx);
        });
    }
}
supervised!(PodWorker);

impl PodWorker {
    /// The worker of `uid`; where an earlier instance was is read from the board when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::PodWorker>, uid: PodUid, deps: Arc<Deps>) -> Self {
        Self {
            chronicle: Chronicle::new(uid.clone(), crew.poster()),
            uid,
            row: crew.poster(),
            crew,
            deps,
            machine: Machine::default(),
            memo: Memo::default(),
            signal: watch::channel(Signal::default()).0,
            loaded: false,
            steps: Steps::default(),
            shown: Shown { synced_at: Timestamp::ZERO, error: None, cause: "just made".to_owned() },
        }
    }

    /// Back-off and start time of an earlier life, before the first step.
    fn load_record(&mut self, ctx: &mut Ctx<Self>) {
        let (journal, uid) = (self.deps.journal.clone(), self.uid.clone());
        let max = self.deps.config.crash_backoff_max;
        let effects = ctx.effects();
        let is_told = !self.chronicle.is_empty();
        let load =
            move || (Record::load(&*journal, &uid), (!is_told).then(|| Chronicle::load(&*journal, &uid)).flatten());
        let read = async move { effects.attempt(Class::Journal, load).await };
        ctx.run(read, move |act, lines, ctx| {
            let lost = |error: &_| tracing::warn!(uid = %act.uid, %error, "the journal's line is not read: back-off begins anew");
            let (record, history) = lines.inspect_err(lost).unwrap_or_default();
            act.chronicle.begin_life(history, Timestamp(ctx.clock().unix_nanos()));
            act.memo.saved = record.is_some();
            let mut backoff = pod_plan::CrashBackoff::new(max);
            if let Some(old) = record {
                for (key, entry) in old.backoff.entries() {
                    backoff.restore(key, *entry);
                }
                act.memo.record = old;
            }
            act.memo.record.backoff = backoff;
            act.loaded = true;
            act.note_turn(ctx);
            act.next_step("just started", ctx);
        });
    }

    /// Takes the next step; when one is under way, right after that.
    fn next_step(&mut self, cause: &str, ctx: &mut Ctx<Self>) {
        if !self.loaded {
            return;
        }
        if self.steps.running {
            self.steps.again = true;
            return;
        }
        cause.clone_into(&mut self.shown.cause);
        let step = self.machine.step();
        if step != Step::Rest {
            self.begin(step, ctx);
        }
    }

    fn begin(&mut self, step: Step, ctx: &mut Ctx<Self>) {
        self.steps.running = true;
        self.steps.again = false;
        if let Some(timer) = self.steps.timer.take() {
            ctx.cancel_future(timer);
        }
        let stopping = step != Step::Sync;
        if stopping && !self.machine.started_terminating {
            self.machine.started_terminating = true;
            self.chronicle.end_asked(&self.machine.kill, Timestamp(ctx.clock().unix_nanos()));
        }
        self.chronicle.step();
        self.signal.send_replace(Signal { stop: self.machine.termination_requested, grace_s: self.machine.grace_s });
        self.post();
        ctx.fault_point("step");
        if self.shown.synced_at == Timestamp::ZERO
            && let Some(pod) = self.machine.pod.as_deref().filter(|_| step == Step::Sync)
        {
            measure::began(pod, Timestamp(ctx.clock().unix_nanos()));
            self.chronicle.taken(Timestamp(ctx.clock().unix_nanos()));
        }
        let mut job = self.job(ctx);
        let grace = self.machine.grace_s.unwrap_or(1);
        let kill = self.machine.kill.clone();
        if stopping {
            let given = if step == Step::CleanUp { 0 } else { u64::try_from(grace).unwrap_or(0) };
            self.watch_end(ctx.clock().now(), Duration::from_secs(given) + SLOW_END, ctx);
        }
        let span = traced::begin(step, self.machine.pod.as_deref(), self.operation());
        match step {
            Step::Rest => {}
            Step::Sync => self.run_step(ctx, span, async move { (job.sync().await, job.into_memo()) }, Self::synced),
            Step::Terminate => {
                self.run_step(
                    ctx,
                    span,
                    async move { (job.terminate(grace, &kill).await, job.into_memo()) },
                    Self::terminated,
                );
            }
            Step::TerminateOrphan => {
                self.run_step(
                    ctx,
                    span,
                    async move { (job.terminate_orphan(grace).await, job.into_memo()) },
                    Self::terminated,
                );
            }
            Step::CleanUp => {
                self.run_step(ctx, span, async move { (job.clean_up(&kill).await, job.into_memo()) }, Self::cleaned)
            }
        }
    }

    fn run_step<T: 'static>(
        &mut self,
        ctx: &mut Ctx<Self>,
        span: Span,
        step: impl Future<Output = (Result<T, Failure>, Memo)> + 'static,
        then: fn(&mut Self, T, &mut Ctx<Self>),
    ) {
        let (operation, began) = (self.operation(), ctx.clock().now());
        // A step is large: it is moved once.
        ctx.run(traced::run(span, Box::pin(step)), move |act, (outcome, memo), ctx| {
            let took = ctx.clock().now().saturating_duration_since(began).as_secs_f64();
            metrics::pods::WORKER_DURATION.with_label_values(&[operation]).observe(took);
            act.steps.running = false;
            if let Some(slow_end) = act.steps.slow_end.take() {
                ctx.cancel_future(slow_end);
            }
            let is_behind = act.memo.is_behind;
            act.memo = memo;
            // A first step that failed has not looked at it.
            act.memo.is_behind |= is_behind && act.memo.acted_on.is_none();
            act.shown.synced_at = Timestamp(ctx.clock().unix_nanos());
            let failed = outcome.is_err();
            match outcome {
                Ok(value) => {
                    act.shown.error = None;
                    act.memo.lost = false;
                    then(act, value, ctx);
                }
                Err(failure) => act.failed(failure, ctx),
            }
            act.post();
            if act.machine.phase < WorkerPhase::Finished {
                act.chronicle.save(&*act.deps.journal, failed, act.shown.synced_at);
            }
            if act.steps.again {
                act.next_step("something happened meanwhile", ctx);
            }
        });
    }

    /// What metrics call the step that begins now.
    fn operation(&self) -> &'static str {
        if self.shown.synced_at == Timestamp::ZERO {
            "create"
        } else if self.shown.cause == UPDATED {
            "update"
        } else {
            "sync"
        }
    }

    fn job(&self, ctx: &mut Ctx<Self>) -> Job {
        let pod = self.machine.pod.clone().unwrap_or_else(|| {
            let row = self.crew.board::<Observed>().get(&self.uid);
            Arc::new(synthetic_pod(row.as_ref().map(|r| &*r.pod), &self.uid))
        });
        Job {
            crew: self.crew.clone(),
            deps: self.deps.clone(),
            uid: self.uid.clone(),
            pod,
            pending: self.machine.pending.clone(),
            memo: self.memo.clone(),
            signal: self.signal.subscribe(),
            effects: ctx.effects(),
            clock: ctx.clock().clone(),
            seed: ctx.rng().u64(..),
            ask_retries: AskRetries::new(&self.memo),
            stage: self.steps.stage.clone(),
            chronicle: self.chronicle.clone(),
        }
    }

    /// A step that ends the pod and does not end itself says what it waits for: in the log and on the board.
    fn watch_end(&mut self, since: Instant, wait: Duration, ctx: &mut Ctx<Self>) {
        self.steps.slow_end = Some(ctx.after(wait, move |act, ctx| {
            let waited_s = ctx.clock().now().duration_since(since).as_secs();
            let stage = act.steps.stage.get();
            let pod = act.machine.pod.as_deref().map(model::pod::describe);
            tracing::warn!(uid = %act.uid, pod, waited_s, "the end of the pod waits for {stage}");
            act.shown.error = Some(format!("waits for {stage}"));
            act.post();
            act.watch_end(since, SLOW_END_AGAIN, ctx);
        }));
    }

    fn next_step_after(&mut self, wait: Duration, cause: &'static str, ctx: &mut Ctx<Self>) {
        if let Some(timer) = self.steps.timer.take() {
            ctx.cancel_future(timer);
        }
        self.steps.timer = Some(ctx.after(wait, move |act, ctx| {
            act.steps.timer = None;
            act.next_step(cause, ctx);
        }));
    }

    fn post(&self) {
        let m = &self.machine;
        let row = WorkerState {
            phase: m.phase,
            termination_requested: m.termination_requested,
            started_terminating: m.started_terminating,
            evicted: m.kill.evicted,
            deleted: m.kill.deleted,
            synced_at: self.shown.synced_at,
            error: self.shown.error.clone(),
            cause: self.shown.cause.clone(),
            pod: m.pod.clone(),
            kill: m.termination_requested.then(|| m.kill.clone()),
            pending: m.pending.clone(),
            resizing: self.memo.resize.clone().or_else(|| self.is_to_resize()),
        };
        self.row.post(self.uid.clone(), Arc::new(row));
    }

    /// What was granted since the last step looked.
    fn is_to_resize(&self) -> Option<ResizeInProgress> {
        let pod = self.machine.pod.as_ref()?;
        let what = self.deps.config.resizable;
        let is_other = |old: &Arc<Pod>| !Arc::ptr_eq(old, pod) && !asks_the_same(old, pod, what);
        let generation = pod.metadata.generation.unwrap_or(0);
        (self.memo.is_behind || self.memo.acted_on.as_ref().is_some_and(is_other))
            .then_some(ResizeInProgress { generation, error: None })
    }

    /// Something was granted before the first step: no step has seen what the pod had before, and where no container runs nobody
    /// else knows that the pod's cgroup does not follow it yet.
    fn is_granted_early(&self, before: Option<&Pod>) -> bool {
        let what = self.deps.config.resizable;
        let now = self.machine.pod.as_deref();
        self.memo.acted_on.is_none() && before.zip(now).is_some_and(|(before, now)| !asks_the_same(before, now, what))
    }

    fn note_turn(&self, ctx: &Ctx<Self>) {
        if self.loaded {
            let waits = self.machine.phase == WorkerPhase::Waiting && !self.machine.is_new();
            self.chronicle.turn(waits, Timestamp(ctx.clock().unix_nanos()));
        }
    }

    fn react(&mut self, reaction: Reaction, cause: &str, ctx: &mut Ctx<Self>) {
        self.post();
        self.note_turn(ctx);
        match reaction {
            Reaction::Nothing => {}
            Reaction::Step => self.next_step(cause, ctx),
            Reaction::Interrupt => {
                let signal = Signal { stop: true, grace_s: self.machine.grace_s };
                self.signal.send_replace(signal);
                self.next_step(cause, ctx);
            }
        }
    }
}

impl Handler<UpdatePod> for PodWorker {
    type Result = ();

    fn handle(&mut self, msg: UpdatePod, ctx: &mut Ctx<Self>) {
        let alive = self.crew.board::<Observed>().get(&self.uid).is_some_and(|row| row.pod.is_alive());
        self.memo.is_behind |= msg.is_behind;
        let before = self.machine.pod.clone();
        let reaction = self.machine.update(msg, alive);
        self.memo.is_behind |= self.is_granted_early(before.as_deref());
        ctx.fault_point("updated");
        self.react(reaction, UPDATED, ctx);
    }
}

impl Handler<GrantStart> for PodWorker {
    type Result = ();

    fn handle(&mut self, _msg: GrantStart, ctx: &mut Ctx<Self>) {
        if self.machine.phase == WorkerPhase::Waiting {
            let reaction = self.machine.grant();
            self.react(reaction, "may start", ctx);
        }
    }
}
