//! The contract of ProbeManager: `contract::probe`, and chapter 8 of pod-lifecycle.
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

use crate::case::{Case, Outcome};
use bed::Bed;

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

/// A case that begins with a manager that has nothing to do.
fn case<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<ProbeManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    Case::new(name, source, rule, move |stage| {
        let play = play.clone();
        async move {
            let bed = Bed::on(stage);
            bed.stage.begin().await?;
            play(bed).await
        }
    })
}
