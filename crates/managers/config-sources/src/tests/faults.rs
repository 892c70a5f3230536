//! Whatever dies, the set arrives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use actor::{Action, Class, Rule, When, testing};

use super::rig::{Rig, manifest, with_rig};

#[test]
fn a_crash_at_any_point_loses_nothing() {
    for point in ["started", "list", "read", "changes", "hand-over"] {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            with_rig(|rig| async move {
                let (actor, at) = ("folder-source".to_owned(), point.to_owned());
                rig.kernel.faults().add(Rule { actor, point: at, when: When::Nth(1), action: action.clone() });
                rig.write("a.yaml", manifest("a", "x:1"));
                let actor = rig.begin("").await;
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
    with_rig(|rig| async move {
        rig.write("a.yaml", manifest("a", "x:1"));
        let actor = rig.begin("").await;
        let (uid, sets) = (rig.sets.uid(), rig.sets.count());
        actor.kill();
        rig.work().await;
        assert_eq!(rig.sets.count(), sets + 1);
        assert_eq!(rig.sets.uid(), uid);
    });
}

#[test]
fn the_set_waits_for_a_pod_manager_that_is_away() {
    with_rig(|rig| async move {
        rig.sets.go_away();
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.begin("").await;
        assert!(!rig.view.get().delivered);
        assert_eq!(rig.sets.count(), 0);
        rig.sets.come_back();
        tokio::time::sleep(Duration::from_millis(200)).await;
        rig.work().await;
        assert_eq!(rig.set().len(), 1);
        assert!(rig.view.get().delivered);
    });
}

#[test]
fn a_set_that_crashed_its_taker_is_handed_over_again() {
    with_rig(|rig| async move {
        rig.sets.crash_at_next();
        rig.write("a.yaml", manifest("a", "x:1"));
        rig.start("");
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.work().await;
        assert_eq!(rig.set().len(), 1);
    });
}

#[test]
fn manifests_are_read_while_paths_of_users_hang() {
    testing::run_real(|kernel| async move {
        let rig = Rig::new(kernel.clone());
        rig.write("a.yaml", manifest("a", "x:1"));
        let (effects, begun) = (kernel.effects("users"), Arc::new(AtomicUsize::new(0)));
        let ends: Vec<mpsc::Sender<()>> = (0..9)
            .map(|_| {
                let (end, hangs) = mpsc::channel();
                let (effects, begun) = (effects.clone(), begun.clone());
                let call = move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    let _ended = hangs.recv();
                };
                tokio::task::spawn_local(async move { effects.blocking(Class::UserPaths, call).await });
                end
            })
            .collect();
        testing::spin_until("every thread hangs", || begun.load(Ordering::Relaxed) == 8).await;
        let _source = rig.start("");
        testing::spin_until("a set", || rig.sets.count() > 0).await;
        assert_eq!(rig.set(), ["default/a-node-a x:1"]);
        drop(ends);
    });
}
