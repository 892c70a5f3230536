//! What ShutdownManager is given.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::Timestamp;
use node_shutdown::Group;
use ports::host::HostFs;
use ports::logind::{DelayLock, Logind};
use tokio::time::Instant;

/// Pause after a loss of logind, as a kubelet has it; doubled up to a ceiling while nobody answers.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// What is configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// Groups of pods, lowest priority first; none: nothing is done, and nobody is asked for anything.
    pub groups: Vec<Group>,
    /// The root folder: `graceful_node_shutdown_state` is written there.
    pub root_dir: PathBuf,
    /// Where logind reads what it is told besides its own file.
    pub drop_in_dir: PathBuf,
    /// Beginning and end are written down and counted (the gate `GracefulNodeShutdownBasedOnPodPriority`).
    pub tells_times: bool,
}

/// What ShutdownManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Who shuts the machine down.
    pub logind: Arc<dyn Logind>,
    /// Files.
    pub fs: Arc<dyn HostFs>,
    /// The lock.
    pub hold: Hold,
    /// The group that has its turn.
    pub turn: Turn,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("shutdown_manager::Deps")
    }
}

/// The lock that holds a shutdown back. Made outside of the actor and given to each of its generations, so that the machine
/// does not go down because one of them died.
#[derive(Clone, Debug, Default)]
pub struct Hold(Arc<Mutex<Option<DelayLock>>>);

impl Hold {
    /// Keeps another lock; the one before it is released after that.
    pub(crate) fn keep(&self, lock: DelayLock) {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(lock);
        drop(before);
    }

    /// Whether there is one.
    pub(crate) fn is_held(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Lets the machine go down.
    pub(crate) fn release(&self) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }
}

/// When the group that has its turn got it, by a clock that nobody sets. Made outside of the actor and given to each of its
/// generations.
#[derive(Clone, Debug, Default)]
pub struct Turn(Arc<Mutex<Option<(Timestamp, Instant)>>>);

impl Turn {
    /// For how long the group has had its turn that is told to have it since then.
    pub(crate) fn lasts(&self, told_since: Timestamp, now: Instant) -> Duration {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((of, since)) if of == told_since => now.saturating_duration_since(since),
            _ => {
                *known = Some((told_since, now));
                Duration::ZERO
            }
        }
    }
}
