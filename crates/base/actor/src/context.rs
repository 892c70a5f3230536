//! The context that actors run in.

mod later;
mod subject;

use crate::blocking::{Class, Effects};
use crate::clock::Clock;
use crate::faults::{Action, FaultHandle};
use crate::group::Group;
use crate::kernel::Kernel;
use crate::poison::Subject;
use crate::record::Record;
use crate::reference::{ActorRef, Managed};
use crate::supervise::guarded;
use actix::dev::{AsyncContextParts, ContextParts, Mailbox, channel::channel};
use actix::fut::ActorFuture;
use actix::{ActorContext, ActorState, Addr, AsyncContext, SpawnHandle};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;

pub(crate) use later::Later;
use later::{Changes, Fair, Held, Ticks};

/// Messages and completed futures per poll: small, so that one flooded actor leaves its neighbours their turns.
pub(crate) const POLL_BUDGET: u32 = 16;

/// What a crash in a future is blamed on that was spawned outside of any message, timer or start.
const IN_FUTURE: &str = "future";

pub(crate) type Factory<A> = Box<dyn FnMut(u64) -> A>;

/// What `Supervised::restarting` is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rebuild {
    /// Forget futures and timers of the crashed generation.
    Clear,
    /// Build the next generation.
    Build,
}

/// The context of an actor: `type Context = Ctx<Self>`. Also an actix `ActorContext` and `AsyncContext`.
pub struct Ctx<A: Managed> {
    parts: ContextParts<A>,
    kernel: Kernel,
    group: Group,
    this: ActorRef<A>,
    factory: Factory<A>,
    generation: u64,
    rng: fastrand::Rng,
    budget: u32,
    during: &'static str,
    /// For whom, when it is for one.
    subject: Option<Subject>,
    /// Tells that are set aside.
    parked: usize,
    /// Futures for which the mailbox is shut.
    held: u32,
    pub(crate) next: Rebuild,
}

impl<A: Managed> ActorContext for Ctx<A> {
    /// Stops for good after this turn; queued messages are not handled. See [`ActorRef::stop`] for the gentle way.
    fn stop(&mut self) {
        self.parts.stop();
    }

    fn terminate(&mut self) {
        self.parts.terminate();
    }

    fn state(&self) -> ActorState {
        self.parts.state()
    }
}

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
        self.parts.cancel_future(handle)
    }
}

impl<A: Managed> AsyncContextParts<A> for Ctx<A> {
    fn parts(&mut self) -> &mut ContextParts<A> {
        &mut self.parts
    }
}

impl<A: Managed> Ctx<A> {
    pub(crate) fn new(kernel: Kernel, group: Group, this: ActorRef<A>, factory: Factory<A>) -> Self {
        let rng = generation_rng(&kernel, this.name(), 0);
        Ctx {
            parts: fresh_parts(),
            kernel,
            group,
            this,
            factory,
            generation: 0,
            rng,
            budget: POLL_BUDGET,
            during: "",
            subject: None,
            parked: 0,
            held: 0,
            next: Rebuild::Build,
        }
    }

    /// Name given at spawn.
    pub fn name(&self) -> &Arc<str> {
        self.this.name()
    }

    /// 0 first, one more per rebuild.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The kernel that runs this actor, for spawning others.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The group it belongs to.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Time.
    pub fn clock(&self) -> &Clock {
        self.kernel.clock()
    }

    /// Randomness, seeded from the kernel's seed, the name and the generation.
    pub fn rng(&mut self) -> &mut fastrand::Rng {
        &mut self.rng
    }

    /// The own address.
    pub fn this(&self) -> ActorRef<A> {
        self.this.clone()
    }

    /// Fault points for effects.
    pub fn faults(&self) -> FaultHandle {
        FaultHandle::new(self.kernel.faults().clone(), self.record().clone())
    }

    /// For effects: blocking work and fault points.
    pub fn effects(&self) -> Effects {
        Effects::new(self.kernel.blocking().clone(), self.faults())
    }

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
        match self.kernel.faults().decide(self.this.name(), point) {
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
        let fut =
            actix::fut::wrap_future::<_, A>(fut).map(move |out, actor: &mut A, ctx: &mut Ctx<A>| done(actor, out, ctx));
        self.parts.spawn(Fair::new(self.label(), self.subject.clone(), fut))
    }

    /// Body of every `Supervised::restarting`. Called by `supervised!` only.
    #[doc(hidden)]
    pub fn rebuild(actor: &mut A, ctx: &mut Ctx<A>) {
        // Fresh parts: a cancellation that the crashed poll asked for must not hit a future of the next generation.
        ctx.parts = fresh_parts();
        ctx.held = 0;
        ctx.parked = 0;
        if ctx.next == Rebuild::Clear {
            return;
        }
        let old = std::mem::replace(actor, ctx.build());
        if let Err(caught) = guarded(move || drop(old)) {
            tracing::error!(target: "actor", cause = %caught.cause, at = caught.location.as_deref(),
                "dropping the crashed state panicked too");
        }
    }

    /// Builds the actor of this generation; may panic.
    pub(crate) fn build(&mut self) -> A {
        self.during = "constructor";
        (self.factory)(self.generation)
    }

    pub(crate) fn next_generation(&mut self) {
        self.generation += 1;
        self.record().count.generation.store(self.generation, Relaxed);
        self.rng = generation_rng(&self.kernel, self.this.name(), self.generation);
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        self.this.record()
    }

    /// A new poll begins.
    pub(crate) fn open(&mut self, during: &'static str) {
        self.budget = POLL_BUDGET;
        self.during = during;
        self.subject = None;
    }

    /// One message or future less in this poll.
    pub(crate) fn spend(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }

    pub(crate) fn spent(&self) -> bool {
        self.budget == 0
    }

    /// Whether the actor takes no messages for a reason of its own.
    pub(crate) fn held(&self) -> bool {
        self.held > 0
    }

    /// What a crash in a future spawned now is blamed on: the message that spawned it.
    fn label(&self) -> &'static str {
        if self.during.is_empty() { IN_FUTURE } else { self.during }
    }

    pub(crate) fn during(&self) -> &'static str {
        self.during
    }

    /// Sets what is under work; gives what was before.
    pub(crate) fn set_during(&mut self, what: &'static str) -> &'static str {
        std::mem::replace(&mut self.during, what)
    }

    /// A callback that is no message: accounted as a turn.
    pub(crate) fn turn(&mut self, what: &'static str, f: impl FnOnce(&mut Self)) {
        self.spend();
        let before = self.set_during(what);
        let started = std::time::Instant::now();
        f(self);
        self.record().note_turn(what, started.elapsed());
        self.set_during(before);
    }
}

/// Only the mailbox's own channel carries messages; parts want a producer of some channel for `address()`, not used here.
fn fresh_parts<A: Managed>() -> ContextParts<A> {
    let (_, rx) = channel(0);
    ContextParts::new(Mailbox::new(rx).sender_producer())
}

fn generation_rng(kernel: &Kernel, name: &str, generation: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(crate::seed::derive(kernel.seed(), &[name.as_bytes(), &generation.to_le_bytes()]))
}
