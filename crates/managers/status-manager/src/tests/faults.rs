//! Whatever dies, the API server hears the truth, and nobody is deleted who should not be.

use std::time::Duration;

use actor::{Action, Rule, When, testing};
use contract::pod_worker::WorkerPhase;
use model::core::Pod;
use ports::api::ApiError;

use super::rig::{Rig, condition, exit_code, status};

#[test]
fn a_crash_at_any_point_of_a_pods_life_heals() {
    let points = ["started", "before patch", "after patch", "before delete", "after delete", "concluded", "looked"];
    for point in points {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            for nth in [1, 3] {
                life(point, &action, nth);
            }
        }
    }
}

fn life(point: &str, action: &Action, nth: u64) {
    testing::run(1, |kernel| async move {
        let rule = Rule {
            actor: "status-syncer".to_owned(),
            point: point.to_owned(),
            when: When::Nth(nth),
            action: action.clone(),
        };
        kernel.faults().add(rule);
        let what = format!("{action:?} at {point} #{nth}");
        let rig = Rig::new(&kernel);
        let (a, b) = (rig.create("a").await, rig.create("b").await);
        for p in [&a, &b] {
            rig.worker(p, WorkerPhase::Syncing);
            rig.set(p, status("Pending")).await;
            rig.set(p, status("Ready")).await;
        }
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!(condition(&rig.told("a"), "Ready"), "True", "{what}");
        assert_eq!(condition(&rig.told("b"), "Ready"), "True", "{what}");
        rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
        rig.work().await;
        rig.worker(&a, WorkerPhase::Terminating);
        rig.set(&a, status("Failed 3")).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!((rig.phase("a").as_str(), exit_code(&rig.told("a"))), ("Running", Some(3)), "{what}");
        rig.worker(&a, WorkerPhase::Terminated);
        rig.terminate(&a).await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert!(rig.stored("a").is_none(), "{what}");
        assert_eq!(condition(&rig.told("b"), "Ready"), "True", "{what}");
        let requests = rig.requests();
        let count = |r: &str| requests.iter().filter(|s| *s == r).count();
        assert!(count("DELETE a") <= 2 && count("DELETE b") == 0, "{what}: {requests:?}");
        assert!(count("PATCH b") <= 3 && count("PATCH a") <= 5, "{what}: {requests:?}");
        assert!(nth > 1 || kernel.faults().log().len() == 1, "{what}: never struck");
        // Housekeeping, as PodManager does it.
        let known = [model::pod::uid(&b)].into();
        let retain = contract::status::RetainPodStatuses { known };
        rig.wiring.ask(retain).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(rig.lines().is_empty(), "{what}: {:?}", rig.lines());
    });
}

/// How the steps of an end fall among requests that are under way.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// Each request takes so long.
    answer_ms: u64,
    /// Between: running and deleted, deleted and ended, ended and stopped, stopped and finished.
    gaps_ms: [u64; 4],
}

#[test]
fn however_the_steps_of_an_end_fall_the_object_goes() {
    let text = "unable to find api field in struct PodStatus for the json field \"hostIPs\"";
    let refusals = [
        None,
        Some(ApiError::status(500, "", text)),
        Some(ApiError::status(409, "Conflict", "the object has been modified")),
        Some(ApiError::status(503, "", "busy")),
        Some(ApiError::Unreachable { message: "connection reset".into() }),
    ];
    let gaps = [0, 2, 20];
    for refusal in refusals {
        for answer_ms in [0, 3, 30] {
            for n in 0..gaps.len().pow(4) {
                let gaps_ms = [0, 1, 2, 3].map(|place| gaps[n / gaps.len().pow(place) % gaps.len()]);
                end(refusal.clone(), Timing { answer_ms, gaps_ms });
            }
        }
    }
}

fn end(refusal: Option<ApiError>, timing: Timing) {
    testing::run(1, |kernel| async move {
        let gap = |place: usize| tokio::time::sleep(Duration::from_millis(timing.gaps_ms[place]));
        let rig = Rig::new(&kernel);
        let a = rig.syncing("a").await;
        if timing.answer_ms > 0 {
            for point in ["before patch", "after patch", "before delete", "after delete"] {
                kernel.faults().add_text(&format!("status-syncer: stall({}ms)@{point}", timing.answer_ms)).unwrap();
            }
        }
        if let Some(refusal) = &refusal {
            rig.api.fail("PATCH", "", 1, refusal.clone());
            rig.api.fail("DELETE", "", 1, refusal.clone());
        }
        let with_ips = |short: &str| {
            let mut status = status(short);
            status.host_ips = Some(vec![model::core::HostIP { ip: "192.0.2.1".into() }]);
            status
        };
        rig.set(&a, with_ips("Ready")).await;
        gap(0).await;
        rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
        gap(1).await;
        rig.worker(&a, WorkerPhase::Terminating);
        rig.set(&a, with_ips("Failed 3")).await;
        gap(2).await;
        rig.worker(&a, WorkerPhase::Terminated);
        gap(3).await;
        rig.terminate(&a).await;
        rig.worker(&a, WorkerPhase::Finished);
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert!(rig.stored("a").is_none(), "{timing:?} {refusal:?}: {:?}", rig.requests());
        assert!(rig.requests().len() <= 9, "{timing:?} {refusal:?}: {:?}", rig.requests());
    });
}

#[test]
fn a_crash_over_the_journal_loses_no_line() {
    for (actor, point) in [("status-syncer", "journal"), ("status-manager", "taken over")] {
        for action in [Action::Panic, Action::Kill, Action::Stall(Duration::from_secs(3))] {
            testing::run(1, |kernel| async move {
                let when = When::Nth(1);
                let (actor, point) = (actor.to_owned(), point.to_owned());
                kernel.faults().add(Rule { actor, point, when, action });
                let rig = Rig::new(&kernel);
                let p = rig.create("p").await;
                rig.worker(&p, WorkerPhase::Terminated);
                rig.api.unplug();
                rig.set(&p, status("Failed 42")).await;
                tokio::time::sleep(Duration::from_secs(10)).await;
                assert_eq!(rig.lines().len(), 1);
                let rig = rig.restart().await;
                rig.api.calm();
                tokio::time::sleep(Duration::from_secs(90)).await;
                assert_eq!(rig.phase("p"), "Pending", "the worker of this life has not said that nothing runs");
                rig.worker(&p, WorkerPhase::Terminated);
                tokio::time::sleep(Duration::from_secs(11)).await;
                assert_eq!((rig.phase("p").as_str(), exit_code(&rig.told("p"))), ("Failed", Some(42)));
            });
        }
    }
}

#[test]
fn an_answer_that_is_lost_on_its_way_does_no_harm() {
    for verb in ["PATCH", "DELETE"] {
        testing::run(1, |kernel| async move {
            let rig = Rig::new(&kernel);
            let a = rig.create("a").await;
            rig.worker(&a, WorkerPhase::Terminated);
            rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
            rig.work().await;
            let lost = ApiError::Unreachable { message: "connection reset".into() };
            let matching = fakes::api::Matching::of(verb, "/pods/a");
            rig.api.trouble(matching, fakes::api::Trouble::DoneButLost(lost), 1);
            rig.terminate(&a).await;
            tokio::time::sleep(Duration::from_secs(15)).await;
            assert!(rig.stored("a").is_none(), "{verb}");
            assert!(rig.requests().len() <= 4, "{verb}: {:?}", rig.requests());
        });
    }
}
