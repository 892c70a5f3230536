use actor::testing::run;
use std::sync::Arc;
use std::time::Duration;

use super::rig::{GI, Rig, config, secs, threshold};
use crate::Config;

fn memory() -> Config {
    config(&[threshold("memory.available", "1Gi", secs(0))])
}

#[test]
fn a_stall_is_followed_by_a_look_at_once() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run_pod("a", 0, 10);
        rig.start(memory());
        rig.pass(secs(2)).await;
        rig.memory_available(0);
        rig.pass(secs(2)).await;
        assert!(rig.killed().is_empty(), "nobody has looked yet");
        rig.alarm.stall();
        rig.pass(Duration::from_millis(1)).await;
        assert_eq!(rig.killed(), ["a"]);
    });
}

#[test]
fn memory_that_falls_fast_is_looked_at_sooner() {
    for (early, expected) in [(true, 1), (false, 0)] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.run_pod("a", 0, 10);
            rig.start(Config { early_looks: early, ..memory() });
            rig.pass(secs(1)).await;
            rig.memory_available(2 * GI);
            // The look at 10 s saw 5 Gi go; by then a Gi is left, and so the next one is a second later.
            rig.pass(Duration::from_millis(9500)).await;
            rig.memory_available(0);
            rig.pass(secs(2)).await;
            assert_eq!(rig.killed().len(), expected);
        });
    }
}

#[test]
fn without_the_kernels_word_it_looks_every_second_or_as_a_kubelet() {
    for (early, memcg, expected) in [(true, false, 1), (true, true, 1), (false, true, 0)] {
        run(1, move |kernel| async move {
            let rig = Rig::new(&kernel);
            rig.alarm.refuse();
            rig.run_pod("a", 0, 10);
            rig.start(Config { early_looks: early, memcg_notification: memcg, ..memory() });
            rig.pass(Duration::from_millis(100)).await;
            rig.memory_available(0);
            rig.pass(Duration::from_millis(1200)).await;
            assert_eq!(rig.killed().len(), expected, "{early} {memcg}");
            rig.pass(secs(10)).await;
            assert_eq!(rig.killed(), ["a"]);
        });
    }
}

/// A cgroup that is made anew, or a daemon that has too many files open, is no kernel without notifications.
#[test]
fn a_notification_that_cannot_be_set_is_tried_again() {
    for (error, expected) in [(std::io::ErrorKind::NotFound, 1), (std::io::ErrorKind::Unsupported, 0)] {
        run(1, move |kernel| async move {
            let mut rig = Rig::new(&kernel);
            let dir = tempfile::tempdir().unwrap();
            let tree = fakes::stats::StatsTree::new(dir.path(), fakes::stats::Cgroups::V1);
            rig.counters = Some(Arc::new(tree.source()));
            rig.alarm.fail_with(Some(error));
            rig.start(Config { memcg_notification: true, early_looks: false, ..memory() });
            rig.pass(secs(15)).await;
            assert_eq!(rig.alarm.orders().len(), 0);
            rig.alarm.fail_with(None);
            rig.pass(secs(15)).await;
            assert_eq!(rig.alarm.orders().len(), expected, "{error}");
        });
    }
}

/// The kernel makes a thread for a trigger, and may wait for memory itself.
#[test]
fn an_alarm_that_hangs_while_it_is_set_holds_up_nobody() {
    for memcg in [false, true] {
        run(1, move |kernel| async move {
            let mut rig = Rig::new(&kernel);
            let dir = tempfile::tempdir().unwrap();
            let tree = fakes::stats::StatsTree::new(dir.path(), fakes::stats::Cgroups::V1);
            rig.counters = Some(Arc::new(tree.source()));
            rig.alarm.hang();
            rig.run_pod("a", 0, 10);
            rig.start(Config { memcg_notification: memcg, early_looks: !memcg, ..memory() });
            rig.pass(secs(25)).await;
            rig.machine.change(|m| m.memory.as_mut().unwrap().total_bytes = GI - 1);
            rig.pass(secs(11)).await;
            assert_eq!(rig.killed(), ["a"], "{memcg}");
        });
    }
}
