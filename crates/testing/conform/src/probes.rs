//! The contract of ProbeManager: `contract::probe`, and the rules of pod-lifecycle 8.1 to 8.5.
//!
//! Probes are commands in containers, which the manager has the runtime run: a command's first word says whose probe it is, and a
//! script what comes of it. Probes over the network go to listeners of the case.

mod bed;
mod calls;
mod commands;
mod faults;
mod instances;
mod network;
mod thresholds;
mod timing;

use contract::ProbeManager;

use crate::case::Case;

/// All cases of the role.
#[must_use]
pub fn cases() -> Vec<Case<ProbeManager>> {
    [
        calls::cases(),
        thresholds::cases(),
        timing::cases(),
        instances::cases(),
        commands::cases(),
        faults::cases(),
        network::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
