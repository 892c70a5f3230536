//! The actor: takes updates in, runs one step at a time, decides when to look again.

use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, AsyncContext, Class, Ctx, Handler, SpawnHandle, supervised};
use contract::Crew;
use contract::board::BoardPoster;
use contract::pod_worker::{GrantStart, UpdatePod, WorkerPhase, WorkerState};
use contract::probe::PodProbes;
use contract::runtime::Observed;
use contract::status::StatusEntry;
use model::{PodUid, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::deps::Deps;
use crate::job::{Chances, Failure, Job, Retry, Signal, Stage};
use crate::machine::{Machine, Step, Told};
use crate::measure;
use crate::memo::{Memo, Record};
use crate::sync::Synced;
use crate::terminate::synthetic_pod;

/// Retry of a step that failed for no special reason; jittered up to 1.5 times.
const ERROR_BACKOFF: Duration = Duration::from_secs(10);
/// The end of a pod takes seconds. What takes longer, on top of the grace that containers have, is said.
const SLOW_END: Duration = Duration::from_secs(30);
/// And again after this time.
const SLOW_END_AGAIN: Duration = Duration::from_secs(300);
/// Retry while the network is not ready; jittered up to 1.5 times.
const NETWORK_BACKOFF: Duration = Duration::from_secs(1);

/// Cause of a step that follows a message about the pod.
const TOLD: &str = "told of a change";

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
    /// A step is under way.
    busy: bool,
    /// Something happened during the step.
    again: bool,
    /// The journal was read.
    loaded: bool,
    due: Option<SpawnHandle>,
    /// What the step under way waits for.
    stage: Stage,
    /// Due while a step that ends the pod is under way.
    patience: Option<SpawnHandle>,
    synced_at: Timestamp,
    error: Option<String>,
    cause: String,
}

impl Actor for PodWorker {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if let Some(row) = self.row.get(&self.uid) {
            self.machine = Machine::recover(&row);
            self.synced_at = row.synced_at;
        }
        self.load_record(ctx);
        ctx.watch(self.crew.board::<Observed>().subscribe(self.uid.clone()), |act, _row, ctx| {
            act.look("the runtime reports a change", ctx);
        });
        ctx.watch(self.crew.board::<PodProbes>().subscribe(self.uid.clone()), |act, _row, ctx| {
            act.look("a probe changed its verdict", ctx);
        });
    }
}
supervised!(PodWorker);

impl PodWorker {
    /// The worker of `uid`; where an earlier instance was is read from the board when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::PodWorker>, uid: PodUid, deps: Arc<Deps>) -> Self {
        Self {
            uid,
            row: crew.poster(),
            crew,
            deps,
            machine: Machine::default(),
            memo: Memo::default(),
            signal: watch::channel(Signal::default()).0,
            busy: false,
            again: false,
            loaded: false,
            due: None,
            stage: Stage::default(),
            patience: None,
            synced_at: Timestamp::ZERO,
            error: None,
            cause: "just made".to_owned(),
        }
    }

    /// Back-off and start time of an earlier life, before the first step.
    fn load_record(&mut self, ctx: &mut Ctx<Self>) {
        let (journal, uid) = (self.deps.journal.clone(), self.uid.clone());
        let max = self.deps.config.crash_backoff_max;
        let effects = ctx.effects();
        let read = async move { effects.attempt(Class::Journal, move || Record::load(&*journal, &uid)).await };
        ctx.run(read, move |act, record, ctx| {
            let record = record.ok().flatten();
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
            act.look("just started", ctx);
        });
    }

    /// Takes a step unless one is under way; then right after it.
    fn look(&mut self, cause: &str, ctx: &mut Ctx<Self>) {
        if !self.loaded {
            return;
        }
        if self.busy {
            self.again = true;
            return;
        }
        cause.clone_into(&mut self.cause);
        let step = self.machine.step();
        if step != Step::Rest {
            self.take(step, ctx);
        }
    }

    fn take(&mut self, step: Step, ctx: &mut Ctx<Self>) {
        self.busy = true;
        self.again = false;
        if let Some(due) = self.due.take() {
            ctx.cancel_future(due);
        }
        let stopping = step != Step::Sync;
        if stopping && !self.machine.started_terminating {
            self.machine.started_terminating = true;
        }
        self.signal.send_replace(Signal { stop: self.machine.termination_requested, grace_s: self.machine.grace_s });
        self.post();
        ctx.fault_point("step");
        if self.synced_at == Timestamp::ZERO
            && let Some(pod) = self.machine.pod.as_deref().filter(|_| step == Step::Sync)
        {
            measure::began(pod, Timestamp(ctx.clock().unix_nanos()));
        }
        let mut job = self.job(ctx);
        let grace = self.machine.grace_s.unwrap_or(1);
        let reason = self.machine.kill.reason.clone();
        if stopping {
            let given = if step == Step::CleanUp { 0 } else { u64::try_from(grace).unwrap_or(0) };
            self.watch_end(ctx.clock().now(), Duration::from_secs(given) + SLOW_END, ctx);
        }
        match step {
            Step::Rest => {}
            Step::Sync => self.run(ctx, async move { (job.sync().await, job.into_memo()) }, Self::synced),
            Step::Terminate => {
                self.run(ctx, async move { (job.terminate(grace, reason).await, job.into_memo()) }, Self::terminated);
            }
            Step::TerminateOrphan => {
                self.run(ctx, async move { (job.terminate_orphan(grace).await, job.into_memo()) }, Self::terminated);
            }
            Step::CleanUp => self.run(ctx, async move { (job.clean_up(reason).await, job.into_memo()) }, Self::cleaned),
        }
    }

    fn run<T: 'static>(
        &mut self,
        ctx: &mut Ctx<Self>,
        step: impl Future<Output = (Result<T, Failure>, Memo)> + 'static,
        then: fn(&mut Self, T, &mut Ctx<Self>),
    ) {
        let (operation, began) = (self.operation(), ctx.clock().now());
        ctx.run(step, move |act, (outcome, memo), ctx| {
            let took = ctx.clock().now().saturating_duration_since(began).as_secs_f64();
            metrics::pods::WORKER_DURATION.with_label_values(&[operation]).observe(took);
            act.busy = false;
            if let Some(patience) = act.patience.take() {
                ctx.cancel_future(patience);
            }
            act.memo = memo;
            act.synced_at = Timestamp(ctx.clock().unix_nanos());
            match outcome {
                Ok(value) => {
                    act.error = None;
                    act.memo.lost = false;
                    then(act, value, ctx);
                }
                Err(failure) => act.failed(failure, ctx),
            }
            act.post();
            if act.again {
                act.look("something happened meanwhile", ctx);
            }
        });
    }

    /// What metrics call the step that begins now.
    fn operation(&self) -> &'static str {
        if self.synced_at == Timestamp::ZERO {
            "create"
        } else if self.cause == TOLD {
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
            memo: self.memo.clone(),
            signal: self.signal.subscribe(),
            effects: ctx.effects(),
            clock: ctx.clock().clone(),
            seed: ctx.rng().u64(..),
            chances: Chances::new(&self.memo),
            stage: self.stage.clone(),
        }
    }

    /// A step that ends the pod and does not end itself says what it waits for: in the log and on the board.
    fn watch_end(&mut self, since: Instant, wait: Duration, ctx: &mut Ctx<Self>) {
        self.patience = Some(ctx.after(wait, move |act, ctx| {
            let waited_s = ctx.clock().now().duration_since(since).as_secs();
            let stage = act.stage.get();
            let pod = act.machine.pod.as_deref().map(model::pod::describe);
            tracing::warn!(uid = %act.uid, pod, waited_s, "the end of the pod waits for {stage}");
            act.error = Some(format!("waits for {stage}"));
            act.post();
            act.watch_end(since, SLOW_END_AGAIN, ctx);
        }));
    }

    fn synced(&mut self, outcome: Synced, ctx: &mut Ctx<Self>) {
        match outcome {
            Synced::Terminal => {
                self.machine.ran_to_end();
                self.look("the pod has run to its end", ctx);
            }
            Synced::Acted | Synced::Settled => {
                if outcome == Synced::Acted {
                    self.again = true;
                }
                let resync = jittered(self.deps.config.sync_frequency, ctx);
                let wait = self.deadline_left(ctx).map_or(resync, |left| resync.min(left));
                self.look_after(wait, "time to look again", ctx);
            }
        }
    }

    /// Time until the pod is past its active deadline, when it has one.
    fn deadline_left(&self, ctx: &Ctx<Self>) -> Option<Duration> {
        let pod = self.machine.pod.as_ref()?;
        let status = self.crew.board::<StatusEntry>().get(&self.uid)?;
        let now = Timestamp(ctx.clock().unix_nanos());
        pod_status::active_deadline_left(pod, &status.status, now).filter(|left| !left.is_zero())
    }

    fn terminated(&mut self, (): (), ctx: &mut Ctx<Self>) {
        self.machine.stopped();
        self.look("containers are stopped", ctx);
    }

    fn cleaned(&mut self, (): (), _ctx: &mut Ctx<Self>) {
        self.machine.cleaned();
        self.again = false;
    }

    fn failed(&mut self, failure: Failure, ctx: &mut Ctx<Self>) {
        let wait = match failure.retry {
            Retry::Now => {
                self.again = true;
                return;
            }
            Retry::Network => jittered(NETWORK_BACKOFF, ctx),
            Retry::Later => jittered(ERROR_BACKOFF, ctx),
            Retry::At(until) => {
                let left = until.nanos_since(Timestamp(ctx.clock().unix_nanos())).max(0);
                let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0));
                left.min(self.deps.config.sync_frequency.max(ERROR_BACKOFF)) + Duration::from_millis(1)
            }
        };
        let retry_s = wait.as_secs_f32();
        if self.machine.started_terminating {
            let pod = self.machine.pod.as_deref().map(model::pod::describe);
            tracing::warn!(uid = %self.uid, pod, retry_s, error = failure.message, "the pod could not be ended");
        } else {
            tracing::info!(uid = %self.uid, retry_s, error = failure.message, "step did not succeed");
        }
        self.error = Some(failure.message);
        self.look_after(wait, "time to try again", ctx);
    }

    fn look_after(&mut self, wait: Duration, cause: &'static str, ctx: &mut Ctx<Self>) {
        if let Some(due) = self.due.take() {
            ctx.cancel_future(due);
        }
        self.due = Some(ctx.after(wait, move |act, ctx| {
            act.due = None;
            act.look(cause, ctx);
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
            synced_at: self.synced_at,
            error: self.error.clone(),
            cause: self.cause.clone(),
            pod: m.pod.clone(),
            kill: m.termination_requested.then(|| m.kill.clone()),
        };
        self.row.post(self.uid.clone(), Arc::new(row));
    }

    fn told(&mut self, told: Told, cause: &str, ctx: &mut Ctx<Self>) {
        self.post();
        match told {
            Told::Nothing => {}
            Told::Look => self.look(cause, ctx),
            Told::Interrupt => {
                let signal = Signal { stop: true, grace_s: self.machine.grace_s };
                self.signal.send_replace(signal);
                self.look(cause, ctx);
            }
        }
    }
}

fn jittered(base: Duration, ctx: &mut Ctx<PodWorker>) -> Duration {
    base + base.mul_f64(ctx.rng().f64() * 0.5)
}

impl Handler<UpdatePod> for PodWorker {
    type Result = ();

    fn handle(&mut self, msg: UpdatePod, ctx: &mut Ctx<Self>) {
        let alive = self.crew.board::<Observed>().get(&self.uid).is_some_and(|row| row.pod.is_alive());
        let told = self.machine.update(msg, alive);
        ctx.fault_point("updated");
        self.told(told, TOLD, ctx);
    }
}

impl Handler<GrantStart> for PodWorker {
    type Result = ();

    fn handle(&mut self, _msg: GrantStart, ctx: &mut Ctx<Self>) {
        if self.machine.phase == WorkerPhase::Waiting {
            let told = self.machine.grant();
            self.told(told, "may start", ctx);
        }
    }
}
