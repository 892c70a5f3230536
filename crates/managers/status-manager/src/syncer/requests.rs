//! One request: how it begins, and what follows from its outcome.

use std::time::Duration;

use actor::Ctx;
use contract::status::StatusEntry;
use model::{PodUid, Timestamp};
use tokio::time::Instant;

use super::StatusSyncer;
use crate::pod_sync::{JournalLine, Trouble};
use crate::request::{SyncOutcome, SyncRequest, sync};

impl StatusSyncer {
    pub(super) fn start(&mut self, uid: &PodUid, now: Instant, ctx: &mut Ctx<Self>) {
        let Some(rows) = self.boards.rows(uid) else { return };
        let Some(pod_sync) = self.syncs.get_mut(uid) else { return };
        let Some(copy) = pod_sync.server.newest(&rows) else { return };
        pod_sync.attempts.begin(rows.entry.version, now);
        self.schedule.begin(uid, now);
        let request = SyncRequest {
            copy,
            may_run: rows.may_run(),
            is_api_pod: rows.is_api_pod(),
            entry: rows.entry,
            times: pod_sync.server.times.clone(),
            unknown_fields: self.unknown_fields.clone(),
        };
        let asked = (request.copy.uid.clone(), request.copy.version);
        let (api, faults, uid) = (self.deps.api.clone(), ctx.faults(), uid.clone());
        let work = async move { sync(&*api, request, &faults).await };
        ctx.run(work, move |act: &mut Self, outcome, ctx| act.conclude(&uid, asked, outcome, ctx));
    }

    fn conclude(&mut self, uid: &PodUid, asked: (String, Option<u64>), outcome: SyncOutcome, ctx: &mut Ctx<Self>) {
        ctx.fault_point("concluded");
        let now = ctx.clock().now();
        let chance = ctx.rng().f64();
        // One line for an outage, not one per pod.
        let is_first_trouble = self.troubled.is_empty();
        self.schedule.end(uid);
        self.schedule.touch(uid.clone());
        let Some(sync) = self.syncs.get_mut(uid) else { return };
        sync.attempts.in_flight = None;
        let reached = !matches!(outcome, SyncOutcome::Failed(..));
        match outcome {
            SyncOutcome::Accepted(accepted) => {
                tracing::debug!(%uid, version = accepted.version, held = accepted.phase_held_back,
                    deleted = accepted.deleted, "status is in the API");
                sync.attempts.clear_trouble();
                // A status that was replaced meanwhile goes on waiting: the newer one is sent next.
                if let Some(entry) = self.boards.status(uid).filter(|e| e.version == accepted.version) {
                    observe_sync_time(&entry, Timestamp(ctx.clock().unix_nanos()));
                }
                sync.accept(accepted, now);
            }
            SyncOutcome::Gone => {
                tracing::debug!(%uid, "the pod is gone from the API");
                sync.attempts.clear_trouble();
                sync.removal.gone = Some(asked);
                sync.server.phase_held_back = false;
                sync.server.version = self.boards.status(uid).map(|e| e.version);
            }
            SyncOutcome::Failed(error, accepted) => {
                let trouble = Trouble::of(&error);
                if sync.attempts.failures == 0 && (is_first_trouble || trouble == Trouble::Refused) {
                    tracing::warn!(%uid, error = %error, "the API server did not take the status; trying again");
                } else {
                    tracing::debug!(%uid, error = %error, tries = sync.attempts.failures,
                        "the API server did not take the status");
                }
                if let Some(accepted) = accepted {
                    sync.accept(accepted, now);
                }
                sync.attempts.back_off(trouble, error.retry_after(), chance, now);
                self.troubled.insert(uid.clone());
            }
        }
        if reached {
            self.connected();
        }
        self.remove_line(uid);
        self.sync_due(false, ctx);
    }

    /// The server is back: nobody waits any longer for the sake of the connection.
    fn connected(&mut self) {
        for uid in &self.troubled {
            let attempts = self.syncs.get_mut(uid).map(|sync| &mut sync.attempts);
            if let Some(attempts) = attempts.filter(|a| a.trouble == Some(Trouble::Connection)) {
                attempts.clear_trouble();
                self.schedule.touch(uid.clone());
            }
        }
    }

    /// A status that the API has needs no line.
    fn remove_line(&mut self, uid: &PodUid) {
        let Some(sync) = self.syncs.get_mut(uid) else { return };
        let newest = self.boards.status(uid).map(|e| e.version);
        if sync.line.saved.is_some() && !sync.server.phase_held_back && sync.server.version == newest {
            sync.line = JournalLine::default();
            self.lines.remove(uid.clone());
        }
    }
}

fn observe_sync_time(entry: &StatusEntry, now: Timestamp) {
    let waited = u64::try_from(now.nanos_since(entry.changed_at)).unwrap_or(0);
    metrics::pods::STATUS_SYNC.observe(Duration::from_nanos(waited).as_secs_f64());
}
