//! Shutdowns as they should be.

use super::*;

/// Edge 119.
#[test]
fn groups_end_in_the_order_of_their_priority_and_then_the_machine_may_go() {
    run(1, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.pod("usual", 0, 30);
        rig.pod("quick", 100, 5);
        rig.pod("critical", 2_000_001_000, 30);
        rest().await;
        assert_eq!((rig.told(), rig.board().shutting_down), (vec![], false));
        rig.logind.say(true);
        until("the first group", || rig.told().len() == 2).await;
        rest().await;
        assert_eq!(rig.told(), told(&[("quick", 5), ("usual", 20)]));
        assert_eq!(rig.events.lines(), [BEGUN]);
        assert!(rig.board().shutting_down && !rig.board().released);
        let request = rig.pods.asked::<KillPod>().remove(0).request;
        let text = "Pod was terminated in response to imminent node shutdown.";
        assert_eq!(request.reason, Some(("Terminated".to_owned(), text.to_owned())));
        assert_eq!((request.evicted, request.deleted), (false, false));
        assert!(rig.file(STATE).is_some_and(|file| file.contains(r#""endTime":"0001-01-01T00:00:00Z""#)));
        // Containers are gone, volumes are not yet.
        rig.worker("usual", WorkerPhase::Terminated);
        rig.worker("quick", WorkerPhase::Finished);
        rest().await;
        assert_eq!((rig.told().len(), rig.logind.held()), (2, 1));
        rig.worker("usual", WorkerPhase::Finished);
        until("the second group", || rig.told().len() == 3).await;
        assert_eq!(rig.told()[2], ("critical".to_owned(), 10));
        rest().await;
        assert_eq!((rig.board().group, rig.logind.held()), (1, 1));
        rig.worker("critical", WorkerPhase::Finished);
        until("the lock is released", || rig.logind.held() == 0).await;
        rest().await;
        assert!(rig.board().released && rig.board().shutting_down);
        assert!(rig.file(STATE).is_some_and(|file| !file.contains("0001-01-01")));
        assert_eq!((rig.events.lines().len(), rig.told().len()), (1, 3));
    });
}

#[test]
fn a_node_without_pods_holds_nobody_up() {
    run(2, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        // One that ended by itself, one that was refused.
        rig.pod("done", 0, 30);
        rig.worker("done", WorkerPhase::Finished);
        fakes::desire(&rig.wiring, fakes::pod("refused", json!({})), Source::Api);
        let before = kernel.clock().now();
        rig.logind.say(true);
        until("released", || rig.logind.held() == 0).await;
        assert!(kernel.clock().now() - before < secs(1));
        assert_eq!(rig.told(), []);
    });
}

#[test]
fn a_group_whose_time_is_over_is_not_waited_for() {
    run(3, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.pod("stuck", 0, 600);
        rig.pod("critical", 2_000_000_000, 600);
        let before = kernel.clock().now();
        rig.logind.say(true);
        until("the first", || rig.told() == told(&[("stuck", 20)])).await;
        tokio::time::sleep(secs(19)).await;
        assert_eq!(rig.told().len(), 1);
        tokio::time::sleep(secs(2)).await;
        assert_eq!(rig.told(), told(&[("stuck", 20), ("critical", 10)]));
        until("released", || rig.logind.held() == 0).await;
        let took = kernel.clock().now() - before;
        assert!(took >= secs(30) && took < secs(31), "{took:?}");
    });
}

/// Edge 120.
#[test]
fn a_shutdown_that_is_cancelled_leaves_later_groups_alone_and_the_next_one_is_held_back_again() {
    run(4, |kernel| async move {
        let (rig, _) = Rig::up(&kernel).await;
        rig.pod("usual", 0, 30);
        rig.pod("critical", 2_000_000_000, 30);
        rig.logind.say(true);
        until("the first group", || rig.told().len() == 1).await;
        rig.logind.say(false);
        until("another lock", || rig.logind.taken() == 2).await;
        rig.worker("usual", WorkerPhase::Finished);
        tokio::time::sleep(secs(60)).await;
        assert_eq!((rig.told().len(), rig.logind.held(), &*rig.board()), (1, 1, &Shutdown::default()));
        assert_eq!(rig.events.lines(), [BEGUN, CANCELLED]);
        rig.logind.say(true);
        until("the second group", || rig.told().len() == 2).await;
        rig.worker("critical", WorkerPhase::Finished);
        until("released", || rig.logind.held() == 0).await;
        // Also one that is cancelled after all pods are gone.
        rig.logind.say(false);
        until("another lock", || rig.logind.held() == 1).await;
        assert_eq!(*rig.board(), Shutdown::default());
        assert_eq!(rig.events.lines(), [BEGUN, CANCELLED, BEGUN, CANCELLED]);
    });
}

#[test]
fn nothing_configured_means_that_nobody_is_asked_for_anything() {
    run(5, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.groups.clear();
        rig.start();
        rig.pod("usual", 0, 30);
        rig.logind.say(true);
        rest().await;
        assert_eq!(rig.logind.calls(), [] as [&str; 0]);
        assert_eq!((rig.told(), &*rig.board()), (vec![], &Shutdown::default()));
    });
}

#[test]
fn a_delay_that_is_too_short_is_asked_for() {
    run(6, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.logind.grant(secs(5), secs(30));
        rig.start();
        until("the lock", || rig.logind.held() == 1).await;
        let calls = ["longest_delay", "reload", "longest_delay", "follow", "hold_back"];
        assert_eq!(rig.logind.calls(), calls);
        let text = "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n";
        assert_eq!(rig.file(DROP_IN).as_deref(), Some(text));
        assert_eq!(rig.board().error, None);
    });
}

#[test]
fn times_of_an_earlier_daemon_are_counted() {
    run(7, |kernel| async move {
        let rig = Rig::new(&kernel);
        let text = br#"{"startTime":"2026-11-23T15:00:00Z","endTime":"2026-11-23T15:00:30+00:00"}"#;
        rig.files.write_file(Path::new(STATE), text, 0o644).unwrap();
        rig.start();
        until("the end", || metrics::node::SHUTDOWN_END.get() > 0.0).await;
        let (start, end) = (metrics::node::SHUTDOWN_START.get(), metrics::node::SHUTDOWN_END.get());
        assert_eq!(end - start, 30.0);
    });
}
