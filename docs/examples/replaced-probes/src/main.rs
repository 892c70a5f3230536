//! bosun with a ProbeManager of one's own, which runs no probe: every container that runs counts as healthy and ready.
//!
//! `docs/replace-a-manager.md` explains it. It is a member of the workspace, so that CI builds and tests it; its manifest takes
//! nothing from there, so that it builds anywhere.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use bosun::actor::{Actor, Ctx, Handler, supervised};
use bosun::contract::probe::{RetainProbes, StartProbes, StopProbes};

/// Runs no probe at all. It posts no row, so nobody waits for a verdict.
struct NoProbes;

impl Actor for NoProbes {
    type Context = Ctx<Self>;
}
supervised!(NoProbes);

impl Handler<StartProbes> for NoProbes {
    type Result = ();

    fn handle(&mut self, _: StartProbes, _: &mut Ctx<Self>) {}
}

impl Handler<StopProbes> for NoProbes {
    type Result = ();

    fn handle(&mut self, _: StopProbes, _: &mut Ctx<Self>) {}
}

impl Handler<RetainProbes> for NoProbes {
    type Result = ();

    fn handle(&mut self, _: RetainProbes, _: &mut Ctx<Self>) {}
}

fn main() -> ExitCode {
    bosun::cli::main_with(|node| node.probe_manager(|setup| setup.spawn(|_crew| NoProbes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bosun::actor::{Spec, testing};
    use bosun::contract::probe::PodProbes;
    use bosun::contract::{ProbeManager, Wiring};

    #[test]
    fn it_answers_whoever_asks_the_probe_manager() {
        testing::run(1, |kernel| async move {
            let wiring = Wiring::default();
            let probes = kernel.spawn(Spec::new("probe-manager"), |_generation| NoProbes);
            wiring.connect::<ProbeManager, _>(&probes);
            let stop = StopProbes { uid: "u".into(), keep_readiness: false };
            assert_eq!(wiring.ask(stop).await, Ok(()));
            assert!(wiring.board::<PodProbes>().snapshot().is_empty());
        });
    }
}
