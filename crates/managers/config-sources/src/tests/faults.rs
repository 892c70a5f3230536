//! Whatever dies, the set arrives.

use actor::{Action, Rule, When, testing};
use std::time::Duration;

use super::rig::{Rig, manifest};

fn rule(actor: &str, action: Action, point: &str, nth: u64) -> Rule {
    Rule { actor: actor.to_owned(), point: point.to_owned(), when: When::Nth(nth), action }
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    for point in ["started", "list", "read", "changes", "hand-over"] {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            testing::run(1, |kernel| async {
                let rig = Rig::new(kernel);
                rig.kernel.faults().add(rule("folder-source", action.clone(), point, 1));
                rig.write("a.yaml", manifest("a", "x:1"));
                let actor = rig.start("");
                rig.work().await;
                tokio::time::sleep(Duration::from_secs(5)).await;
                rig.write("b.yaml", manifest("b", "x:1"));
                rig.written("b.yaml").await;
                tokio::time::sleep(Duration::from_secs(5)).await;
                rig.work().await;
                assert_eq!(rig.kernel.faults().log().len(), 1, "{point} {action:?}");
                assert_eq!(rig.set().len(), 2, "{point} {action:?}");
                assert!(rig.view.get().delivered, "{point} {action:?}");
                let crashed = !matches!(action, Action::Stall(_));
                assert_eq!(actor.info().restarts > 0, crashed, "{point} {action:?}");
            });
        }
    }
}

#[test]
fn a_restarted_actor_hands_the_same_pods_over_again() {
    testing::run(1, |kernel| async {
        let rig = Rig::new(kernel);
        rig.write("a.yaml", manifest("a", "x:1"));
        let actor = rig.start("");
        rig.work().await;
        let (uid, sets) = (rig.uid(), rig.sets());
        actor.kill();
        rig.work().await;
        assert_eq!(rig.sets(), sets + 1);
        assert_eq!(rig.uid(), uid);
    });
}

#[test]
fn the_set_waits_for_a_pod_manager_that_is_away() {
    testing::run(1, |kernel| async {
        let rig = Rig::new(kernel);
        rig.wiring.inlet::<contract::pod_manager::SetPods>().disconnect();
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.start("");
        rig.work().await;
        assert!(!rig.view.get().delivered);
        assert_eq!(rig.sets(), 0);
        rig.wiring.inlet::<contract::pod_manager::SetPods>().connect(&rig.taker);
        tokio::time::sleep(Duration::from_millis(200)).await;
        rig.work().await;
        assert_eq!(rig.set().len(), 1);
        assert!(rig.view.get().delivered);
    });
}

#[test]
fn a_set_that_crashed_its_taker_is_handed_over_again() {
    testing::run(1, |kernel| async {
        let rig = Rig::new(kernel);
        rig.kernel.faults().add(rule("taker", Action::Panic, "turn:SetPods", 1));
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.start("");
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.work().await;
        assert_eq!(rig.set().len(), 1);
    });
}
