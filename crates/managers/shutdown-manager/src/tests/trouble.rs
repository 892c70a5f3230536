//! Deaths, and a login manager that is not there or does not do what it should.

use super::*;

#[test]
fn a_successor_goes_on_where_its_predecessor_died_and_the_lock_is_held_all_the_time() {
    run(11, |kernel| async move {
        let (rig, actor) = Rig::up(&kernel).await;
        rig.pod("usual", 0, 30);
        rig.pod("critical", 2_000_000_000, 30);
        rig.logind.say(true);
        until("the first group", || rig.told().len() == 1).await;
        tokio::time::sleep(secs(5)).await;
        let before = rig.board();
        actor.kill();
        rest().await;
        assert_eq!((rig.told().len(), rig.logind.held(), rig.logind.taken()), (1, 1, 1));
        assert_eq!((rig.board().started_at, rig.board().group_since), (before.started_at, before.group_since));
        tokio::time::sleep(secs(16)).await;
        assert_eq!(rig.told(), told(&[("usual", 20), ("critical", 10)]));
        until("released", || rig.logind.held() == 0).await;
        assert_eq!(rig.events.lines(), [BEGUN]);
    });
}

#[test]
fn a_death_at_any_point_ends_in_the_same() {
    for point in ["open", "news", "lock", "kill", "note", "release", "delay", "recall"] {
        for nth in [1, 2] {
            run(12, move |kernel| async move {
                kernel.faults().add_text(&format!("shutdown-manager: panic@{point}#{nth}")).expect("a rule");
                kernel.faults().enable();
                let rig = Rig::new(&kernel);
                rig.logind.grant(secs(5), secs(30));
                rig.start();
                until("the lock", || rig.logind.held() == 1).await;
                for (uid, priority) in [("usual", 0), ("critical", 2_000_000_000)] {
                    rig.pod(uid, priority, 3);
                }
                rig.logind.say(true);
                for (at, uid) in [(0, "usual"), (1, "critical")] {
                    until("told", || rig.told().iter().any(|(told, _)| told == uid)).await;
                    assert_eq!(rig.board().group, at, "{point}");
                    rig.worker(uid, WorkerPhase::Finished);
                }
                until("released", || rig.board().released).await;
                assert_eq!(rig.logind.held(), 0, "{point}");
                assert!(rig.file(STATE).is_some_and(|file| !file.contains("0001-01-01")), "{point}");
                assert_eq!(rig.events.lines(), [BEGUN], "{point}");
                rig.logind.say(false);
                until("the lock", || rig.logind.held() == 1).await;
                rest().await;
                assert_eq!((rig.logind.held(), &*rig.board()), (1, &Shutdown::default()), "{point}");
                assert!(nth > 1 || kernel.faults().log().len() == 1, "{point}");
            });
        }
    }
}

#[test]
fn a_daemon_that_comes_up_in_the_middle_of_a_shutdown_takes_part() {
    run(13, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.pod("usual", 0, 30);
        rig.logind.say(true);
        rig.start();
        tokio::time::sleep(secs(2)).await;
        rig.pod("critical", 2_000_000_000, 30);
        until("told", || rig.told() == told(&[("usual", 20)])).await;
        rig.worker("usual", WorkerPhase::Finished);
        until("the critical one too", || rig.told().len() == 2).await;
        rig.worker("critical", WorkerPhase::Finished);
        until("released", || rig.board().released).await;
        rig.pod("later", 0, 30);
        until("also one that is known later", || rig.told().len() == 3).await;
        // No lock is to be had any more; nobody fails over that.
        assert_eq!((rig.logind.taken(), rig.board().error.clone()), (0, None));
        rig.logind.say(false);
        until("the lock", || rig.logind.held() == 1).await;
    });
}

#[test]
fn a_cancellation_that_came_while_the_bus_was_away_is_seen() {
    run(14, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.pod("usual", 0, 30);
        rig.logind.say(true);
        until("told", || rig.told().len() == 1).await;
        rig.logind.set_away(true);
        rest().await;
        assert!(rig.board().shutting_down && rig.board().error.is_some());
        assert_eq!(rig.logind.held(), 1);
        rig.logind.say(false);
        rig.logind.set_away(false);
        until("seen", || !rig.board().shutting_down).await;
        until("another lock", || rig.logind.taken() == 2).await;
        until("the one before is released", || rig.logind.held() == 1).await;
        assert_eq!(rig.board().error, None);
    });
}

#[test]
fn a_bus_that_is_away_is_looked_for_with_longer_pauses() {
    run(15, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.logind.set_away(true);
        rig.start();
        tokio::time::sleep(secs(64)).await;
        // After 1, 2, 4 ... 32 s, and each minute then.
        assert_eq!(rig.logind.calls().len(), 7);
        assert!(rig.board().error.is_some());
        tokio::time::sleep(secs(60)).await;
        assert_eq!(rig.logind.calls().len(), 8);
        rig.logind.set_away(false);
        tokio::time::sleep(secs(60)).await;
        assert_eq!((rig.logind.held(), rig.board().error.clone()), (1, None));
        // A loss is no reason for a pause like that.
        rig.logind.set_away(true);
        rig.logind.set_away(false);
        tokio::time::sleep(secs(2)).await;
        assert_eq!((rig.logind.taken(), rig.logind.held()), (2, 1));
    });
}

#[test]
fn a_delay_that_stays_too_short_is_told_and_no_lock_is_taken() {
    run(16, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.logind.grant(secs(5), secs(10));
        rig.start();
        until("told", || rig.board().error.is_some()).await;
        let calls = rig.logind.calls();
        assert_eq!(calls.iter().filter(|call| **call == "longest_delay").count(), 6);
        assert_eq!(rig.board().error.as_deref(), Some("logind grants a delay of 10 s, 30 s are needed"));
        assert_eq!(rig.logind.taken(), 0);
    });
}

#[test]
fn a_pod_that_nobody_could_tell_is_told_again() {
    run(17, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.pod("usual", 0, 30);
        let mut first = true;
        rig.pods.answer(move |_: &KillPod| !std::mem::replace(&mut first, false));
        rig.logind.say(true);
        tokio::time::sleep(secs(3)).await;
        assert_eq!(rig.told(), told(&[("usual", 20), ("usual", 20)]));
    });
}

#[test]
fn a_disk_that_is_full_holds_no_shutdown_up() {
    run(18, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.files.remove_tree(Path::new("/root")).unwrap();
        rig.logind.say(true);
        until("released", || rig.logind.held() == 0).await;
        assert!(rig.board().released);
        assert_eq!(rig.file(STATE), None);
    });
}

/// Its worker died over it, and does not know.
#[test]
fn a_word_that_is_lost_with_the_worker_is_said_again() {
    run(13, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.pods.answer(|_: &KillPod| true);
        rig.pod("usual", 0, 30);
        rig.logind.say(true);
        until("the first word", || rig.told().len() == 1).await;
        tokio::time::sleep(secs(3)).await;
        assert_eq!(rig.told(), told(&[("usual", 20), ("usual", 20)]));
        hears(&rig.wiring, "usual", rig.pods.asked::<KillPod>().remove(0).request);
        tokio::time::sleep(secs(10)).await;
        assert_eq!(rig.told().len(), 2, "it knows");
    });
}
