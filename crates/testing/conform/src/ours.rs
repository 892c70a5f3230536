//! Our own managers, in this process.

use std::sync::Arc;

use contract::{Crew, ProbeManager, StatusManager};
use model::Timestamp;
use net_prober::Prober;

use crate::in_process::{Given, InProcess};
use crate::subject::Subject;

/// bosun's ProbeManager, which sends its probes over the real network.
#[must_use]
pub fn probes() -> Arc<dyn Subject<ProbeManager>> {
    let life = |given: &Given| {
        let config = probe_manager::Config::new(Timestamp(given.clock.unix_nanos()));
        let mut deps = probe_manager::Deps::new(Arc::new(Prober::new()));
        deps.journal = Some(given.journal.clone());
        move |crew: Crew<ProbeManager>| probe_manager::ProbeManager::new(crew, deps.clone(), config.clone())
    };
    Arc::new(InProcess::new("built in", life))
}

/// bosun's StatusManager.
#[must_use]
pub fn status() -> Arc<dyn Subject<StatusManager>> {
    let life = |given: &Given| {
        let journal = given.journal.clone();
        move |crew: Crew<StatusManager>| status_manager::StatusManager::new(crew).with_journal(journal.clone())
    };
    Arc::new(InProcess::new("built in", life))
}
