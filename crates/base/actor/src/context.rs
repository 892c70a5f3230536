//! The context that actors run in.

mod alarm;
mod later;
mod subject;
mod work;

use crate::blocking::Effects;
use crate::clock::Clock;
use crate::crash::guarded;
use crate::faults::FaultHandle;
use crate::group::Group;
use crate::kernel::Kernel;
use crate::poison::Subject;
use crate::record::Record;
use crate::reference::ActorRef;
use crate::turn::Turn;
use actix::dev::{AsyncContextParts, ContextParts, Mailbox, channel::channel};
use actix::{Actor, ActorContext, ActorState, Handler, Supervised};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::time::Instant;

pub(crate) use later::Later;

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

/// An actor type that the kernel can run; `supervised!` makes one.
pub trait Managed: Actor<Context = Ctx<Self>> + Supervised + Handler<Turn<Self>> {}
impl<A: Actor<Context = Ctx<A>> + Supervised + Handler<Turn<A>>> Managed for A {}

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
    /// Tells that are set aside, in the order in which they came.
    parked: BTreeMap<u64, Parked<A>>,
    /// Futures for which the mailbox is shut.
    held: u32,
    pub(crate) next: Rebuild,
}

/// A tell that waits. It belongs to the actor, not to one generation, as the mailbox does.
struct Parked<A: Managed> {
    label: &'static str,
    until: Instant,
    work: Work<A>,
}

type Work<A> = Box<dyn FnOnce(&mut A, &mut Ctx<A>)>;

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
            parked: BTreeMap::new(),
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

    /// Body of every `Supervised::restarting`. Called by `supervised!` only.
    #[doc(hidden)]
    pub fn rebuild(actor: &mut A, ctx: &mut Ctx<A>) {
        // Fresh parts: a cancellation that the crashed poll asked for must not hit a future of the next generation.
        ctx.parts = fresh_parts();
        ctx.held = 0;
        if ctx.next == Rebuild::Clear {
            return;
        }
        let old = std::mem::replace(actor, ctx.build());
        ctx.await_all_parked();
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

    /// Tells that are set aside.
    pub(crate) fn parked(&self) -> usize {
        self.parked.len()
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
        let began = self.record().begin();
        f(self);
        self.record().note_turn(what, began);
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
