//! The actor: decides on its copy, posts on the board.

use actor::{Actor, ActorRef, Ctx, Handler, supervised};
use contract::status::{
    RetainPodStatuses, SetContainerReadiness, SetContainerStartup, SetPodStatus, StatusEntry, StatusHandle,
    TerminatePod,
};
use contract::view::Board;
use model::core::Pod;
use model::{PodUid, Timestamp, pod};

use crate::store::{Outcome, Statuses};

/// The actor. Built by a factory that clones the board of its [`StatusHandle`].
#[derive(Debug)]
pub struct StatusManager {
    view: Board<PodUid, StatusEntry>,
    statuses: Statuses,
}

impl StatusManager {
    /// A fresh instance; what the board shows is taken over when it starts.
    #[must_use]
    pub fn new(view: Board<PodUid, StatusEntry>) -> Self {
        Self { view, statuses: Statuses::default() }
    }

    fn conclude(&self, pod: &Pod, outcome: Outcome, ctx: &mut Ctx<Self>) {
        match outcome {
            Outcome::Stored(entry) => {
                let uid = pod::uid(pod);
                tracing::debug!(pod = %pod::describe(pod), version = entry.version, finished = entry.finished,
                    phase = entry.status.phase.as_deref(), "status stored");
                // A crash here loses nothing that was published; the asker is told and hands the status in again.
                ctx.fault_point("decided");
                self.view.post(uid, entry);
                ctx.fault_point("posted");
            }
            Outcome::Refused(illegal) => {
                tracing::error!(pod = %pod::describe(pod), container = %illegal.container,
                    "status dropped: a terminated container would leave its final state");
            }
            Outcome::Unknown => {
                tracing::debug!(pod = %pod::describe(pod), "probe verdict before the first status of the pod");
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
    }
}
supervised!(StatusManager);

/// Routes every message of the contract to `to`.
pub fn connect(handle: &StatusHandle, to: &ActorRef<StatusManager>) {
    handle.set_pod_status.connect(to);
    handle.set_container_readiness.connect(to);
    handle.set_container_startup.connect(to);
    handle.terminate_pod.connect(to);
    handle.retain_pod_statuses.connect(to);
}

fn now(ctx: &Ctx<StatusManager>) -> Timestamp {
    Timestamp(ctx.clock().unix_nanos())
}

impl Handler<SetPodStatus> for StatusManager {
    type Result = ();

    fn handle(&mut self, SetPodStatus { pod, status }: SetPodStatus, ctx: &mut Ctx<Self>) {
        let outcome = self.statuses.set(&pod, status, now(ctx));
        self.conclude(&pod, outcome, ctx);
    }
}

impl Handler<SetContainerReadiness> for StatusManager {
    type Result = ();

    fn handle(&mut self, msg: SetContainerReadiness, ctx: &mut Ctx<Self>) {
        let outcome = self.statuses.set_readiness(&msg.pod, &msg.container, msg.ready, now(ctx));
        self.conclude(&msg.pod, outcome, ctx);
    }
}

impl Handler<SetContainerStartup> for StatusManager {
    type Result = ();

    fn handle(&mut self, msg: SetContainerStartup, ctx: &mut Ctx<Self>) {
        let outcome = self.statuses.set_startup(&msg.pod, &msg.container, msg.started, now(ctx));
        self.conclude(&msg.pod, outcome, ctx);
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
        self.view.sweep();
    }
}
