use actor::testing::run;

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
