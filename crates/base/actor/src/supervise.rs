//! Supervision of one actor: catches its panics, keeps its mailbox and address, rebuilds it when its group says so.

mod crash;
mod stuck;

use crate::ActorPhase;
use crate::context::{Ctx, Rebuild};
use crate::control::{Order, locked};
use crate::group::Decision;
use crate::record::Record;
use crate::reference::Managed;
use actix::dev::{ContextFut, Mailbox};
use actix::{ActorContext, ActorState};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tracing::Span;

pub(crate) use crash::{Caught, Crash, Killed, guarded, install_hook};
use stuck::Stuck;

/// Attempts at dropping the futures of a crashed generation: each panicking `Drop` among them ends one attempt.
const CLEAR_ATTEMPTS: usize = 8;

#[allow(clippy::large_enum_variant, reason = "one per actor, moved once")]
enum Life<A: Managed> {
    /// No generation could be built yet.
    Unborn(Ctx<A>, Mailbox<A>),
    Born(ContextFut<A, Ctx<A>>),
    Gone,
}

enum Phase {
    Running,
    /// None: build at once, for tokio's timers are not finer than a millisecond.
    Paused(Option<Pin<Box<Sleep>>>),
}

/// The task of an actor.
pub(crate) struct Supervisee<A: Managed> {
    life: Life<A>,
    phase: Phase,
    record: Arc<Record>,
    /// The next poll is the first of its generation.
    fresh: bool,
    /// Crashes in a row: without a calm period between them.
    streak: u32,
    last_crash: Option<Instant>,
    patience: Duration,
    stuck: Option<Stuck>,
    span: Span,
}

impl<A: Managed> Supervisee<A> {
    pub(crate) fn new(ctx: Ctx<A>, mailbox: Mailbox<A>, patience: Duration) -> Self {
        let record = ctx.record().clone();
        Supervisee {
            life: Life::Unborn(ctx, mailbox),
            phase: Phase::Paused(None),
            span: span(&record, 0),
            record,
            fresh: true,
            streak: 0,
            last_crash: None,
            patience,
            stuck: None,
        }
    }

    fn ctx(&mut self) -> Option<&mut Ctx<A>> {
        match &mut self.life {
            Life::Unborn(ctx, _) => Some(ctx),
            Life::Born(fut) => Some(fut.ctx()),
            Life::Gone => None,
        }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.obey();
            if matches!(self.life, Life::Gone) {
                return Poll::Ready(());
            }
            let drained = self.record.closing() && self.record.depth() == 0;
            match &mut self.phase {
                Phase::Paused(_) if drained => return self.leave(),
                Phase::Paused(delay) => {
                    if let Some(sleep) = delay {
                        ready!(sleep.as_mut().poll(cx));
                    }
                    self.build();
                }
                Phase::Running if drained => return self.retire(cx),
                Phase::Running => {
                    if let Some(done) = self.run(cx) {
                        return done;
                    }
                }
            }
        }
    }

    /// Does what was ordered from outside.
    fn obey(&mut self) {
        let running = matches!(self.phase, Phase::Running);
        match self.record.control.take() {
            Some(Order::Kill(cause)) if running => self.crashed(Caught::of(cause)),
            Some(Order::Restart(after)) if running => {
                tracing::warn!(target: "actor", ?after, "restarts with its group");
                self.pause(after);
            }
            // Down already: the restart to come serves as well.
            Some(_) | None => {}
        }
    }

    /// Builds the next generation, or the first.
    fn build(&mut self) {
        self.phase = Phase::Running;
        self.fresh = true;
        let built = match std::mem::replace(&mut self.life, Life::Gone) {
            Life::Unborn(mut ctx, mailbox) => match guarded(|| ctx.build()) {
                Ok(actor) => {
                    self.life = Life::Born(ContextFut::new(ctx, actor, mailbox));
                    Ok(())
                }
                Err(caught) => {
                    self.life = Life::Unborn(ctx, mailbox);
                    Err(caught)
                }
            },
            Life::Born(mut fut) => {
                fut.ctx().next = Rebuild::Build;
                let built = guarded(|| fut.restart());
                self.life = Life::Born(fut);
                built.map(|_| ())
            }
            Life::Gone => return,
        };
        match built {
            Ok(()) => self.record.set_phase(self.living_phase()),
            Err(caught) => self.crashed(caught),
        }
    }

    fn living_phase(&self) -> ActorPhase {
        if self.record.closing() { ActorPhase::Stopping } else { ActorPhase::Running }
    }

    /// One poll of the actor. `None`: look again.
    fn run(&mut self, cx: &mut Context<'_>) -> Option<Poll<()>> {
        let Life::Born(fut) = &mut self.life else { return Some(self.leave()) };
        let fresh = std::mem::take(&mut self.fresh);
        fut.ctx().open(if fresh { "started" } else { "" });
        self.record.polling.store(fut.ctx().kernel().tick() + 1, Relaxed);
        let polled = guarded(|| {
            if fresh {
                fut.ctx().fault_point("started");
            }
            Pin::new(&mut *fut).poll(cx)
        });
        self.record.polling.store(0, Relaxed);
        match polled {
            Ok(Poll::Ready(())) => Some(self.leave()),
            Ok(Poll::Pending) => self.rest(cx),
            Err(caught) if ending(fut.ctx()) => {
                log_last_words(&caught);
                Some(self.leave())
            }
            Err(caught) => {
                self.crashed(caught);
                None
            }
        }
    }

    /// After a poll: yield, stop, or watch for being stuck.
    fn rest(&mut self, cx: &mut Context<'_>) -> Option<Poll<()>> {
        let Life::Born(fut) = &mut self.life else { return None };
        if self.record.closing() {
            if self.record.depth() == 0 {
                return None;
            }
            self.record.set_phase(ActorPhase::Stopping);
        }
        if fut.ctx().spent() {
            cx.waker().wake_by_ref();
            return Some(Poll::Pending);
        }
        if !fut.ctx().held() {
            self.stuck = None;
            return Some(Poll::Pending);
        }
        let stuck = self.stuck.get_or_insert_with(|| Stuck::new(self.patience));
        if stuck.poll(&self.record, cx).is_pending() {
            return Some(Poll::Pending);
        }
        let last = crate::envelope::short(*locked(&self.record.message));
        let (patience, queued) = (self.patience, self.record.depth());
        let cause = format!("stuck: no turn for {patience:?} with {queued} queued, last message {last}");
        self.crashed(Caught::of(cause));
        None
    }

    /// Logs the crash once, drops what the generation had under way, asks the group what to do.
    fn crashed(&mut self, caught: Caught) {
        let Some(ctx) = self.ctx() else { return };
        let (during, generation, group) = (crate::envelope::short(ctx.during()), ctx.generation(), ctx.group().clone());
        let crash = Arc::new(Crash { caught, during, generation });
        *locked(&self.record.last_crash) = Some(crash.clone());
        self.record.count.restarts.fetch_add(1, Relaxed);
        let now = Instant::now();
        let calm = self.last_crash.is_none_or(|last| now.duration_since(last) > group.policy().period);
        self.streak = if calm { 1 } else { self.streak.saturating_add(1) };
        self.last_crash = Some(now);
        let decision = group.report(&self.record.name, self.streak);
        let caught = &crash.caught;
        tracing::error!(target: "actor", during = crash.during, cause = %caught.cause, at = caught.location.as_deref(),
            queued = self.record.depth(), ?decision, "actor crashed");
        if let Some(trace) = tracing::enabled!(target: "actor", tracing::Level::DEBUG).then(|| crash.short_backtrace())
        {
            tracing::debug!(target: "actor", backtrace = trace, "actor crashed here");
        }
        match decision {
            Decision::RestartAfter(after) => self.pause(after),
            Decision::Fatal => {
                let _ = self.leave();
            }
        }
    }

    /// Ends a generation; the next one is built after the delay.
    fn pause(&mut self, after: Duration) {
        self.stuck = None;
        self.phase = Phase::Paused((!after.is_zero()).then(|| Box::pin(tokio::time::sleep(after))));
        self.record.set_phase(ActorPhase::Restarting);
        if let Life::Born(fut) = &mut self.life {
            // Now, not when the delay is over: askers of unfinished answers get to know.
            fut.ctx().next = Rebuild::Clear;
            for _ in 0..CLEAR_ATTEMPTS {
                if guarded(|| fut.restart()).is_ok() {
                    break;
                }
            }
        }
        if let Some(ctx) = self.ctx() {
            ctx.next_generation();
            let generation = ctx.generation();
            self.span = span(&self.record, generation);
        }
        // An order given meanwhile (by the own group, say) is served by this restart.
        let _ = self.record.control.take();
    }

    /// The queue is empty and nothing more may come: the actor's own farewell, then the end.
    fn retire(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Life::Born(fut) = &mut self.life {
            fut.ctx().open("stopping");
            fut.ctx().stop();
            if let Err(caught) = guarded(|| Pin::new(&mut *fut).poll(cx)) {
                log_last_words(&caught);
            }
        }
        self.leave()
    }

    /// The end. Drops the actor outside of unwinding, and without the extra poll of `ContextFut::drop`.
    fn leave(&mut self) -> Poll<()> {
        let lost = self.record.depth();
        if lost > 0 {
            tracing::warn!(target: "actor", lost, "stopped with messages unhandled");
        }
        let life = std::mem::replace(&mut self.life, Life::Gone);
        match life {
            Life::Unborn(ctx, mailbox) => {
                forget_membership(&ctx);
                quietly(move || drop((ctx, mailbox)));
            }
            Life::Born(mut fut) => {
                forget_membership(fut.ctx());
                fut.ctx().terminate();
                quietly(move || drop(fut));
            }
            Life::Gone => return Poll::Ready(()),
        }
        self.record.set_phase(ActorPhase::Gone);
        Poll::Ready(())
    }
}

fn forget_membership<A: Managed>(ctx: &Ctx<A>) {
    let record = ctx.record();
    record.room.close();
    ctx.group().leave(record.id);
    ctx.kernel().directory().remove(record.id);
}

/// Whether the actor itself asked for its end.
fn ending<A: Managed>(ctx: &Ctx<A>) -> bool {
    matches!(ctx.state(), ActorState::Stopping | ActorState::Stopped)
}

fn quietly(f: impl FnOnce()) {
    if let Err(caught) = guarded(f) {
        log_last_words(&caught);
    }
}

fn log_last_words(caught: &Caught) {
    tracing::error!(target: "actor", cause = %caught.cause, at = caught.location.as_deref(), "panicked while it stopped");
}

fn span(record: &Record, generation: u64) -> Span {
    tracing::info_span!(target: "actor", parent: None, "actor", name = %record.name, generation)
}

impl<A: Managed> Future for Supervisee<A> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.record.control.register(cx.waker());
        let span = std::mem::replace(&mut this.span, Span::none());
        let poll = span.in_scope(|| this.step(cx));
        if this.span.is_none() {
            this.span = span;
        }
        poll
    }
}

impl<A: Managed> Drop for Supervisee<A> {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}
