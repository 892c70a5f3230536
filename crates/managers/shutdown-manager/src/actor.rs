//! The actor, and one shutdown from its first word to the end of its last pod.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, supervised};
use contract::board::{BoardReader, ValuePoster};
use contract::pod_manager::{DesiredPod, KillPod};
use contract::pod_worker::{KillRequest, WorkerPhase, WorkerState};
use contract::shutdown::Shutdown;
use contract::{Crew, ShutdownManager as Role};
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp};
use node_shutdown::{BEGINS, CANCELLED, EVENT, MESSAGE, REASON, Step, grace_s, group_of, next_step};

use crate::deps::{Config, Deps, PAUSE};
use crate::times::{self, Times};

/// Pause before a pod is told again that nobody was found to tell.
const TELL_AGAIN: Duration = Duration::from_secs(1);
/// A worker that was told and does not show it by then died over it, and is told again.
const SHOWN: Duration = Duration::from_secs(2);
/// A daemon that comes up in the middle of a shutdown has no lock, and knows its pods only after a while.
const LATE: Duration = Duration::from_secs(5);

/// The actor.
#[derive(Debug)]
pub struct ShutdownManager {
    pub(crate) crew: Crew<Role>,
    pub(crate) board: ValuePoster<Shutdown>,
    desired: BoardReader<PodUid, DesiredPod>,
    workers: BoardReader<PodUid, WorkerState>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    /// Before logind is asked again.
    pub(crate) pause: Duration,
    /// Pods that are being told to stop, or were told just now.
    told: BTreeSet<PodUid>,
    /// The group whose period a timer waits for.
    timer: Option<usize>,
    /// All pods had their time; the lock is released when that is written down.
    finishing: bool,
    /// What is to be written down next.
    unwritten: Option<Times>,
    /// Something is being written down.
    writing: bool,
    /// Pods are not known yet: see [`LATE`].
    late: bool,
}

supervised!(ShutdownManager);

impl Actor for ShutdownManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        if self.config.groups.is_empty() {
            return;
        }
        ctx.watch(self.workers.changes(), |act, _, ctx| act.advance(ctx));
        ctx.watch(self.desired.changes(), |act, _, ctx| act.advance(ctx));
        self.recall(ctx);
        self.open(ctx);
        // An earlier generation may have died over one.
        self.advance(ctx);
    }
}

/// A pod that is not at its end.
struct Active {
    uid: PodUid,
    pod: Arc<Pod>,
    group: usize,
    /// Its containers may run, and nobody has told it to stop for this.
    untold: bool,
}

impl ShutdownManager {
    /// A fresh instance. What it published before tells whether it is in the middle of a shutdown.
    #[must_use]
    pub fn new(crew: Crew<Role>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            board: crew.publisher(),
            desired: crew.board(),
            workers: crew.board(),
            crew,
            config,
            deps,
            pause: PAUSE,
            told: BTreeSet::new(),
            timer: None,
            finishing: false,
            unwritten: None,
            writing: false,
            late: false,
        }
    }

    /// Times of the latest shutdown: of an earlier daemon, or of this one, should a death have come before they were written.
    fn recall(&mut self, ctx: &mut Ctx<Self>) {
        let now = self.board.get();
        if now.shutting_down && !now.released {
            return self.note(Times { start: now.started_at, end: Timestamp::ZERO }, ctx);
        }
        if self.config.tells_times && !now.shutting_down {
            let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
            let work = async move {
                effects.hit("recall").await;
                times::load(&deps, &config, &effects).await;
            };
            ctx.run(work, |_, (), _| {});
        }
    }

    /// Has it written down; what was to be written before it and is not yet need not be any more.
    fn note(&mut self, times: Times, ctx: &mut Ctx<Self>) {
        self.unwritten = Some(times);
        self.write(ctx);
    }

    /// One at a time, so that the last one stays. The lock is not released before.
    fn write(&mut self, ctx: &mut Ctx<Self>) {
        if self.writing {
            return;
        }
        let Some(times) = self.unwritten.take() else { return self.release(ctx) };
        self.writing = true;
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let work = async move {
            effects.hit("note").await;
            times::note(times, &deps, &config, &effects).await;
        };
        ctx.run(work, |act: &mut Self, (), ctx| {
            act.writing = false;
            act.write(ctx);
        });
    }

    fn emit(&self, message: &str) {
        let (kind, reason) = (EventType::Normal, EVENT.into());
        self.crew.emit(NodeEvent { kind, reason, message: message.to_owned(), object: EventObject::Node });
    }

    fn wall(ctx: &Ctx<Self>) -> Timestamp {
        Timestamp(ctx.clock().unix_nanos())
    }

    /// The machine goes down.
    pub(crate) fn begin(&mut self, ctx: &mut Ctx<Self>) {
        if !self.board.get().shutting_down {
            tracing::info!("the machine is going down: pods are stopped first");
            self.emit(BEGINS);
            let started_at = Self::wall(ctx);
            self.publish(|now| *now = Shutdown { shutting_down: true, started_at, ..Shutdown::default() });
            self.note(Times { start: started_at, end: Timestamp::ZERO }, ctx);
            if !self.deps.hold.is_held() {
                self.late = true;
                ctx.after(LATE, |act, ctx| {
                    act.late = false;
                    act.advance(ctx);
                });
            }
        }
        self.advance(ctx);
    }

    /// The machine stays up, if it was going down. Pods that were stopped stay so; the others go on.
    pub(crate) fn cancel(&mut self, ctx: &mut Ctx<Self>) {
        let before = self.board.get();
        if !before.shutting_down {
            return;
        }
        tracing::info!("the machine stays up");
        self.emit(CANCELLED);
        self.publish(|now| *now = Shutdown::default());
        (self.told, self.timer, self.finishing, self.late) = (BTreeSet::new(), None, false, false);
        if !before.released {
            self.note(Times { start: before.started_at, end: Self::wall(ctx) }, ctx);
        }
    }

    fn active(&self) -> Vec<Active> {
        let workers = self.workers.snapshot();
        let desired = self.desired.snapshot();
        let all = desired.into_iter().filter_map(|(uid, row)| {
            let worker = workers.get(&uid).filter(|worker| worker.phase < WorkerPhase::Finished)?;
            let knows =
                worker.kill.as_ref().is_some_and(|kill| matches!(&kill.reason, Some((reason, _)) if reason == REASON));
            let untold = worker.phase < WorkerPhase::Terminated && !knows && !self.told.contains(&uid);
            Some(Active { group: group_of(&self.config.groups, &row.pod), pod: row.pod.clone(), untold, uid })
        });
        all.collect()
    }

    /// Goes on with the shutdown that is under way, if there is one: tells the pods of the group that has its turn, and passes on
    /// when they are gone or their time is over.
    fn advance(&mut self, ctx: &mut Ctx<Self>) {
        let mut now = (*self.board.get()).clone();
        if !now.shutting_down || self.late {
            return;
        }
        let wall = Self::wall(ctx);
        let pods = self.active();
        if now.released || self.finishing {
            // The machine does not wait for those that come now; they have what is left.
            pods.iter().for_each(|pod| self.tell(pod, ctx));
            return;
        }
        let wait = loop {
            if !now.group_since.is_set() {
                now.group_since = wall;
            }
            // Those of earlier groups too: one may have come meanwhile.
            for pod in pods.iter().filter(|pod| pod.group <= now.group) {
                self.tell(pod, ctx);
            }
            let active = pods.iter().filter(|pod| pod.group == now.group).count();
            let since = self.deps.turn.lasts(now.group_since, ctx.clock().now());
            match next_step(&self.config.groups, now.group, active, since) {
                Step::Wait(left) => break Some(left),
                Step::Done => break None,
                Step::Next { in_time } => {
                    if !in_time {
                        let priority = self.config.groups.get(now.group).map(|group| group.priority);
                        tracing::warn!(
                            priority,
                            active,
                            "the time of these pods is over, and not all of them are gone"
                        );
                    }
                    (now.group, now.group_since) = (now.group + 1, wall);
                }
            }
        };
        let group = now.group;
        self.publish(|board| *board = now);
        match wait {
            None => self.finish(ctx),
            Some(left) if self.timer != Some(group) => {
                self.timer = Some(group);
                ctx.after(left, |act, ctx| {
                    act.timer = None;
                    act.advance(ctx);
                });
            }
            Some(_) => {}
        }
    }

    fn tell(&mut self, Active { uid, pod, group, untold }: &Active, ctx: &mut Ctx<Self>) {
        let Some(group) = self.config.groups.get(*group).filter(|_| *untold) else { return };
        if !self.told.insert(uid.clone()) {
            return;
        }
        let grace = grace_s(group, pod);
        tracing::info!(pod = %model::pod::describe(pod), grace_s = grace, "stopped, as the machine is going down");
        let reason = Some((REASON.to_owned(), MESSAGE.to_owned()));
        let request = KillRequest { grace_s: Some(grace), reason, ..KillRequest::default() };
        let (crew, effects, uid) = (self.crew.clone(), ctx.effects(), uid.clone());
        let message = KillPod { uid: uid.clone(), request };
        let work = async move {
            effects.hit("kill").await;
            crew.ask(message).await
        };
        ctx.run(work, move |act: &mut Self, answer, ctx| {
            if matches!(answer, Ok(true)) {
                ctx.after(SHOWN, move |act, ctx| {
                    act.told.remove(&uid);
                    act.advance(ctx);
                });
                return;
            }
            tracing::debug!(%uid, ?answer, "the pod was not told to stop, it is told again");
            act.told.remove(&uid);
            ctx.after(TELL_AGAIN, Self::advance);
        });
    }

    /// All pods had their time.
    fn finish(&mut self, ctx: &mut Ctx<Self>) {
        self.finishing = true;
        let times = Times { start: self.board.get().started_at, end: Self::wall(ctx) };
        self.note(times, ctx);
    }

    /// The machine may go down, once that is written.
    fn release(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::take(&mut self.finishing) {
            return;
        }
        ctx.fault_point("release");
        self.deps.hold.release();
        self.publish(|now| now.released = true);
        tracing::info!("pods had their time: the machine may go down");
    }
}
