use actor::testing::run;
use contract::pod_manager::KillPod;
use contract::pod_worker::WorkerPhase;

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
                rig.disk_available(10 * GI);
                let before = counted("nodefs.available");
                rig.pass(secs(60)).await;
                assert_eq!(kernel.faults().log().len(), 1, "{fault}@{point}");
                assert_eq!(rig.killed(), ["a"], "{fault}@{point}");
                assert_eq!(rig.conditions(), ["DiskPressure"], "{fault}@{point}");
                assert_eq!((rig.told(), victim(&rig)), (1, Some("default/a".to_owned())), "{fault}@{point}");
                assert_eq!(counted("nodefs.available"), (before.0 + 1, before.1 + 1), "{fault}@{point}");
            });
        }
    }
}

/// `kubelet_evictions` and the number of `kubelet_eviction_stats_age_seconds`.
fn counted(signal: &str) -> (u64, u64) {
    let (evictions, ages) = (&metrics::eviction::EVICTIONS, &metrics::eviction::STATS_AGE);
    (evictions.with_label_values(&[signal]).get(), ages.with_label_values(&[signal]).get_sample_count())
}

fn victim(rig: &Rig) -> Option<String> {
    rig.view().victim.map(|victim| victim.pod)
}

/// The order was taken, and whoever gave it died before it heard so: the worker's row shows it only a moment later.
#[test]
fn a_death_after_an_order_was_given_ends_no_second_pod_and_the_first_is_told_and_counted_once() {
    for is_taken in [true, false] {
        run(4, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("a", 0, 20);
            rig.run_pod("b", 0, 10);
            rig.pods.answer_later(|_: &KillPod| std::future::pending());
            let manager = rig.start(config(&[threshold("memory.available", "1Gi", secs(0))]));
            rig.memory_available(0);
            let before = counted("memory.available");
            rig.pass(std::time::Duration::from_millis(50)).await;
            assert_eq!((rig.killed(), rig.told(), victim(&rig)), (vec!["a".to_owned()], 0, None));
            manager.kill();
            rig.pass(std::time::Duration::from_millis(500)).await;
            if is_taken {
                rig.comes_to("a", WorkerPhase::Terminating);
            }
            rig.pass(secs(4)).await;
            let (expected, times) = if is_taken { (Some("default/a".to_owned()), 1) } else { (None, 0) };
            assert_eq!((victim(&rig), rig.told()), (expected, times));
            assert_eq!(counted("memory.available"), (before.0 + times as u64, before.1 + times as u64));
            let killed = if is_taken { &["a"][..] } else { &["a", "a"] };
            assert_eq!(rig.killed(), killed, "its end may be all that is needed");
        });
    }
}

/// Deaths one after the other, at each of which the order is on the board and the victim is told of.
#[test]
fn a_victim_is_not_told_again_by_those_who_come_later() {
    run(4, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 20);
        rig.said.lock().unwrap().obedient = false;
        let manager = rig.start(config(&[threshold("memory.available", "1Gi", secs(0))]));
        rig.memory_available(0);
        let before = counted("memory.available");
        for _ in 0..3 {
            rig.pass(secs(2)).await;
            assert_eq!((victim(&rig), rig.told()), (Some("default/a".to_owned()), 1));
            manager.kill();
        }
        assert_eq!(counted("memory.available"), (before.0 + 1, before.1 + 1));
        assert_eq!(rig.view().ordered, None);
    });
}
