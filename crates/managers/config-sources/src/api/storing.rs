//! When the pod store is read, counts, and is written.

use std::time::Duration;

use actor::{Class, Ctx};
use contract::config_sources::ApiSourceView;
use model::Timestamp;

use super::boot::{self, LastContact};
use super::pod_store::{self, Loaded, StoredPods};
use super::set::Changes;
use super::{ApiSource, RETRY};
use crate::handover::hand_over;

/// That the server answers is written down this often.
const NOTE_CONTACT: Duration = Duration::from_secs(60);

impl ApiSource {
    /// Writes down now and then that the server answers, once it has given its pods in this life of the daemon: from then on
    /// what runs in this boot runs because the server wants it.
    pub(super) fn note_contact(&mut self, ctx: &mut Ctx<Self>) {
        let now = Timestamp(ctx.clock().unix_nanos());
        let is_recent =
            |at: Timestamp| u64::try_from(now.0 - at.0).is_ok_and(|ns| Duration::from_nanos(ns) < NOTE_CONTACT);
        if !self.config.store || !self.view.get().synced || self.server.contact_noted_at.is_some_and(is_recent) {
            return;
        }
        self.server.contact_noted_at = Some(now);
        let contact = LastContact { boot_id: self.config.boot.boot_id.clone(), at_ns: now.0 };
        let journal = self.deps.journal.clone();
        let effects = ctx.effects();
        let write = async move { effects.attempt(Class::Journal, move || boot::save(&*journal, &contact)).await };
        ctx.run(write, |act: &mut Self, written, _| {
            if let Err(error) = written.map_err(|e| e.to_string()).and_then(|w| w.map_err(|e| e.to_string())) {
                tracing::warn!(error, "when the API server answered last is not written down");
                act.server.contact_noted_at = None;
            }
        });
    }

    pub(super) fn read_store(&mut self, ctx: &mut Ctx<Self>) {
        let (journal, effects) = (self.deps.journal.clone(), ctx.effects());
        let work = async move {
            effects.hit("read store").await;
            effects.attempt(Class::Journal, move || pod_store::load(&*journal)).await
        };
        ctx.run(work, |act: &mut Self, loaded, ctx| {
            let loaded = match loaded.map_err(|e| e.to_string()).and_then(|l| l.map_err(|e| e.to_string())) {
                Ok(loaded) => loaded,
                Err(error) => {
                    tracing::warn!(error, "pod store cannot be read, trying again; pods of the API server wait for it");
                    ctx.after(RETRY, |act, ctx| act.read_store(ctx));
                    return;
                }
            };
            act.store.lines = StoredPods::of(&loaded.pods);
            act.store.changes = Changes::All;
            act.store.lines.note_unreadable(loaded.unreadable.clone());
            act.store.ready = true;
            act.store.loaded = (!act.has_set).then_some(loaded);
            act.use_store(ctx);
            act.update_store(ctx);
        });
    }

    /// The stored pods count when the server has not answered in time. Never after a restart of this actor alone: then
    /// PodManager has a set that is at least as new. An empty store says nothing: it may be the first start.
    pub(super) fn use_store(&mut self, ctx: &mut Ctx<Self>) {
        let view = self.view.get();
        let taken_before = ctx.generation() > 0 && (view.synced || view.from_store);
        if self.has_set || !self.store.waited || taken_before {
            return;
        }
        let Some(Loaded { mut pods, last_contact, .. }) = self.store.loaded.take().filter(|l| !l.pods.is_empty())
        else {
            return;
        };
        let now = Timestamp(ctx.clock().unix_nanos());
        if let Some((waiting, why)) = boot::hold_back(&mut pods, last_contact.as_ref(), &self.config.boot, now) {
            tracing::warn!(waiting, why, "stored pods wait for the API server");
        }
        if pods.is_empty() {
            return;
        }
        tracing::warn!(pods = pods.len(), wait = ?self.config.wait,
            "the API server has not answered: going on with the pods that it last gave");
        self.set.restore(pods, now);
        self.given.changes = Changes::All;
        self.has_set = true;
        self.publish(ApiSourceView {
            from_store: true,
            synced: false,
            pods: self.set.len(),
            error: view.error.clone(),
        });
        hand_over(self, ctx);
    }

    /// Writes what changed to the store, one batch at a time. Only pods of the server itself are written.
    pub(super) fn update_store(&mut self, ctx: &mut Ctx<Self>) {
        if self.store.writing || !self.store.ready || !self.config.store || !self.view.get().synced || !self.has_set {
            return;
        }
        let changes = match std::mem::take(&mut self.store.changes) {
            Changes::All => self.store.lines.replace(self.set.pods()),
            Changes::Of(pods) => self.store.lines.change(&pods),
        };
        for (uid, line) in changes.behind {
            self.deps.journal.put_soon(&pod_store::key(&uid), line);
        }
        let changes = changes.at_once;
        if changes.is_empty() {
            return;
        }
        self.store.writing = true;
        let (journal, effects) = (self.deps.journal.clone(), ctx.effects());
        let work = async move {
            effects.hit("store").await;
            let all = changes.clone();
            // A write that panicked is not a write.
            let written = effects.attempt(Class::Journal, move || pod_store::write(&*journal, changes)).await;
            written.unwrap_or_else(|e| pod_store::all_failed(&all, &e.to_string()))
        };
        ctx.run(work, |act: &mut Self, failed, ctx| {
            act.store.writing = false;
            if let Some((uid, error)) = failed.first() {
                tracing::warn!(%uid, error, count = failed.len(), "pods are not stored; trying again");
                failed.iter().for_each(|(uid, _)| act.store.lines.forget(uid));
                act.store.changes = Changes::All;
                ctx.after(RETRY, |act, ctx| act.update_store(ctx));
            } else if !act.store.changes.is_nothing() {
                act.update_store(ctx);
            }
        });
    }
}
