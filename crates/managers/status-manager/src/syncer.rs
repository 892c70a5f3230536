//! The actor that brings the statuses of the status board to the API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, supervised};
use contract::Crew;
use contract::status::StatusEntry;
use model::PodUid;
use ports::api::ApiServer;
use ports::journal::Journal;
use tokio::time::Instant;

mod lines;
mod requests;

use lines::PendingLines;

use crate::journal;
use crate::pod_sync::{Boards, PodRows, PodSync, Urgency};
use crate::unknown_fields::UnknownFields;

/// Changes that come within this time are handled together.
const GATHER: Duration = Duration::from_millis(1);
/// Requests under way at most, those left out that the server lets wait: one stuck pod takes nobody's place.
const WIDTH: usize = 8;
/// Requests under way at most, in all.
const WIDTH_MAX: usize = 64;
/// A request that takes longer than this takes no place any more; a status that waits longer goes to the journal.
const SLOW: Duration = Duration::from_secs(1);
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
    lines: PendingLines,
}

/// When the pods are gone through next.
#[derive(Debug, Default)]
struct Schedule {
    /// The journal was read; nothing is sent before.
    loaded: bool,
    /// A pass is due in a moment.
    soon: bool,
    /// A pass is due at this time.
    wake_at: Option<Instant>,
    /// The daemon counts as young until then.
    calm_until: Option<Instant>,
    /// Some pod's newest status is not in the API.
    waiting: bool,
}

impl Actor for StatusSyncer {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        // A later generation of this actor is no young daemon.
        self.schedule.calm_until = (ctx.generation() == 0).then(|| ctx.clock().now() + CALM);
        let journal = self.deps.journal.clone();
        let effects = ctx.effects();
        let read = async move { effects.attempt(Class::Journal, move || journal::load(&*journal)).await };
        ctx.run(read, |act: &mut Self, lines, ctx| {
            for (uid, entry) in lines.unwrap_or_default() {
                let line = &mut act.syncs.entry(uid).or_default().line;
                line.saved = Some(entry.version);
                line.left_over = Some(entry.version);
            }
            act.schedule.loaded = true;
            act.sync_due(false, ctx);
        });
        for changes in self.boards.changes() {
            ctx.watch(changes, |act, _, ctx| act.sync_soon(ctx));
        }
        ctx.every(SLOW, |act, ctx| act.save_waiting(ctx));
        ctx.every(self.config.audit, |act, ctx| act.sync_due(true, ctx));
        ctx.after(CONFIRM, |act, ctx| {
            act.syncs.values_mut().for_each(|sync| sync.line.left_over = None);
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
            lines: PendingLines::default(),
        }
    }

    fn sync_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.schedule.soon, true) {
            ctx.after(GATHER, |act, ctx| {
                act.schedule.soon = false;
                act.sync_due(false, ctx);
            });
        }
    }

    /// Goes through all pods and starts what is due, the most urgent first, then the one that waits for longest.
    fn sync_due(&mut self, audit: bool, ctx: &mut Ctx<Self>) {
        if !self.schedule.loaded {
            return;
        }
        let now = ctx.clock().now();
        let entries = self.boards.statuses();
        self.forget_others(&entries);
        let mut due: Vec<(Urgency, _, PodUid)> = Vec::new();
        self.schedule.waiting = false;
        // Times of pods that are left out below are over.
        self.syncs.values_mut().for_each(|sync| sync.wake_at = None);
        for (uid, entry) in entries {
            let Some(rows) = self.boards.rows_with(&uid, entry) else { continue };
            ctx.for_subject(uid.as_str(), |_| {
                let urgency = self.urgency(&uid, &rows, now, audit);
                due.extend(urgency.map(|urgency| (urgency, rows.entry.changed_at, uid.clone())));
            });
        }
        ctx.fault_point("looked");
        due.sort();
        for (_, _, uid) in due {
            if !self.has_room(now) {
                // Places get free with time, too.
                self.schedule.waiting = true;
                break;
            }
            ctx.for_subject(uid.as_str(), |ctx| self.start(&uid, now, ctx));
        }
        self.wake_later(now, ctx);
        self.write_lines(ctx);
    }

    /// How urgent one pod's sync is; `None`: it is not due.
    fn urgency(&mut self, uid: &PodUid, rows: &PodRows, now: Instant, audit: bool) -> Option<Urgency> {
        let sync = self.syncs.entry(uid.clone()).or_default();
        sync.shown = true;
        self.schedule.waiting |= !sync.is_up_to_date(&rows.entry);
        if audit && let Some((waited, why)) = sync.overdue(rows, now) {
            let pod = format!("{}/{}", rows.entry.namespace, rows.entry.name);
            tracing::warn!(%uid, pod, waited_s = waited.as_secs(), why, "the pod is to go, and the API server still has it");
        }
        sync.due(rows, now, audit, self.schedule.calm_until)
    }

    fn wake_later(&mut self, now: Instant, ctx: &mut Ctx<Self>) {
        let Some(next) = self.syncs.values().filter_map(|sync| sync.wake_at).min() else { return };
        if self.schedule.wake_at.is_none_or(|at| at > next || at <= now) {
            self.schedule.wake_at = Some(next);
            ctx.after(next.duration_since(now), |act, ctx| act.sync_due(false, ctx));
        }
    }

    fn has_room(&self, now: Instant) -> bool {
        let in_flight = || self.syncs.values().filter_map(|sync| sync.attempts.in_flight);
        let quick = in_flight().filter(|since| now.duration_since(*since) < SLOW).count();
        quick < WIDTH && in_flight().count() < WIDTH_MAX
    }

    /// Pods without a status are none of ours any more. Lines of an earlier life stay until StatusManager has shown them.
    fn forget_others(&mut self, entries: &BTreeMap<PodUid, Arc<StatusEntry>>) {
        let lines = &mut self.lines;
        self.syncs.retain(|uid, sync| {
            sync.shown |= entries.contains_key(uid);
            let keep = entries.contains_key(uid) || sync.attempts.in_flight.is_some() || !sync.shown;
            if !keep && sync.line.saved.is_some() {
                lines.remove(uid.clone());
            }
            keep
        });
    }

    /// Statuses that have waited for a while are written down; then places of slow requests may be free.
    fn save_waiting(&mut self, ctx: &mut Ctx<Self>) {
        if !self.schedule.loaded || !self.schedule.waiting {
            return;
        }
        let now_ns = ctx.clock().unix_nanos();
        let slow_ns = i64::try_from(SLOW.as_nanos()).unwrap_or(i64::MAX);
        for (uid, sync) in &mut self.syncs {
            let Some(rows) = self.boards.rows(uid) else { continue };
            let Some(copy) = sync.server.newest(&rows) else { continue };
            let entry = rows.entry;
            if sync.is_up_to_date(&entry) || sync.removal.is_over(&copy) {
                continue;
            }
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
