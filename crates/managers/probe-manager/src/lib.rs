//! **Charter.** ProbeManager: runs liveness, readiness and startup probes and publishes what they add up to.
//!
//! **Owns.** Which probes exist, when each is due (one timer for all), their thresholds, the slots in which probes run.
//! **Asks and views.** RuntimeClient (exec), EventRecorder; the network through [`ports::probe::NetProber`]; reads the status
//! board for container ids, `started` and pod addresses; posts [`contract::probe::PodProbes`] rows.
//! **Never.** Restarts or judges a container: a failed liveness probe is a verdict that the pod's worker reads. Never blocks a
//! turn on a probe.
//! **Lost on restart and how it is recovered.** Pods come back from the intake ([`Deps`]), verdicts from the probe board; counts below a threshold start anew, running probes are repeated. Over a death of the daemon verdicts come
//! back from the journal, so that no pod turns unready for it.
//! **Read next.** `probe_schedule::Worker` and its tests (pod-lifecycle 8.2, row by row), then `actor.rs`.

#![forbid(unsafe_code)]

mod actor;
mod effects;
mod entry;
mod journal;
mod measure;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::core::Pod;
use model::{PodUid, Timestamp};
use ports::journal::Journal;
use ports::probe::NetProber;

pub use crate::actor::ProbeManager;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// When the daemon started (wall clock): older containers keep what they had.
    pub daemon_started: Timestamp,
    /// `kube-probe/<major>.<minor>`.
    pub user_agent: String,
    /// Probes that may run at the same time; further ones queue.
    pub max_running: usize,
}

impl Config {
    /// What a node uses.
    #[must_use]
    pub fn new(daemon_started: Timestamp) -> Self {
        Self { daemon_started, user_agent: "kube-probe/1.36".to_owned(), max_running: 128 }
    }
}

/// What the manager works with. Clone it into the factory: the intake must be the same in every generation.
#[derive(Clone)]
pub struct Deps {
    /// HTTP, TCP and gRPC probes.
    pub net: Arc<dyn NetProber>,
    /// Where verdicts outlive the daemon; `None`: they do not.
    pub journal: Option<Arc<dyn Journal>>,
    /// Pods under probe, for the next generation of this actor.
    intake: Arc<Mutex<BTreeMap<PodUid, Known>>>,
}

/// A pod under probe.
#[derive(Clone)]
struct Known {
    pod: Arc<Pod>,
    /// It began to end: of its regular containers only readiness is probed.
    is_ending: bool,
}

impl Deps {
    /// Without a journal.
    #[must_use]
    pub fn new(net: Arc<dyn NetProber>) -> Self {
        Self { net, journal: None, intake: Arc::default() }
    }

    fn intake(&self) -> MutexGuard<'_, BTreeMap<PodUid, Known>> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
