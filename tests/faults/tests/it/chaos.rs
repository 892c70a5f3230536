//! Many faults at once: actors by chance, the runtime, the journal, whole groups, the daemon itself.

use fakes::runtime::{Fault, FaultKind};
use tokio::time::sleep;
use tonic::Code;

use crate::faulty::Round;
use crate::secs;

/// Three minutes in which any actor may crash or stall at any point, while pods come and go.
fn by_chance(seed: u64, rules: &'static str) {
    sim::log_to_stderr();
    actor::testing::run(seed, |kernel| async move {
        let mut round = Round::undisturbed(&kernel).await;
        round.node.fault(rules);
        for _ in 0..6 {
            round.stir();
            sleep(secs(30)).await;
            round.k += 1;
        }
        kernel.faults().clear();
        round.k -= 1;
        round.converge().await;
        sleep(secs(60)).await;
        let struck = kernel.faults().log().len();
        assert!(struck > 5, "only {struck} faults struck");
        assert!(kernel.health().is_ok(), "seed {seed}, {rules}: the root group gave up after {struck} faults");
        let fine = round.settled().and_then(|()| round.undisturbed_residents());
        fine.unwrap_or_else(|e| panic!("seed {seed}, {rules}: {e}\n{}", round.node.picture()));
    });
}

#[test]
fn panics_by_chance_cost_no_container() {
    for seed in 0..3 {
        by_chance(seed, "*: panic#p0.002");
    }
}

#[test]
fn kills_and_stalls_by_chance_cost_no_container() {
    for seed in 10..13 {
        by_chance(seed, "*: stall(7s)#p0.002; *: kill#p0.001");
    }
}

/// More crashes than a group's budget bears: its parent restarts the group as a whole.
#[test]
fn a_whole_group_that_is_restarted_costs_no_container() {
    for victim in ["status-manager", "runtime-client", "pod-manager"] {
        actor::testing::run(3, |kernel| async move {
            let round = Round::undisturbed(&kernel).await;
            round.node.world.runtime.forget_calls();
            round.stir();
            for _ in 0..12 {
                kernel.directory().kill(victim);
                sleep(secs(3)).await;
            }
            let generation = |name: &str| kernel.directory().get(name).unwrap().generation;
            assert!(generation("volume-manager") > 0 && generation("folder-source") > 0, "the group was not restarted");
            round.converge().await;
            sleep(secs(60)).await;
            round.verdict().unwrap_or_else(|e| panic!("{victim}: {e}\n{}", round.node.picture()));
        });
    }
}

#[test]
fn a_journal_that_cannot_be_written_costs_no_pod() {
    actor::testing::run(3, |kernel| async move {
        let mut round = Round::undisturbed(&kernel).await;
        round.node.world.journal.set_broken(true);
        round.case(None).await.unwrap();
        round.node.world.journal.set_broken(false);
        round.case(None).await.unwrap();
    });
}

/// The runtime fails, hangs, answers late and breaks connections; in the end everything is as it should be.
#[test]
fn a_runtime_in_trouble_delays_but_does_not_harm() {
    type Trouble = (&'static str, fn() -> Fault);
    let troubles: [Trouble; 9] = [
        ("lists fail", || Fault::error("ListContainers", Code::Unknown, "boom").times(30)),
        ("lists hang", || Fault::hang("ListPodSandbox").times(2)),
        ("statuses fail", || Fault::error("ContainerStatus", Code::Unknown, "boom").times(30)),
        ("statuses hang", || Fault::hang("ContainerStatus").times(2)),
        ("images hang", || Fault::hang("ImageStatus").times(1)),
        ("Status hangs", || Fault::hang("Status").times(3)),
        ("everything is slow", || Fault::delay("*", secs(3)).times(100)),
        ("connections break", || Fault::new("*", FaultKind::Disconnect).after(7).times(3)),
        ("everything fails", || Fault::error("*", Code::Unavailable, "gone").times(60)),
    ];
    for (what, trouble) in troubles {
        actor::testing::run(3, |kernel| async move {
            let round = Round::undisturbed(&kernel).await;
            round.node.world.runtime.inject(trouble());
            round.stir();
            sleep(secs(60)).await;
            round.node.world.runtime.clear_faults();
            round.converge().await;
            sleep(secs(60)).await;
            let fine = round.settled().and_then(|()| round.undisturbed_residents());
            fine.unwrap_or_else(|e| panic!("{what}: {e}\n{}", round.node.picture()));
        });
    }
}

#[test]
fn a_daemon_that_is_killed_again_and_again_while_pods_come_and_go_costs_no_container() {
    actor::testing::run(3, |kernel| async move {
        let mut round = Round::undisturbed(&kernel).await;
        for i in 0..12_u64 {
            round.stir();
            sleep(std::time::Duration::from_millis(41 * i * i)).await;
            round.node.restart().await;
            sleep(secs(20)).await;
            round.k += 1;
        }
        round.k -= 1;
        round.converge().await;
        sleep(secs(60)).await;
        let fine = round.settled().and_then(|()| round.undisturbed_residents());
        fine.unwrap_or_else(|e| panic!("{e}\n{}", round.node.picture()));
    });
}

/// A message that kills whoever handles it, each time: the rest of the node lives on.
#[test]
fn a_manager_that_always_dies_over_one_thing_takes_nobody_with_it() {
    let poisons = [
        "volume-manager: panic@mount",
        "cgroup-manager: panic@ensure",
        "image-manager: panic@inspect",
        "probe-manager: panic@probe.start",
        "runtime-client: panic@turn:CreateContainer",
        "runtime-client: panic@before-call",
        "status-manager: panic@decided",
        "pod-worker: panic@planned",
        "event-recorder: panic@judged",
    ];
    for rule in poisons {
        actor::testing::run(3, |kernel| async move {
            let round = Round::undisturbed(&kernel).await;
            round.node.fault(rule);
            round.stir();
            for i in 0..5 {
                round.node.put(&format!("more{i}.yaml"), &crate::simple(&format!("more{i}"), ""));
            }
            sleep(secs(300)).await;
            assert!(kernel.health().is_ok(), "{rule}: the root group gave up: {:#?}", kernel.faults().log().len());
            kernel.faults().clear();
            for i in 0..5 {
                round.node.remove(&format!("more{i}.yaml"));
            }
            round.converge().await;
            sleep(secs(60)).await;
            let fine = round.settled().and_then(|()| round.undisturbed_residents());
            fine.unwrap_or_else(|e| panic!("{rule}: {e}\n{}", round.node.picture()));
        });
    }
}
