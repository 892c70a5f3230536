//! The actor: decides on its copy, posts on the board.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::{Actor, ActorFutureExt, AsyncContext, Class, Ctx, Handler, WrapFuture, supervised};
use contract::Crew;
use contract::board::BoardPoster;
use contract::status::{RetainPodStatuses, SetPodStatus, StatusEntry, TerminatePod};
use model::core::Pod;
use model::{PodUid, Timestamp, pod};
use ports::journal::Journal;

use crate::journal;
use crate::store::{Outcome, Statuses};

/// The actor.
pub struct StatusManager {
    view: BoardPoster<PodUid, StatusEntry>,
    statuses: Statuses,
    journal: Option<Arc<dyn Journal>>,
}

impl std::fmt::Debug for StatusManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusManager").field("statuses", &self.statuses).finish_non_exhaustive()
    }
}

impl StatusManager {
    /// A fresh instance; what the board shows is taken over when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::StatusManager>) -> Self {
        Self { view: crew.poster(), statuses: Statuses::default(), journal: None }
    }

    /// Takes over, when it starts, the statuses that an earlier life of the daemon could not tell the API server (the lines
    /// that a [`crate::StatusSyncer`] writes). No message is handled before that.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Statuses of pods that the board does not know are put there: workers go on from them.
    fn take_over(&mut self, lines: BTreeMap<PodUid, Arc<StatusEntry>>) {
        let mut count = 0;
        for (uid, entry) in lines {
            if self.statuses.restore(&uid, &entry) {
                self.view.post(uid, entry);
                count += 1;
            }
        }
        if count > 0 {
            tracing::info!(pods = count, "statuses taken over that the API server has not seen");
        }
    }

    fn conclude(&self, pod: &Pod, outcome: Outcome, ctx: &mut Ctx<Self>) {
        match outcome {
            Outcome::Stored(entry) => {
                let uid = pod::uid(pod);
                tracing::debug!(pod = %pod::describe(pod), version = entry.version, finished = entry.finished,
                    phase = entry.status.phase.as_deref(), "status stored");
                // A crash here loses nothing that was published; the asker gets an error and hands the status in again.
                ctx.fault_point("decided");
                self.view.post(uid, entry);
                ctx.fault_point("posted");
            }
            Outcome::Refused(illegal) => {
                tracing::error!(pod = %pod::describe(pod), container = %illegal.container,
                    "status dropped: a terminated container would leave its final state");
            }
            Outcome::Unchanged => {}
        }
    }
}

impl Actor for StatusManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.statuses = Statuses::recovered(self.view.snapshot());
        if ctx.generation() > 0 {
            tracing::info!(pods = self.statuses.len(), "statuses read back from the board");
        }
        if let Some(journal) = self.journal.clone() {
            let effects = ctx.effects();
            let read = async move { effects.attempt(Class::Journal, move || journal::load(&*journal)).await };
            let read = read.into_actor(self);
            ctx.wait(read.map(|lines, act, ctx| {
                act.take_over(lines.unwrap_or_default());
                ctx.fault_point("taken over");
            }));
        }
    }
}
supervised!(StatusManager);

fn now(ctx: &Ctx<StatusManager>) -> Timestamp {
    Timestamp(ctx.clock().unix_nanos())
}

impl Handler<SetPodStatus> for StatusManager {
    type Result = ();

    fn handle(&mut self, SetPodStatus { pod, status }: SetPodStatus, ctx: &mut Ctx<Self>) {
        let outcome = self.statuses.set(&pod, Arc::unwrap_or_clone(status), now(ctx));
        self.conclude(&pod, outcome, ctx);
    }
}

impl Handler<TerminatePod> for StatusManager {
    type Result = ();

    fn handle(&mut self, TerminatePod { pod }: TerminatePod, ctx: &mut Ctx<Self>) {
        let outcome = self.statuses.terminate(&pod, now(ctx));
        self.conclude(&pod, outcome, ctx);
    }
}

impl Handler<RetainPodStatuses> for StatusManager {
    type Result = ();

    fn handle(&mut self, RetainPodStatuses { known }: RetainPodStatuses, ctx: &mut Ctx<Self>) {
        for uid in self.statuses.retain(&known) {
            self.view.remove(&uid);
            ctx.fault_point("forgot");
        }
    }
}
