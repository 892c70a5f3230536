//! The kernel: where actors are born.

use crate::blocking::{Blocking, ClassInfo, Effects};
use crate::clock::Clock;
use crate::context::Ctx;
use crate::directory::Directory;
use crate::faults::{FaultHandle, Faults};
use crate::group::{Group, OnFatal, Policy};
use crate::place::Place;
use crate::poison::{SetAside, Subject, Subjects};
use crate::record::Record;
use crate::reference::{ActorRef, Managed};
use crate::supervise::{self, Supervisee};
use crate::watchdog::{self, Watchdog};
use actix::Addr;
use actix::dev::{Mailbox, channel::channel};
use arc_swap::ArcSwapOption;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How a kernel behaves.
#[derive(Clone)]
pub struct KernelConfig {
    /// Source of all randomness: the same seed gives the same run in simulated time.
    pub seed: u64,
    /// Wall time starts at a fixed moment and follows tokio's paused clock.
    pub simulated_time: bool,
    /// Rules of the root group.
    pub root: Policy,
    /// Called once, with the name of the last to crash, when the budget of the root is exhausted.
    pub on_fatal: Option<OnFatal>,
    /// Thread that finds blocked arbiters; needs real time.
    pub watchdog: Option<Watchdog>,
    /// Mailbox capacity of actors that do not say.
    pub mailbox: usize,
    /// Patience with actors that do not say: see [`Spec::stuck_after`].
    pub stuck_after: Duration,
    /// Patience with blocking work, `None` for a minute. Work that is not back then is told of; a class on which the node
    /// rests that finishes nothing for so long makes the kernel unhealthy.
    pub blocking_patience: Option<Duration>,
}

impl Default for KernelConfig {
    fn default() -> Self {
        KernelConfig {
            seed: 0,
            simulated_time: false,
            root: Policy::default(),
            on_fatal: None,
            watchdog: None,
            mailbox: 256,
            stuck_after: Duration::from_secs(30),
            blocking_patience: None,
        }
    }
}

/// Birth certificate of an actor.
#[derive(Debug)]
pub struct Spec {
    name: Arc<str>,
    group: Option<Group>,
    place: Place,
    mailbox: Option<usize>,
    stuck_after: Option<Duration>,
}

impl Spec {
    /// An actor of that name, in the root group, on this thread.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Spec { name: name.into(), group: None, place: Place::Here, mailbox: None, stuck_after: None }
    }

    /// Puts it under another group than the root.
    #[must_use]
    pub fn group(mut self, group: &Group) -> Self {
        self.group = Some(group.clone());
        self
    }

    /// Puts it on another thread.
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// How many messages may be queued (at least 1).
    #[must_use]
    pub fn mailbox(mut self, capacity: usize) -> Self {
        self.mailbox = Some(capacity.max(1));
        self
    }

    /// With messages queued, and no turn for that long, it is treated as crashed.
    #[must_use]
    pub fn stuck_after(mut self, patience: Duration) -> Self {
        self.stuck_after = Some(patience);
        self
    }
}

/// Runs actors. Cheap to clone.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

pub(crate) struct Inner {
    config: KernelConfig,
    root: Group,
    pub(crate) directory: Directory,
    pub(crate) blocking: Blocking,
    faults: Faults,
    clock: Clock,
    next_id: AtomicU64,
    /// Counts the rounds of the watchdog.
    pub(crate) tick: AtomicU64,
    pub(crate) blocked: AtomicBool,
    subjects: ArcSwapOption<Subjects>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("seed", &self.0.config.seed).finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel without actors. Installs the panic hook of the process, once: panics of actors are reported by their
    /// supervisor, all others as before. With simulated time, call it inside of the paused runtime.
    pub fn new(config: KernelConfig) -> Kernel {
        supervise::install_hook();
        let root = Group::root(config.root.clone(), config.on_fatal.clone());
        let clock = if config.simulated_time { Clock::simulated() } else { Clock::system() };
        let blocking = Blocking::new(config.simulated_time, config.blocking_patience);
        let inner = Arc::new(Inner {
            root,
            directory: Directory::new(blocking.clone()),
            blocking,
            faults: Faults::new(config.seed),
            clock,
            next_id: AtomicU64::new(0),
            tick: AtomicU64::new(0),
            blocked: AtomicBool::new(false),
            subjects: ArcSwapOption::empty(),
            config,
        });
        if let Some(watch) = &inner.config.watchdog {
            watchdog::start(watch.clone(), Arc::downgrade(&inner));
        }
        Kernel(inner)
    }

    /// The root of all groups.
    pub fn root(&self) -> &Group {
        &self.0.root
    }

    /// A group below the root.
    pub fn group(&self, name: &str, policy: Policy) -> Group {
        self.0.root.child(name, policy)
    }

    /// Starts an actor. `factory` builds generation 0 in the actor's own first turn, and each later one after a crash;
    /// it runs before the former state is dropped, so take exclusive things (sockets, locks) in `started`, not here.
    /// The actor lives until it is stopped.
    ///
    /// # Panics
    /// With [`Place::Here`] outside of a `LocalSet`.
    pub fn spawn<A: Managed>(&self, spec: Spec, factory: impl FnMut(u64) -> A + Send + 'static) -> ActorRef<A> {
        let group = spec.group.unwrap_or_else(|| self.0.root.clone());
        let capacity = spec.mailbox.unwrap_or(self.0.config.mailbox).max(1);
        let stuck_after = spec.stuck_after.unwrap_or(self.0.config.stuck_after);
        let id = self.0.next_id.fetch_add(1, Relaxed);
        let record = Arc::new(Record::new(id, spec.name, group.path().clone(), capacity));
        self.0.directory.add(record.clone());
        group.join(&record);
        // Capacity 0 is "unbounded" to actix: the record's semaphore is the bound.
        let (tx, rx) = channel(0);
        let this = ActorRef::new(Addr::new(tx), record.clone());
        let (kernel, address) = (self.clone(), this.clone());
        let birth = move || {
            let mailbox = Mailbox::new(rx);
            let ctx = Ctx::new(kernel, group, address, Box::new(factory));
            Supervisee::new(ctx, mailbox, stuck_after)
        };
        match spec.place {
            Place::Here => {
                tokio::task::spawn_local(birth());
            }
            Place::On(arbiter) => {
                let sent = arbiter.spawn_fn(move || {
                    tokio::task::spawn_local(birth());
                });
                if !sent {
                    tracing::error!(target: "actor", actor = %record.name, "arbiter is gone, actor not started");
                    self.0.directory.remove(id);
                    record.set_phase(crate::ActorPhase::Gone);
                    self.0.root.give_up(&record.name);
                }
            }
        }
        this
    }

    /// All living actors.
    pub fn directory(&self) -> &Directory {
        &self.0.directory
    }

    /// Says whom messages are for, before actors are spawned: without it a crash is blamed on nobody.
    pub fn know_subjects(&self, subjects: Subjects) {
        self.0.subjects.store(Some(Arc::new(subjects)));
    }

    pub(crate) fn subject_of(&self, message: &dyn Any) -> Option<Subject> {
        self.0.subjects.load().as_ref().and_then(|s| (s.of)(message))
    }

    pub(crate) fn tell_set_aside(&self, what: &SetAside) {
        if let Some(subjects) = &*self.0.subjects.load() {
            (subjects.told)(what);
        }
    }

    /// The fault plan.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The clock of all actors.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// False once the root group has given up or an actor was lost, while a turn has held its thread for half of what the
    /// watchdog bears, and while the journal or the host's files finish nothing: what a service watchdog is fed on.
    pub fn is_healthy(&self) -> bool {
        !self.0.root.failed() && !self.0.blocked.load(Relaxed) && self.0.blocking.is_healthy()
    }

    /// What each class of blocking work is at.
    pub fn blocking_classes(&self) -> Vec<ClassInfo> {
        self.0.blocking.classes()
    }

    /// Waits, blocking this thread, until work on the journal and the host's files has come back, `limit` per class at most;
    /// whether it has. For the end of a process.
    pub fn settle_blocking(&self, limit: Duration) -> bool {
        self.0.blocking.settle(limit)
    }

    /// Blocking work on behalf of `name`, for what is no actor.
    pub fn effects(&self, name: &str) -> Effects {
        let record = Record::new(self.0.next_id.fetch_add(1, Relaxed), name.into(), self.0.root.path().clone(), 1);
        Effects::new(self.0.blocking.clone(), FaultHandle::new(self.0.faults.clone(), Arc::new(record)))
    }

    pub(crate) fn blocking(&self) -> &Blocking {
        &self.0.blocking
    }

    pub(crate) fn seed(&self) -> u64 {
        self.0.config.seed
    }

    pub(crate) fn tick(&self) -> u64 {
        self.0.tick.load(Relaxed)
    }
}
