//! The end of a turn: the board, the journal, the one timer.

use std::collections::BTreeSet;
use std::sync::Arc;

use actor::{AsyncContext, Ctx};
use model::{ContainerId, PodUid};

use super::ProbeManager;
use crate::journal;

impl ProbeManager {
    /// Forgets kept verdicts of containers that have not shown up.
    pub(super) fn drop_unclaimed(&mut self, ctx: &mut Ctx<Self>) {
        let known: BTreeSet<&ContainerId> = self.pods.values().flat_map(|e| e.row.verdicts.keys()).collect();
        let unclaimed: Vec<ContainerId> = self.kept.keys().filter(|id| !known.contains(id)).cloned().collect();
        for id in unclaimed {
            self.kept.remove(&id);
            if let Some(journal) = &self.deps.journal {
                journal::remove(&**journal, &id);
            }
        }
        self.end_turn(ctx);
    }

    /// Publishes what changed, sets the timer.
    pub(super) fn end_turn(&mut self, ctx: &mut Ctx<Self>) {
        for uid in std::mem::take(&mut self.dirty) {
            if let Some(entry) = self.pods.get(&uid) {
                self.view.post(uid, Arc::new(entry.row.clone()));
            }
        }
        self.set_timer(ctx);
    }

    pub(super) fn set_timer(&mut self, ctx: &mut Ctx<Self>) {
        let Some(due) = self.schedule.next_due() else { return };
        if let Some((at, handle)) = self.timer {
            if at <= due {
                return;
            }
            ctx.cancel_future(handle);
        }
        let wait = due.saturating_sub(self.now(ctx));
        let handle = ctx.after(wait, |this, ctx| {
            this.timer = None;
            this.wake(ctx);
        });
        self.timer = Some((due, handle));
    }

    /// Has the journal hold what the row has of an instance.
    pub(super) fn keep(&mut self, uid: &PodUid, container: &ContainerId) {
        let Some(journal) = &self.deps.journal else { return };
        match self.pods.get(uid).filter(|e| e.row.verdicts.contains_key(container)) {
            Some(entry) => journal::save(&**journal, container, entry.verdicts(container)),
            None => {
                self.kept.remove(container);
                journal::remove(&**journal, container);
            }
        }
    }
}
