//! What runs in a context beside messages: effects, timers, watches, blocking work, fault points.

use super::later::{Changes, Fair, Held, Later, Ticks};
use super::{Ctx, Managed};
use crate::blocking::Class;
use crate::faults::Action;
use crate::passages::Point;
use crate::record::UnderWay;
use crate::watch;
use actix::fut::ActorFuture;
use actix::{Addr, AsyncContext, SpawnHandle};
use std::future::Future;
use std::time::Duration;

impl<A: Managed> AsyncContext<A> for Ctx<A> {
    fn address(&self) -> Addr<A> {
        self.this.addr().clone()
    }

    fn spawn<F: ActorFuture<A, Output = ()> + 'static>(&mut self, fut: F) -> SpawnHandle {
        self.parts.spawn(Fair::new(self.label(), self.subject.clone(), fut))
    }

    fn wait<F: ActorFuture<A, Output = ()> + 'static>(&mut self, fut: F) {
        self.held += 1;
        self.parts.wait(Held::new(fut));
    }

    /// Also true when the budget of this poll is spent: the mailbox then rests, and neighbours get their turn.
    fn waiting(&self) -> bool {
        self.budget == 0 || self.parts.waiting()
    }

    fn cancel_future(&mut self, handle: SpawnHandle) -> bool {
        // actix polls what else is due before it takes the future away: nothing more runs in this poll.
        self.budget = 0;
        self.parts.cancel_future(handle)
    }
}

impl<A: Managed> Ctx<A> {
    /// Runs work that blocks its thread on one of that class; `done` gets the output in a turn of its own. A panic in it is
    /// the actor's; a restart forgets it (work that has begun is not cut short).
    pub fn blocking<R: Send + 'static>(
        &mut self,
        class: Class,
        work: impl FnOnce() -> R + Send + 'static,
        done: impl FnOnce(&mut A, R, &mut Ctx<A>) + 'static,
    ) -> SpawnHandle {
        let effects = self.effects();
        self.run(async move { effects.blocking(class, work).await }, done)
    }

    /// A fault point inside of a turn: panics, is killed, or (stall, delay) takes no further turn for a while.
    pub fn fault_point(&mut self, point: &'static str) {
        if !self.kernel.faults().on() {
            return;
        }
        match self.kernel.faults().decide(self.record(), Point::Named(point)) {
            Some(action @ (Action::Panic | Action::Kill | Action::Block(_))) => action.strike(point),
            Some(Action::Stall(d) | Action::Delay(d)) => {
                self.wait(Later::new(point, d, |_: &mut A, _: &mut Ctx<A>| ()))
            }
            Some(Action::Drop | Action::Duplicate) | None => {}
        }
    }

    /// Calls `f` once, `d` from now.
    pub fn after(&mut self, d: Duration, f: impl FnOnce(&mut A, &mut Ctx<A>) + 'static) -> SpawnHandle {
        self.later("timer", d, f)
    }

    /// As [`Ctx::after`]; a crash in `f` is blamed on `label`.
    pub(crate) fn later(
        &mut self,
        label: &'static str,
        d: Duration,
        f: impl FnOnce(&mut A, &mut Ctx<A>) + 'static,
    ) -> SpawnHandle {
        self.parts.spawn(Later::new(label, d, f))
    }

    /// Calls `f` every `period`, first in one period (at least 1 ms). Ticks missed while the actor was busy are not
    /// replayed.
    pub fn every(&mut self, period: Duration, f: impl FnMut(&mut A, &mut Ctx<A>) + 'static) -> SpawnHandle {
        self.parts.spawn(Ticks::new(period, f))
    }

    /// Calls `f` with the current value, then with each new one; in-between values may be skipped, the latest never is.
    /// Ends when the sender is gone.
    pub fn watch<T: Clone + 'static>(
        &mut self,
        rx: watch::Receiver<T>,
        f: impl FnMut(&mut A, T, &mut Ctx<A>) + 'static,
    ) {
        self.parts.spawn(Changes::new(rx, f));
    }

    /// Runs an effect that belongs to this generation: a panic in it is the actor's panic, a restart cancels it.
    /// `done` gets the output, in a turn of its own.
    pub fn run<F: Future + 'static>(
        &mut self,
        fut: F,
        done: impl FnOnce(&mut A, F::Output, &mut Ctx<A>) + 'static,
    ) -> SpawnHandle {
        use actix::ActorFutureExt;
        let counted = UnderWay::new(self.record());
        // Not in a block around the future: that would hold it twice, as what it was given and as what it awaits.
        let fut = actix::fut::wrap_future::<_, A>(fut).map(move |out, actor: &mut A, ctx: &mut Ctx<A>| {
            drop(counted);
            done(actor, out, ctx);
        });
        self.parts.spawn(Fair::new(self.label(), self.subject.clone(), fut))
    }
}
