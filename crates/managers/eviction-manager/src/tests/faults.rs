use actor::testing::run;
use contract::pod_manager::KillPod;
use contract::pod_worker::{WorkerPhase, WorkerState};

use super::rig::{GI, Rig, config, secs, threshold};

#[test]
fn a_death_at_any_point_evicts_the_pod_all_the_same_and_only_once() {
    for point in ["started", "look", "looked", "measure", "reclaim", "evict"] {
        for fault in ["panic", "kill", "stall(30s)"] {
            run(3, move |kernel| async move {
                kernel.faults().add_text(&format!("eviction-manager: {fault}@{point}#1")).expect("a rule");
                kernel.faults().enable();
                let rig = Rig::new(&kernel);
                rig.run_pod("a", 0, 10);
                rig.start(config(&[threshold("nodefs.available", "20Gi", secs(0))]));
                rig.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = 10 * GI);
                rig.pass(secs(60)).await;
                assert_eq!(kernel.faults().log().len(), 1, "{fault}@{point}");
                assert_eq!(rig.killed(), ["a"], "{fault}@{point}");
                assert_eq!(rig.conditions(), ["DiskPressure"], "{fault}@{point}");
            });
        }
    }
}

/// Its worker's row shows it only a moment later.
#[test]
fn a_death_after_an_order_was_given_ends_no_second_pod() {
    run(4, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 20);
        rig.run_pod("b", 0, 10);
        rig.pods.answer_later(|_: &KillPod| std::future::pending());
        let manager = rig.start(config(&[threshold("memory.available", "1Gi", secs(0))]));
        rig.memory_available(0);
        rig.pass(std::time::Duration::from_millis(50)).await;
        assert_eq!(rig.killed(), ["a"]);
        manager.kill();
        rig.pass(std::time::Duration::from_millis(500)).await;
        rig.wiring.put("a".into(), WorkerState { evicted: true, ..WorkerState::new(WorkerPhase::Terminating) });
        rig.pass(secs(8)).await;
        assert_eq!(rig.killed(), ["a"], "its end may be all that is needed");
    });
}
