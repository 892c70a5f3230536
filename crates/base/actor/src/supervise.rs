//! Supervision of one actor: catches its panics, keeps its mailbox and address, rebuilds it when its group says so.

mod stuck;

use crate::context::{Ctx, Managed, Rebuild};
use crate::control::{Order, locked};
use crate::crash::{Caught, Crash, guarded, log_last_words, quietly};
use crate::group::{Decision, Group};
use crate::info::ActorPhase;
use crate::kernel::Kernel;
use crate::record::Record;
use crate::type_name::short;
use actix::dev::{ContextFut, Mailbox};
use actix::{ActorContext, ActorState};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;
use tracing::Span;

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
    Paused(Option<BoxFuture<'static, ()>>),
}

/// The task of an actor.
pub(crate) struct Supervisee<A: Managed> {
    kernel: Kernel,
    group: Group,
    life: Life<A>,
    phase: Phase,
    record: Arc<Record>,
    /// The next poll is the first of its generation.
    fresh: bool,
    /// Crashes in a row: without a calm period between them.
    streak: u32,
    /// When it was, or will be, built after its last crash.
    calm_since: Option<Instant>,
    patience: Duration,
    stuck: Option<Stuck>,
    span: Span,
}

impl<A: Managed> Supervisee<A> {
    /// The first generation is built after `first`.
    pub(crate) fn new(
        ctx: Ctx<A>,
        mailbox: Mailbox<A>,
        patience: Duration,
        first: Option<BoxFuture<'static, ()>>,
    ) -> Self {
        let record = ctx.record().clone();
        Supervisee {
            kernel: ctx.kernel().clone(),
            group: ctx.group().clone(),
            life: Life::Unborn(ctx, mailbox),
            phase: Phase::Paused(first),
            span: span(&record, 0),
            record,
            fresh: true,
            streak: 0,
            calm_since: None,
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
                    if let Some(delay) = delay {
                        ready!(delay.as_mut().poll(cx));
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
        match self.record.control.take_order() {
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
        let polled = guarded(|| {
            if fresh {
                fut.ctx().fault_point("started");
            }
            Pin::new(&mut *fut).poll(cx)
        });
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
        let last = short(*locked(&self.record.message));
        let (patience, queued) = (self.patience, self.record.depth());
        let cause = format!("stuck: no turn for {patience:?} with {queued} queued, last message {last}");
        self.crashed(Caught::of(cause));
        None
    }

    /// Logs the crash once, drops what the generation had under way, asks the group what to do.
    fn crashed(&mut self, caught: Caught) {
        let Some(ctx) = self.ctx() else { return };
        let (during, generation, group) = (short(ctx.during()), ctx.generation(), ctx.group().clone());
        let crash = Arc::new(Crash { caught, during, generation });
        *locked(&self.record.last_crash) = Some(crash.clone());
        self.record.count.restarts.fetch_add(1, Relaxed);
        let now = Instant::now();
        let caught = &crash.caught;
        let aside = self.ctx().and_then(|ctx| ctx.blame(&caught.cause));
        let decision = if aside.is_some() {
            Decision::RestartAfter(group.policy().backoff_first)
        } else {
            let calm =
                self.calm_since.is_none_or(|since| now.checked_duration_since(since) > Some(group.policy().period));
            self.streak = if calm { 1 } else { self.streak.saturating_add(1) };
            group.report(&self.record.name, self.streak)
        };
        let delay = if let Decision::RestartAfter(after) = decision { after } else { Duration::ZERO };
        self.calm_since = Some(now + delay);
        tracing::error!(target: "actor", during = crash.during, cause = %caught.cause, at = caught.location.as_deref(),
            queued = self.record.depth(), ?decision, "actor crashed");
        if let Some(trace) = tracing::enabled!(target: "actor", tracing::Level::DEBUG).then(|| crash.short_backtrace())
        {
            tracing::debug!(target: "actor", backtrace = trace, "actor crashed here");
        }
        if let Some(aside) = aside {
            tracing::error!(target: "actor", what = aside.what, subject = aside.subject, crashes = aside.crashes,
                rest = ?aside.rest, "set aside: it crashed the actor again");
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
        self.phase = Phase::Paused((!after.is_zero()).then(|| tokio::time::sleep(after).boxed()));
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
        let _ = self.record.control.take_order();
    }

    /// The supervisor itself panicked: nobody is left to build the actor again, so the kernel is no longer healthy. Says so
    /// before anything else, for what panicked may have been the log.
    fn lost(&mut self, caught: &Caught) -> Poll<()> {
        self.kernel.root().give_up(&self.record.name);
        let _what_panicked_may_again = guarded(|| log_last_words(caught));
        let _so_may_the_rest = guarded(|| self.leave());
        Poll::Ready(())
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
        let lost = self.record.depth() + self.ctx().map_or(0, |ctx| ctx.parked());
        if lost > 0 {
            tracing::warn!(target: "actor", lost, "stopped with messages unhandled");
        }
        self.record.room.close();
        // A member until its state is dropped: what is not in the directory is not watched.
        match std::mem::replace(&mut self.life, Life::Gone) {
            Life::Unborn(ctx, mailbox) => quietly(move || drop((ctx, mailbox))),
            Life::Born(mut fut) => {
                fut.ctx().terminate();
                quietly(move || drop(fut));
            }
            Life::Gone => return Poll::Ready(()),
        }
        self.group.leave(self.record.id);
        self.kernel.directory().remove(self.record.id);
        self.record.set_phase(ActorPhase::Gone);
        Poll::Ready(())
    }
}

/// Whether the actor itself asked for its end.
fn ending<A: Managed>(ctx: &Ctx<A>) -> bool {
    matches!(ctx.state(), ActorState::Stopping | ActorState::Stopped)
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
        // All of it is watched: factories, farewells and drops run here too.
        this.record.polling.store(this.kernel.tick() + 1, Relaxed);
        let step = guarded(|| span.in_scope(|| this.step(cx)));
        this.record.polling.store(0, Relaxed);
        let poll = step.unwrap_or_else(|caught| this.lost(&caught));
        if this.span.is_none() {
            this.span = span;
        }
        poll
    }
}

impl<A: Managed> Drop for Supervisee<A> {
    fn drop(&mut self) {
        self.record.polling.store(self.kernel.tick() + 1, Relaxed);
        let _nobody_is_left_to_tell = guarded(|| self.leave());
    }
}
