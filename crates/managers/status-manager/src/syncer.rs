//! The actor that tells the API server what the status board says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, WorkPanicked, supervised};
use contract::Crew;
use contract::board::BoardReader;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::status::StatusEntry;
use model::{PodUid, Timestamp};
use ports::api::{ApiError, ApiServer};
use ports::journal::Journal;
use tokio::time::Instant;

use crate::dialect::Dialect;
use crate::journal;
use crate::lane::{Lane, Rows, Trouble, Urgency, is_api_pod};
use crate::request::{Ending, Job, Taken, sync};

/// Changes that come within this time are looked at together.
const GATHER: Duration = Duration::from_millis(1);
/// Requests under way at most, those left out that the server lets wait: one stuck pod takes nobody's place.
const WIDTH: usize = 8;
/// Requests under way at most, in all.
const WIDTH_MAX: usize = 64;
/// A request that takes longer than this takes no place any more; a status that waits longer goes to the journal.
const SLOW: Duration = Duration::from_secs(1);
/// A daemon that is younger than this tells no pod unready that it found ready and running: its probes must have had their
/// say. A probe's default period is 10 s.
const CALM: Duration = Duration::from_secs(30);
/// What an earlier life of the daemon left in the journal waits this long for the pod's worker.
const CONFIRM: Duration = Duration::from_secs(60);

/// Settings.
#[derive(Clone, Debug)]
pub struct SyncerConfig {
    /// Period of the look at everything: differences that others made, and what a failure left behind.
    pub audit: Duration,
}

impl Default for SyncerConfig {
    /// The kubelet's 10 seconds.
    fn default() -> Self {
        Self { audit: Duration::from_secs(10) }
    }
}

/// What the syncer works with.
#[derive(Clone)]
pub struct SyncerDeps {
    /// The API server.
    pub api: Arc<dyn ApiServer>,
    /// Statuses that the server has not taken wait there; the same journal that the StatusManager reads.
    pub journal: Arc<dyn Journal>,
}

impl std::fmt::Debug for SyncerDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("status_manager::SyncerDeps")
    }
}

/// What is to be done with a line of the journal.
#[derive(Clone, Debug)]
enum LineOp {
    Save(Arc<StatusEntry>),
    Forget,
}

/// The actor. It asks the API server only; a daemon without one does not spawn it.
#[derive(Debug)]
pub struct StatusSyncer {
    config: SyncerConfig,
    deps: SyncerDeps,
    /// What is to be said.
    statuses: BoardReader<PodUid, StatusEntry>,
    /// What the API says, as PodManager knows it.
    pods: BoardReader<PodUid, DesiredPod>,
    /// Whether containers may run.
    workers: BoardReader<PodUid, WorkerState>,
    lanes: BTreeMap<PodUid, Lane>,
    dialect: Dialect,
    /// The journal was read.
    loaded: bool,
    /// A look is due.
    looking: bool,
    /// The daemon counts as young until then.
    calm_until: Option<Instant>,
    /// A look is due at this time.
    wake: Option<Instant>,
    /// Some pod's newest status is not in the API.
    waiting: bool,
    lines: BTreeMap<PodUid, LineOp>,
    writing: bool,
}

impl Actor for StatusSyncer {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        // A later generation of this actor is no young daemon.
        self.calm_until = (ctx.generation() == 0).then(|| ctx.clock().now() + CALM);
        let journal = self.deps.journal.clone();
        let effects = ctx.effects();
        let read = async move { effects.attempt(Class::Journal, move || journal::load(&*journal)).await };
        ctx.run(read, |act: &mut Self, lines, ctx| {
            for (uid, entry) in lines.unwrap_or_default() {
                let lane = act.lanes.entry(uid).or_default();
                lane.journaled = Some(entry.version);
                lane.left_over = Some(entry.version);
            }
            act.loaded = true;
            act.look(false, ctx);
        });
        ctx.watch(self.statuses.changes(), |act, _, ctx| act.look_soon(ctx));
        ctx.watch(self.pods.changes(), |act, _, ctx| act.look_soon(ctx));
        ctx.watch(self.workers.changes(), |act, _, ctx| act.look_soon(ctx));
        ctx.every(SLOW, |act, ctx| act.tick(ctx));
        ctx.every(self.config.audit, |act, ctx| act.look(true, ctx));
        ctx.after(CONFIRM, |act, ctx| {
            act.lanes.values_mut().for_each(|lane| lane.left_over = None);
            act.look(false, ctx);
        });
    }
}
supervised!(StatusSyncer);

impl StatusSyncer {
    /// A fresh instance; all that it needs to know stands on the boards and in the journal.
    #[must_use]
    pub fn new(crew: Crew<contract::StatusSyncer>, config: SyncerConfig, deps: SyncerDeps) -> Self {
        Self {
            config,
            deps,
            statuses: crew.board(),
            pods: crew.board(),
            workers: crew.board(),
            lanes: BTreeMap::new(),
            dialect: Dialect::default(),
            loaded: false,
            looking: false,
            calm_until: None,
            wake: None,
            waiting: false,
            lines: BTreeMap::new(),
            writing: false,
        }
    }

    fn look_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.looking, true) {
            ctx.after(GATHER, |act, ctx| {
                act.looking = false;
                act.look(false, ctx);
            });
        }
    }

    /// Starts what is due, the most urgent first, then the one that waits for longest.
    fn look(&mut self, audit: bool, ctx: &mut Ctx<Self>) {
        if !self.loaded {
            return;
        }
        let now = ctx.clock().now();
        let entries = self.statuses.snapshot();
        self.forget_others(&entries);
        let mut due: Vec<(Urgency, _, PodUid)> = Vec::new();
        self.waiting = false;
        // Times of pods that are not looked at below are over.
        self.lanes.values_mut().for_each(|lane| lane.wake = None);
        for (uid, entry) in &entries {
            let Some(desired) = self.pods.get(uid) else { continue };
            ctx.for_subject(uid.as_str(), |_| {
                let urgency = self.look_at(entry, &desired, uid, (now, audit));
                due.extend(urgency.map(|urgency| (urgency, entry.changed_at, uid.clone())));
            });
        }
        ctx.fault_point("looked");
        due.sort();
        for (_, _, uid) in due {
            if !self.has_room(now) {
                // Places get free with time, too.
                self.waiting = true;
                break;
            }
            ctx.for_subject(uid.as_str(), |ctx| self.start(&uid, now, ctx));
        }
        self.wake_later(now, ctx);
        self.write_lines(ctx);
    }

    /// How urgent one pod's lane is.
    fn look_at(
        &mut self,
        entry: &Arc<StatusEntry>,
        desired: &DesiredPod,
        uid: &PodUid,
        (now, audit): (Instant, bool),
    ) -> Option<Urgency> {
        let worker = self.workers.get(uid);
        let rows = Rows { entry, desired, worker: worker.as_deref() };
        let lane = self.lanes.entry(uid.clone()).or_default();
        lane.shown = true;
        self.waiting |= !lane.is_told(entry);
        if audit && let Some((waited, why)) = lane.overdue(&rows, now) {
            let pod = format!("{}/{}", entry.namespace, entry.name);
            tracing::warn!(%uid, pod, waited_s = waited.as_secs(), why, "the pod is to go, and the API server still has it");
        }
        lane.due(&rows, now, audit, self.calm_until)
    }

    fn wake_later(&mut self, now: Instant, ctx: &mut Ctx<Self>) {
        let Some(next) = self.lanes.values().filter_map(|lane| lane.wake).min() else { return };
        if self.wake.is_none_or(|at| at > next || at <= now) {
            self.wake = Some(next);
            ctx.after(next.duration_since(now), |act, ctx| act.look(false, ctx));
        }
    }

    fn has_room(&self, now: Instant) -> bool {
        let flights = || self.lanes.values().filter_map(|lane| lane.flight);
        flights().filter(|since| now.duration_since(*since) < SLOW).count() < WIDTH && flights().count() < WIDTH_MAX
    }

    /// Pods without a status are none of ours any more. Lines of an earlier life stay until StatusManager has shown them.
    fn forget_others(&mut self, entries: &BTreeMap<PodUid, Arc<StatusEntry>>) {
        let lines = &mut self.lines;
        self.lanes.retain(|uid, lane| {
            lane.shown |= entries.contains_key(uid);
            let keep = entries.contains_key(uid) || lane.flight.is_some() || !lane.shown;
            if !keep && lane.journaled.is_some() {
                lines.insert(uid.clone(), LineOp::Forget);
            }
            keep
        });
    }

    fn start(&mut self, uid: &PodUid, now: Instant, ctx: &mut Ctx<Self>) {
        let (Some(entry), Some(desired)) = (self.statuses.get(uid), self.pods.get(uid)) else { return };
        let worker = self.workers.get(uid);
        let rows = Rows { entry: &entry, desired: &desired, worker: worker.as_deref() };
        let Some(lane) = self.lanes.get_mut(uid) else { return };
        let Some(copy) = lane.newest(&rows) else { return };
        lane.flight = Some(now);
        lane.tried = Some(entry.version);
        let job = Job {
            copy,
            entry: entry.clone(),
            may_run: rows.may_run(),
            is_api_pod: is_api_pod(&rows),
            times: lane.times.clone(),
            dialect: self.dialect.clone(),
        };
        let asked = (job.copy.uid.clone(), job.copy.version);
        let (api, faults, uid) = (self.deps.api.clone(), ctx.faults(), uid.clone());
        let work = async move { sync(&*api, job, &faults).await };
        ctx.run(work, move |act: &mut Self, ending, ctx| act.conclude(&uid, asked, ending, ctx));
    }

    fn conclude(&mut self, uid: &PodUid, asked: (String, Option<u64>), ending: Ending, ctx: &mut Ctx<Self>) {
        ctx.fault_point("concluded");
        let now = ctx.clock().now();
        let chance = ctx.rng().f64();
        // One line for an outage, not one per pod.
        let news = self.lanes.values().all(|lane| lane.trouble.is_none());
        let Some(lane) = self.lanes.get_mut(uid) else { return };
        lane.flight = None;
        let through = !matches!(ending, Ending::Failed(..));
        match ending {
            Ending::Taken(taken) => {
                tracing::debug!(%uid, version = taken.version, held = taken.held, deleted = taken.deleted, "status is in the API");
                lane.clear_trouble();
                // A status that was replaced meanwhile waits on, and is told by the one after it.
                if let Some(entry) = self.statuses.get(uid).filter(|e| e.version == taken.version) {
                    let waited = Timestamp(ctx.clock().unix_nanos()).nanos_since(entry.changed_at);
                    let waited = Duration::from_nanos(u64::try_from(waited).unwrap_or(0));
                    metrics::pods::STATUS_SYNC.observe(waited.as_secs_f64());
                }
                take(lane, taken, now);
            }
            Ending::Gone => {
                tracing::debug!(%uid, "the pod is gone from the API");
                lane.clear_trouble();
                lane.gone = Some(asked);
                lane.held = false;
                lane.accepted = self.statuses.get(uid).map(|e| e.version);
            }
            Ending::Failed(error, taken) => {
                let trouble = trouble_of(&error);
                if lane.tries == 0 && (news || trouble == Trouble::Refused) {
                    tracing::warn!(%uid, error = %error, "the API server did not take the status; trying again");
                } else {
                    tracing::debug!(%uid, error = %error, tries = lane.tries, "the API server did not take the status");
                }
                if let Some(taken) = taken {
                    take(lane, taken, now);
                }
                lane.back_off(trouble, error.retry_after(), chance, now);
                if let Some(at) = lane.retry_at {
                    ctx.after(at.duration_since(now), |act, ctx| act.look(false, ctx));
                }
            }
        }
        if through {
            // The server is back: nobody waits any longer for the sake of the connection.
            let back = self.lanes.values_mut().filter(|l| l.trouble == Some(Trouble::Connection));
            back.for_each(Lane::clear_trouble);
        }
        self.forget_line(uid);
        self.look(false, ctx);
    }

    /// A status that the API has needs no line.
    fn forget_line(&mut self, uid: &PodUid) {
        let Some(lane) = self.lanes.get_mut(uid) else { return };
        let newest = self.statuses.get(uid).map(|e| e.version);
        if lane.journaled.is_some() && !lane.held && lane.accepted == newest {
            lane.journaled = None;
            lane.left_over = None;
            self.lines.insert(uid.clone(), LineOp::Forget);
        }
    }

    /// Statuses that have waited for a while are written down; then places of slow requests may be free.
    fn tick(&mut self, ctx: &mut Ctx<Self>) {
        if !self.loaded || !self.waiting {
            return;
        }
        let now_ns = ctx.clock().unix_nanos();
        let slow_ns = i64::try_from(SLOW.as_nanos()).unwrap_or(i64::MAX);
        for (uid, lane) in &mut self.lanes {
            let (Some(entry), Some(desired)) = (self.statuses.get(uid), self.pods.get(uid)) else { continue };
            let worker = self.workers.get(uid);
            let rows = Rows { entry: &entry, desired: &desired, worker: worker.as_deref() };
            let Some(copy) = lane.newest(&rows) else { continue };
            if lane.is_told(&entry) || lane.is_over(&copy) {
                continue;
            }
            let old = now_ns.saturating_sub(entry.changed_at.0) >= slow_ns;
            if (old || lane.tries > 0) && lane.journaled != Some(entry.version) {
                lane.journaled = Some(entry.version);
                self.lines.insert(uid.clone(), LineOp::Save(entry.clone()));
            }
        }
        self.look(false, ctx);
    }

    /// Writes to the journal, one batch at a time; of several changes of a line the latest counts.
    fn write_lines(&mut self, ctx: &mut Ctx<Self>) {
        if self.writing || self.lines.is_empty() {
            return;
        }
        self.writing = true;
        let (lines, journal, effects) = (std::mem::take(&mut self.lines), self.deps.journal.clone(), ctx.effects());
        let again = lines.clone();
        let work = async move {
            effects.hit("journal").await;
            let write = move || {
                let one = |(uid, op): (PodUid, LineOp)| {
                    let done = match &op {
                        LineOp::Save(entry) => journal::save(&*journal, &uid, entry),
                        LineOp::Forget => journal::forget(&*journal, &uid),
                    };
                    done.err().map(|error| (uid, op, error.to_string()))
                };
                lines.into_iter().filter_map(one).collect::<Vec<_>>()
            };
            // A write that panicked is not a write.
            let all_failed = |e: WorkPanicked| again.into_iter().map(|(uid, op)| (uid, op, e.to_string())).collect();
            effects.attempt(Class::Journal, write).await.unwrap_or_else(all_failed)
        };
        ctx.run(work, |act: &mut Self, failed, ctx| {
            act.writing = false;
            if let Some((uid, _, error)) = failed.first() {
                tracing::warn!(%uid, error, count = failed.len(), "statuses that wait for the API server are not written down");
            }
            let again = !failed.is_empty();
            for (uid, op, _) in failed {
                // A newer change of the line goes before.
                act.lines.entry(uid).or_insert(op);
            }
            if again {
                ctx.after(SLOW, |act, ctx| act.write_lines(ctx));
            } else {
                act.write_lines(ctx);
            }
        });
    }
}

fn take(lane: &mut Lane, taken: Taken, now: Instant) {
    lane.accepted = Some(taken.version);
    lane.held = taken.held;
    lane.settled = Some(taken.copy.fingerprint());
    lane.times = Some(taken.times);
    lane.gone = None;
    if taken.deleted {
        lane.deleted = Some(now);
    }
    lane.answer = Some((taken.copy, now));
}

fn trouble_of(error: &ApiError) -> Trouble {
    match error {
        ApiError::Unreachable { .. } | ApiError::NotReady { .. } => Trouble::Connection,
        // Credentials and rights of a node come back by themselves.
        _ if error.is_transient() || error.is_unauthorized() || error.is_forbidden() => Trouble::Server,
        _ => Trouble::Refused,
    }
}
