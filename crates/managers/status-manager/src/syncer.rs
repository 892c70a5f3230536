//! The actor that brings the statuses of the status board to the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::Crew;
use model::PodUid;
use ports::api::ApiServer;
use ports::journal::Journal;
use tokio::time::Instant;

mod lines;
mod requests;
mod schedule;

use lines::PendingLines;
use schedule::{Plan, SLOW, Schedule};

use crate::journal;
use crate::pod_sync::{Boards, PodRows, PodSync};
use crate::unknown_fields::UnknownFields;

/// Changes that come within this time are handled together.
const GATHER: Duration = Duration::from_millis(1);
/// A daemon that is younger than this reports no pod unready that it found ready and running: its probes must have run first.
/// A probe's default period is 10 s.
const CALM: Duration = Duration::from_secs(30);
/// What an earlier life of the daemon left in the journal waits this long for the pod's worker.
const CONFIRM: Duration = Duration::from_secs(60);

/// Settings.
#[derive(Clone, Debug)]
pub struct SyncerConfig {
    /// Period of the comparison of everything: differences that others made, and what a failure left behind.
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

/// The actor. It asks the API server only; a daemon without one does not spawn it.
#[derive(Debug)]
pub struct StatusSyncer {
    config: SyncerConfig,
    deps: SyncerDeps,
    boards: Boards,
    syncs: BTreeMap<PodUid, PodSync>,
    unknown_fields: UnknownFields,
    schedule: Schedule,
    /// Pods whose newest status is not in the API.
    behind: BTreeSet<PodUid>,
    /// Pods whose last request failed.
    troubled: BTreeSet<PodUid>,
    lines: PendingLines,
    /// The journal was read; nothing is sent before.
    loaded: bool,
    /// A pass is due in a moment.
    soon: bool,
    /// Statuses that are behind are looked after within [`SLOW`].
    watched: bool,
    /// The daemon counts as young until then.
    calm_until: Option<Instant>,
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
                let line = &mut act.syncs.entry(uid).or_default().line;
                line.saved = Some(entry.version);
                line.left_over = Some(entry.version);
            }
            act.loaded = true;
            act.sync_due(false, ctx);
        });
        for changes in self.boards.changes() {
            ctx.watch(changes, |act, _, ctx| act.sync_soon(ctx));
        }
        ctx.every(self.config.audit, |act, ctx| act.sync_due(true, ctx));
        ctx.after(CONFIRM, |act, ctx| {
            for (uid, sync) in &mut act.syncs {
                if sync.line.left_over.take().is_some() {
                    act.schedule.touch(uid.clone());
                }
            }
            act.sync_due(false, ctx);
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
            boards: Boards::new(&crew),
            syncs: BTreeMap::new(),
            unknown_fields: UnknownFields::default(),
            schedule: Schedule::default(),
            behind: BTreeSet::new(),
            troubled: BTreeSet::new(),
            lines: PendingLines::default(),
            loaded: false,
            soon: false,
            watched: false,
            calm_until: None,
        }
    }

    fn sync_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.soon, true) {
            ctx.after(GATHER, |act, ctx| {
                act.soon = false;
                act.sync_due(false, ctx);
            });
        }
    }

    /// Looks at the pods whose rows changed (`audit`: at all), and starts what is due.
    fn sync_due(&mut self, audit: bool, ctx: &mut Ctx<Self>) {
        if !self.loaded {
            return;
        }
        let now = ctx.clock().now();
        let mut touched = self.schedule.take_touched(now);
        match self.boards.changed() {
            Some(changed) if !audit => touched.extend(changed),
            _ => touched.extend(self.boards.with_status().chain(self.syncs.keys().cloned())),
        }
        for uid in touched {
            if !ctx.for_subject(uid.as_str(), |_| self.look(&uid, now, audit)) {
                self.look_later(&uid, now);
            }
        }
        ctx.fault_point("looked");
        self.start_due(now, ctx);
        if let Some(wait) = self.schedule.next_wake(now) {
            ctx.after(wait, |act, ctx| act.sync_due(false, ctx));
        }
        self.write_lines(ctx);
        self.watch_behind(ctx);
    }

    /// Has what is behind looked after in a while; with nothing behind nobody wakes for it.
    fn watch_behind(&mut self, ctx: &mut Ctx<Self>) {
        let is_behind = !self.behind.is_empty() || self.schedule.has_due();
        if is_behind && !std::mem::replace(&mut self.watched, true) {
            ctx.after(SLOW, |act, ctx| {
                act.watched = false;
                act.save_waiting(ctx);
            });
        }
    }

    fn start_due(&mut self, now: Instant, ctx: &mut Ctx<Self>) {
        while let Some(uid) = self.schedule.next_due(now) {
            if !ctx.for_subject(uid.as_str(), |ctx| self.start(&uid, now, ctx)) {
                self.look_later(&uid, now);
            }
        }
    }

    /// The pod is set aside: its turn comes again.
    fn look_later(&mut self, uid: &PodUid, now: Instant) {
        self.schedule.plan(uid, Plan { due: None, wake_at: Some(now + SLOW) });
    }

    /// Looks at one pod as the boards show it: when is what due?
    fn look(&mut self, uid: &PodUid, now: Instant, audit: bool) {
        let Some(entry) = self.boards.status(uid) else { return self.forget(uid) };
        let sync = self.syncs.entry(uid.clone()).or_default();
        sync.shown = true;
        let Some(rows) = self.boards.rows_with(uid, entry) else {
            self.behind.remove(uid);
            return self.schedule.plan(uid, Plan::default());
        };
        if audit && let Some((waited, why)) = sync.overdue(&rows, now) {
            let pod = format!("{}/{}", rows.entry.namespace, rows.entry.name);
            tracing::warn!(%uid, pod, waited_s = waited.as_secs(), why, "the pod is to go, and the API server still has it");
        }
        let urgency = sync.due(&rows, now, audit, self.calm_until);
        let plan = Plan { due: urgency.map(|urgency| (urgency, rows.entry.changed_at)), wake_at: sync.wake_at };
        if sync.is_up_to_date(&rows.entry) {
            self.behind.remove(uid);
        } else {
            self.behind.insert(uid.clone());
        }
        if sync.attempts.trouble.is_none() {
            self.troubled.remove(uid);
        }
        self.schedule.plan(uid, plan);
    }

    /// A pod without a status is none of ours any more. Lines of an earlier life stay until StatusManager has shown them.
    fn forget(&mut self, uid: &PodUid) {
        self.behind.remove(uid);
        self.schedule.plan(uid, Plan::default());
        let gone = |sync: &PodSync| sync.attempts.in_flight.is_none() && sync.shown;
        if self.syncs.get(uid).is_none_or(|sync| !gone(sync)) {
            return;
        }
        self.troubled.remove(uid);
        if self.syncs.remove(uid).is_some_and(|sync| sync.line.saved.is_some()) {
            self.lines.remove(uid.clone());
        }
    }

    /// Statuses that have waited for a while are written down; then places of slow requests may be free.
    fn save_waiting(&mut self, ctx: &mut Ctx<Self>) {
        let now_ns = ctx.clock().unix_nanos();
        let slow_ns = i64::try_from(SLOW.as_nanos()).unwrap_or(i64::MAX);
        for uid in &self.behind {
            let Some(sync) = self.syncs.get_mut(uid) else { continue };
            let Some(PodRows { entry, .. }) = self.boards.rows(uid).filter(|rows| !sync.is_over(rows)) else {
                continue;
            };
            let is_old = now_ns.saturating_sub(entry.changed_at.0) >= slow_ns;
            if (is_old || sync.attempts.failures > 0) && sync.line.saved != Some(entry.version) {
                sync.line.saved = Some(entry.version);
                self.lines.save(uid.clone(), entry);
            }
        }
        self.sync_due(false, ctx);
    }

    fn write_lines(&mut self, ctx: &mut Ctx<Self>) {
        let Some(batch) = self.lines.next_batch() else { return };
        let work = lines::write(batch, self.deps.journal.clone(), ctx.effects());
        ctx.run(work, |act: &mut Self, unwritten, ctx| {
            let failed = !unwritten.is_empty();
            act.lines.written(unwritten);
            if failed {
                ctx.after(SLOW, |act, ctx| act.write_lines(ctx));
            } else {
                act.write_lines(ctx);
            }
        });
    }
}
