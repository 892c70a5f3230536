//! Memory and all else are looked at apart, and nobody goes twice.

use std::path::Path;
use std::time::Duration;

use actor::testing::run;
use contract::image::RemoveUnusedImages;
use contract::pod_manager::KillPod;
use contract::pod_worker::{KillRequest, WorkerPhase};
use eviction::Threshold;
use fakes::files::FileTrouble;

use super::rig::{GI, Rig, config, ending, secs, threshold};
use crate::Config;

const MS: Duration = Duration::from_millis(1);

/// Of a disk and of memory.
fn both() -> [Threshold; 2] {
    [threshold("nodefs.available", "20Gi", secs(0)), threshold("memory.available", "1Gi", secs(0))]
}

#[test]
fn a_burst_of_memory_is_met_while_images_are_removed_slowly() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("greedy", 0, 900);
        rig.run_pod("modest", 0, 10);
        rig.images.answer_later(|_: &RemoveUnusedImages| async {
            tokio::time::sleep(secs(300)).await;
            Ok(1)
        });
        rig.start(config(&both()));
        rig.disk_available(10 * GI);
        rig.pass(secs(5)).await;
        assert_eq!((rig.reclaims(), rig.killed().len()), ((1, 1), 0), "images are being removed");
        rig.memory_available(0);
        rig.alarm.stall();
        rig.pass(MS).await;
        assert_eq!(rig.killed(), ["greedy"]);
        assert_eq!(rig.conditions(), ["MemoryPressure", "DiskPressure"]);
        rig.memory_available(4 * GI);
        rig.pass(secs(290)).await;
        assert_eq!((rig.reclaims(), rig.killed().len()), ((1, 1), 1), "no image is to go twice at a time");
        rig.pass(secs(10)).await;
        assert_eq!(rig.killed(), ["greedy", "modest"], "images were not enough");
    });
}

#[test]
fn memory_is_looked_at_while_a_disk_or_the_runtime_that_measures_pods_hangs() {
    for hangs in ["disk", "runtime"] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("a", 0, 900);
            let limited = serde_json::json!([{ "name": "tmp", "emptyDir": { "sizeLimit": "1Mi" } }]);
            rig.run("limited", serde_json::json!({ "spec": { "containers": [], "volumes": limited } }));
            rig.measure("limited", serde_json::json!({ "containers": [] }));
            match hangs {
                "disk" => rig.files.trouble(Path::new("/"), FileTrouble::Hang),
                _ => rig.said.lock().unwrap().full_hangs = true,
            }
            rig.start(config(&both()));
            rig.pass(secs(1)).await;
            rig.memory_available(0);
            rig.alarm.stall();
            rig.pass(MS).await;
            assert_eq!(rig.killed()[..1], ["a"], "{hangs}");
        });
    }
}

#[test]
fn a_burst_is_met_while_a_victim_of_a_disk_goes_unless_its_end_is_enough() {
    for (uses_mi, available, expected) in [(2000, GI / 2, 1), (300, GI / 2, 2), (2000, 0, 1)] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("of-disk", 0, uses_mi);
            rig.run_pod("other", 10, 100);
            rig.said.lock().unwrap().obedient = false;
            rig.start(config(&both()));
            rig.disk_available(10 * GI);
            rig.pass(secs(1)).await;
            assert_eq!(rig.killed(), ["of-disk"]);
            rig.memory_available(available);
            rig.alarm.stall();
            rig.pass(secs(2)).await;
            assert_eq!(rig.killed().len(), expected, "{uses_mi} Mi come free, {available} are left");
            rig.pass(secs(9)).await;
            assert_eq!(rig.killed().len(), 2, "who takes too long to end is not counted on");
            assert_eq!(rig.killed()[1], "other");
        });
    }
}

#[test]
fn nobody_goes_for_a_disk_while_memory_has_its_turn() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        for (uid, uses) in [("a", 900), ("b", 500), ("c", 100)] {
            rig.run_pod(uid, 0, uses);
        }
        rig.said.lock().unwrap().obedient = false;
        rig.start(config(&both()));
        rig.memory_available(0);
        rig.disk_available(10 * GI);
        rig.pass(secs(9)).await;
        assert_eq!((rig.killed(), rig.reclaims()), (vec!["a".to_owned()], (0, 0)), "one at a time, memory first");
        rig.comes_to("a", WorkerPhase::Finished);
        rig.pass(secs(1)).await;
        assert_eq!((rig.killed().len(), rig.reclaims()), (2, (0, 0)), "memory is still short");
        rig.memory_available(4 * GI);
        rig.comes_to("b", WorkerPhase::Finished);
        rig.pass(secs(1)).await;
        assert_eq!((rig.killed(), rig.reclaims()), (["a", "b", "c"].map(str::to_owned).to_vec(), (1, 1)));
        let met: Vec<_> = rig.events.lines().into_iter().filter(|line| line.contains("EvictionThresholdMet")).collect();
        let of = |resource| format!("Warning EvictionThresholdMet: Attempting to reclaim {resource}");
        assert_eq!(met, [of("memory"), of("memory"), of("ephemeral-storage")]);
    });
}

/// Whoever is to pass the order on takes its time, and the worker's row comes even later.
#[test]
fn a_pod_that_both_would_end_is_told_once() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("only", 0, 900);
        rig.pods.answer_later(|_: &KillPod| async {
            tokio::time::sleep(secs(3)).await;
            true
        });
        let limits = Config { local_storage: false, ..config(&both()) };
        rig.start(limits);
        rig.disk_available(10 * GI);
        rig.pass(secs(1)).await;
        rig.memory_available(0);
        rig.alarm.stall();
        rig.pass(Duration::from_millis(2500)).await;
        rig.comes_to("only", WorkerPhase::Terminating);
        rig.pass(secs(5)).await;
        assert_eq!((rig.killed().len(), rig.told()), (1, 1));
    });
}

#[test]
fn the_next_one_goes_as_soon_as_the_one_before_is_gone() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 900);
        rig.run_pod("b", 0, 100);
        rig.said.lock().unwrap().obedient = false;
        rig.start(config(&both()[1..]));
        rig.memory_available(0);
        rig.pass(secs(3) + 77 * MS).await;
        for phase in [WorkerPhase::Terminating, WorkerPhase::Terminated] {
            rig.comes_to("a", phase);
            rig.pass(secs(1)).await;
            assert_eq!(rig.killed(), ["a"], "its volumes are not gone yet");
        }
        rig.comes_to("a", WorkerPhase::Finished);
        rig.pass(eviction::SHORTEST - 2 * MS).await;
        assert_eq!(rig.killed(), ["a"]);
        rig.pass(MS).await;
        assert_eq!(rig.killed(), ["a", "b"], "the worker's word is enough");
    });
}

/// A pod that makes room for a critical one, or is over a limit of its own, is not what memory waits for.
#[test]
fn a_rebuilt_manager_has_memory_wait_for_victims_of_memory_alone() {
    let message = |resource| format!("The node was low on resource: {resource}. ");
    let table =
        [("Evicted", message("memory"), 0), ("Evicted", message("inodes"), 1), ("Preempting", String::new(), 1)];
    for (reason, message, expected) in table {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("ends", 0, 10);
            rig.run_pod("other", 0, 5);
            let reason = Some((reason.to_owned(), message));
            let request = KillRequest { evicted: true, reason, ..KillRequest::default() };
            rig.wiring.put("ends".into(), ending(WorkerPhase::Terminating, &request));
            rig.memory_available(0);
            rig.start(config(&both()));
            rig.pass(secs(5)).await;
            assert_eq!(rig.killed().len(), expected, "{request:?}");
        });
    }
}
