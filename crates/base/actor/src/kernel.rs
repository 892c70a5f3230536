//! The kernel: what all actors share.

use crate::blocking::{Blocking, Class, ClassInfo, Effects};
use crate::clock::Clock;
use crate::control::locked;
use crate::crash;
use crate::directory::Directory;
use crate::faults::{FaultHandle, Faults};
use crate::group::{Group, OnFatal, Policy};
use crate::poison::{SetAside, Told};
use crate::record::Record;
use crate::watchdog::{self, Blocked, Watchdog, Watched};
use arc_swap::ArcSwapOption;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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
    /// Patience with actors that do not say: see [`crate::Spec::stuck_after`].
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

/// Why a kernel is not healthy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unhealthy {
    /// The budget of the root group is used up, or an actor could not be built again.
    #[error("the supervisor has given up, {last} crashed last")]
    GivenUp {
        /// Actor or group.
        last: Arc<str>,
    },
    /// A turn holds its thread for half of what the watchdog bears.
    #[error("a turn of {} holds its thread for {} s ({})", .0.actor, .0.since.as_secs(), .0.message)]
    Blocked(Blocked),
    /// A class of blocking work on which the node rests finishes nothing.
    #[error("blocking work of the class {} does not come back, first of all that of {actor}", class.name())]
    StandsStill {
        /// Which.
        class: Class,
        /// Whose call is out for longest.
        actor: Arc<str>,
    },
}

/// Runs actors. Cheap to clone.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    config: KernelConfig,
    root: Group,
    watched: Arc<Watched>,
    faults: Faults,
    clock: Clock,
    next_id: AtomicU64,
    told: ArcSwapOption<Told>,
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
        crash::install_hook();
        let root = Group::root(config.root.clone(), config.on_fatal.clone());
        let clock = if config.simulated_time { Clock::simulated() } else { Clock::system() };
        let watched = Arc::new(Watched::new(Blocking::new(config.simulated_time, config.blocking_patience)));
        if let Some(config) = &config.watchdog {
            watchdog::start(config.clone(), Arc::downgrade(&watched));
        }
        Kernel(Arc::new(Inner {
            root,
            watched,
            faults: Faults::new(config.seed),
            clock,
            next_id: AtomicU64::new(0),
            told: ArcSwapOption::empty(),
            config,
        }))
    }

    /// The root of all groups.
    pub fn root(&self) -> &Group {
        &self.0.root
    }

    /// A group below the root.
    pub fn group(&self, name: &str, policy: Policy) -> Group {
        self.0.root.child(name, policy)
    }

    /// All living actors.
    pub fn directory(&self) -> &Directory {
        &self.0.watched.directory
    }

    /// Calls `told` each time something is set aside, in the crashed actor's own task: it must not block. One at a time.
    pub fn on_set_aside(&self, told: impl Fn(&SetAside) + Send + Sync + 'static) {
        self.0.told.store(Some(Arc::new(Box::new(told))));
    }

    pub(crate) fn report_set_aside(&self, what: &SetAside) {
        if let Some(told) = &*self.0.told.load() {
            told(what);
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

    /// Whether all is well enough to go on: what a service watchdog is fed on.
    ///
    /// # Errors
    /// What is not, the worst first.
    pub fn health(&self) -> Result<(), Unhealthy> {
        if let Some(last) = self.0.root.failed() {
            return Err(Unhealthy::GivenUp { last });
        }
        let watched = &self.0.watched;
        if let Some(turn) = locked(&watched.blocked).clone() {
            return Err(Unhealthy::Blocked(turn));
        }
        match watched.blocking.stands_still() {
            Some((class, actor)) => Err(Unhealthy::StandsStill { class, actor }),
            None => Ok(()),
        }
    }

    /// What each class of blocking work is at.
    pub fn blocking_classes(&self) -> Vec<ClassInfo> {
        self.0.watched.blocking.classes()
    }

    /// Waits, blocking this thread, until work on the journal and the host's files has come back, `limit` per class at most;
    /// whether it has. For the end of a process.
    pub fn settle_blocking(&self, limit: Duration) -> bool {
        self.0.watched.blocking.settle(limit)
    }

    /// Blocking work on behalf of `name`, for what is no actor.
    pub fn effects(&self, name: &str) -> Effects {
        let record =
            Record::new(self.next_id(), name.into(), self.0.root.path().clone(), 1, !self.0.config.simulated_time);
        Effects::new(self.0.watched.blocking.clone(), FaultHandle::new(self.0.faults.clone(), Arc::new(record)))
    }

    pub(crate) fn config(&self) -> &KernelConfig {
        &self.0.config
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Relaxed)
    }

    pub(crate) fn blocking(&self) -> &Blocking {
        &self.0.watched.blocking
    }

    pub(crate) fn seed(&self) -> u64 {
        self.0.config.seed
    }

    pub(crate) fn tick(&self) -> u64 {
        self.0.watched.tick.load(Relaxed)
    }
}
