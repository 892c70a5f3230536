//! What the API server is told, and how often.

use std::time::Duration;

use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerPhase;
use fakes::api::{Matching, Trouble};
use model::core::{Pod, PodCondition};
use ports::api::ApiError;
use serde_json::json;
use std::sync::Arc;

use super::rig::{condition, exit_code, pod, status, with_rig};

#[test]
fn a_pods_whole_life_costs_six_requests() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        // As recorded of a kubelet: created, sandbox ready, running, deletion seen, ended.
        for step in ["Pending", "Pending sandbox", "Ready"] {
            rig.says(&a, step).await;
        }
        assert_eq!((rig.phase("a").as_str(), condition(&rig.told("a"), "Ready").as_str()), ("Running", "True"));
        rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
        rig.work().await;
        rig.worker(&a, WorkerPhase::Terminating);
        let mut seen = status("Ready");
        seen.observed_generation = Some(2);
        rig.set(&a, seen).await;
        rig.work().await;
        rig.set(&a, status("Failed 3")).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        rig.worker(&a, WorkerPhase::Terminated);
        rig.work().await;
        assert_eq!((rig.phase("a").as_str(), exit_code(&rig.told("a"))), ("Failed", Some(3)));
        rig.terminate(&a).await;
        rig.work().await;
        assert!(rig.stored("a").is_none());
        assert_eq!(rig.requests(), ["PATCH a", "PATCH a", "PATCH a", "PATCH a", "PATCH a", "DELETE a"]);
        let delete = rig.api.requests_of("DELETE", "").remove(0).body;
        assert_eq!(
            (&delete["gracePeriodSeconds"], &delete["preconditions"]["uid"]),
            (&json!(0), &json!(a.metadata.uid))
        );
        assert!(
            rig.api.requests_of("PATCH", "/status").iter().all(|r| r.body["metadata"]["uid"] == json!(a.metadata.uid))
        );
    });
}

#[test]
fn edges_79_91_an_end_is_told_without_its_phase_while_a_container_could_run() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.says(&a, "Running").await;
        rig.worker(&a, WorkerPhase::Terminating);
        rig.set(&a, status("Failed 3")).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((rig.phase("a").as_str(), exit_code(&rig.told("a"))), ("Running", Some(3)));
        rig.worker(&a, WorkerPhase::Terminated);
        rig.work().await;
        assert_eq!(rig.phase("a"), "Failed");
    });
}

#[test]
fn terminal_patch_and_delete_go_out_in_one_sync() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.set(&a, status("Pending")).await;
        rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
        rig.work().await;
        rig.api.forget_requests();
        // Deleted while it was being made: both come at once (edge 80).
        rig.worker(&a, WorkerPhase::Terminated);
        rig.terminate(&a).await;
        rig.work().await;
        assert_eq!(rig.requests(), ["PATCH a", "DELETE a"]);
        assert_eq!(rig.api.requests_of("PATCH", "")[0].body["status"]["phase"], "Failed");
        assert!(rig.stored("a").is_none());
    });
}

#[test]
fn a_pod_that_is_not_to_go_or_not_finished_is_not_deleted() {
    with_rig(|rig| async move {
        let (stays, busy) = (rig.create("stays").await, rig.create("busy").await);
        for p in [&stays, &busy] {
            rig.worker(p, WorkerPhase::Terminated);
            rig.set(p, status("Succeeded 0")).await;
        }
        rig.terminate(&stays).await;
        rig.api.user_deletes::<Pod>(Some("ns"), "busy", None).unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(rig.api.requests_of("DELETE", "").is_empty());
        // And at once when the last thing that is missing comes.
        rig.api.user_deletes::<Pod>(Some("ns"), "stays", None).unwrap();
        rig.terminate(&busy).await;
        rig.work().await;
        assert!(rig.stored("stays").is_none() && rig.stored("busy").is_none());
    });
}

#[test]
fn edge_81_finalizers_keep_the_object_and_cost_one_delete() {
    with_rig(|rig| async move {
        let mut object = pod("a", json!({}));
        object.metadata.finalizers = Some(vec!["x/y".to_owned()]);
        let a = rig.api.put(&object);
        rig.work().await;
        rig.worker(&a, WorkerPhase::Terminated);
        rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
        rig.work().await;
        rig.terminate(&a).await;
        tokio::time::sleep(Duration::from_secs(290)).await;
        assert_eq!(rig.requests(), ["PATCH a", "DELETE a"]);
        // A server that was set back would need it again.
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(rig.requests(), ["PATCH a", "DELETE a", "DELETE a"]);
    });
}

#[test]
fn a_delete_that_met_a_conflict_over_the_same_pod_is_tried_again() {
    with_rig(|rig| async move {
        let a = rig.create("a").await;
        rig.worker(&a, WorkerPhase::Terminated);
        rig.api.user_deletes::<Pod>(Some("ns"), "a", None).unwrap();
        rig.work().await;
        rig.api.fail("DELETE", "", 1, ApiError::status(409, "Conflict", "the object has been modified"));
        rig.terminate(&a).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(rig.requests(), ["PATCH a", "DELETE a", "GET a", "DELETE a"]);
        assert!(rig.stored("a").is_none());
    });
}

#[test]
fn an_equal_status_is_not_sent_and_an_idle_node_asks_nothing() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.says(&a, "Ready").await;
        rig.api.forget_requests();
        rig.set(&a, status("Ready")).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(rig.requests(), Vec::<String>::new());
    });
}

#[test]
fn edge_83_conditions_of_others_survive() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.says(&a, "Running").await;
        // The board does not know it yet when the next status goes out.
        rig.api.hold_follows();
        rig.api.change::<Pod>(Some("ns"), "a", |p| {
            let conditions = p.status.get_or_insert_default().conditions.get_or_insert_default();
            conditions.push(PodCondition { type_: "x/gate".into(), status: "True".into(), ..Default::default() });
        });
        rig.says(&a, "Ready").await;
        assert_eq!(condition(&rig.told("a"), "x/gate"), "True");
        assert_eq!(condition(&rig.told("a"), "Ready"), "True");
    });
}

#[test]
fn edge_84_a_foreign_edit_is_reverted_within_ten_seconds() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.says(&a, "Ready").await;
        rig.api.change::<Pod>(Some("ns"), "a", |p| p.status.get_or_insert_default().phase = Some("Unknown".into()));
        rig.work().await;
        assert_eq!(rig.phase("a"), "Unknown", "two writers do not chase each other");
        tokio::time::sleep(Duration::from_secs(10)).await;
        rig.work().await;
        assert_eq!(rig.phase("a"), "Running");
    });
}

#[test]
fn a_static_pod_is_told_through_its_mirror_once_there_is_one() {
    with_rig(|rig| async move {
        let mut own = pod("s", json!({"kubernetes.io/config.source": "file"}));
        own.metadata.uid = Some("static-uid".into());
        let own = Arc::new(own);
        fakes::desire(&rig.wiring, own.clone(), Source::File);
        rig.worker(&own, WorkerPhase::Syncing);
        rig.set(&own, status("Ready")).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!((rig.requests(), rig.lines()), (Vec::<String>::new(), Vec::new()));
        let mirror = rig.api.put(&pod("s", json!({"kubernetes.io/config.mirror": "static-uid"})));
        rig.work().await;
        assert_eq!(condition(&rig.told("s"), "Ready"), "True");
        assert_eq!(rig.api.requests_of("PATCH", "")[0].body["metadata"]["uid"], json!(mirror.metadata.uid));
        // One that is made anew is told at once.
        rig.api.vanish::<Pod>(Some("ns"), "s");
        rig.work().await;
        rig.api.put(&pod("s", json!({"kubernetes.io/config.mirror": "static-uid"})));
        rig.work().await;
        assert_eq!(condition(&rig.told("s"), "Ready"), "True");
        // A mirror that is deleted is not ours to finish.
        rig.worker(&own, WorkerPhase::Terminated);
        rig.api.user_deletes::<Pod>(Some("ns"), "s", None).unwrap();
        rig.terminate(&own).await;
        rig.work().await;
        assert!(rig.api.requests_of("DELETE", "").is_empty());
    });
}

#[test]
fn a_rejected_pod_fails_at_once() {
    with_rig(|rig| async move {
        let a = rig.create("a").await;
        let row = rig.wiring.board::<DesiredPod>().get(&model::pod::uid(&a)).unwrap();
        let rejected = Some(("OutOfcpu".to_owned(), "no".to_owned()));
        rig.wiring.put(model::pod::uid(&a), DesiredPod { rejected, ..(*row).clone() });
        rig.set(&a, pod_status::patch::rejected(&a, "OutOfcpu", "no")).await;
        rig.work().await;
        let told = rig.told("a");
        assert_eq!((told.phase.as_deref(), told.reason.as_deref()), (Some("Failed"), Some("OutOfcpu")));
        assert_eq!(rig.requests(), ["PATCH a"]);
    });
}

#[test]
fn another_pod_of_that_name_is_left_alone() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.api.hold_follows();
        rig.api.vanish::<Pod>(Some("ns"), "a");
        let other = rig.api.put(&pod("a", json!({})));
        assert_ne!(other.metadata.uid, a.metadata.uid);
        rig.says(&a, "Ready").await;
        assert_eq!(rig.phase("a"), "Pending");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.requests(), ["PATCH a", "GET a"], "asked once, then forgotten");
    });
}

#[test]
fn a_refusal_for_the_sake_of_the_uid_is_looked_into() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.api.hold_follows();
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.api.put(&pod("a", json!({})));
        let text = "Pod \"a\" is invalid: metadata.uid: Invalid value: field is immutable";
        rig.api.fail("PATCH", "/pods/a", 1, ApiError::status(422, "Invalid", text));
        rig.set(&a, status("Ready")).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(
            (rig.requests().as_slice(), rig.phase("a").as_str()),
            (&["PATCH a".to_owned(), "GET a".into()][..], "Pending")
        );
    });
}

#[test]
fn a_pod_that_is_gone_is_forgotten() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.api.hold_follows();
        rig.api.vanish::<Pod>(Some("ns"), "a");
        rig.says(&a, "Ready").await;
        rig.set(&a, status("Running")).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.requests(), ["PATCH a"]);
        assert!(rig.lines().is_empty());
    });
}

#[test]
fn a_conflict_is_looked_into_and_tried_again_at_once() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.api.fail("PATCH", "/pods/a", 1, ApiError::status(409, "Conflict", "the object has been modified"));
        rig.says(&a, "Ready").await;
        assert_eq!(rig.requests(), ["PATCH a", "GET a", "PATCH a"]);
        assert_eq!(rig.phase("a"), "Running");
    });
}

#[test]
fn a_copy_without_a_version_is_read_first() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        let mut stored = (*a).clone();
        stored.metadata.resource_version = None;
        let row = DesiredPod::admitted(Arc::new(stored), Source::Api);
        rig.api.hold_follows();
        rig.wiring.put(model::pod::uid(&a), row);
        rig.says(&a, "Ready").await;
        rig.says(&a, "Running").await;
        assert_eq!(rig.requests(), ["GET a", "PATCH a", "PATCH a"]);
    });
}

#[test]
fn a_busy_server_is_given_time_and_the_latest_status_wins() {
    let busy = |after: Option<u64>| ApiError::Status {
        code: 429,
        reason: "TooManyRequests".into(),
        message: "slow down".into(),
        retry_after: after.map(Duration::from_secs),
    };
    let failures = [
        ("429", busy(None), 1),
        ("429 with Retry-After", busy(Some(7)), 7),
        ("500", ApiError::status(500, "InternalError", "x"), 1),
        ("partition", ApiError::Unreachable { message: "no route to host".into() }, 1),
        ("garbage", ApiError::Garbage { message: "<html>".into() }, 1),
    ];
    for (name, failure, least) in failures {
        with_rig(|rig| async move {
            let a = rig.syncing("a").await;
            rig.api.fail("PATCH", "", 1, failure);
            rig.says(&a, "Pending").await;
            rig.set(&a, status("Running")).await;
            rig.set(&a, status("Ready")).await;
            let early = Duration::from_millis(if least > 1 { 6500 } else { 100 });
            tokio::time::sleep(early).await;
            assert_eq!(rig.requests(), ["PATCH a"], "{name}: waits");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(rig.requests(), ["PATCH a", "PATCH a"], "{name}: the latest alone");
            assert_eq!(condition(&rig.told("a"), "Ready"), "True", "{name}");
        });
    }
}

#[test]
fn a_refused_status_is_not_hammered_and_a_newer_one_is_not_held_up() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.api.lasting_trouble(
            Matching::of("PATCH", "/pods/a"),
            Trouble::Fail(ApiError::status(422, "Invalid", "is invalid")),
        );
        rig.set(&a, status("Pending")).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!((16..=32).contains(&rig.requests().len()), "{}", rig.requests().len());
        rig.api.calm();
        rig.says(&a, "Ready").await;
        assert_eq!(condition(&rig.told("a"), "Ready"), "True");
    });
}

#[test]
fn what_an_older_server_refuses_of_several_pods_at_once_delays_none_of_them() {
    with_rig(|rig| async move {
        let mut pods = Vec::new();
        for n in 0..5 {
            let p = rig.syncing(&format!("p{n}")).await;
            pods.push(p);
        }
        // All are on their way when the first is refused.
        rig.kernel.faults().add_text("status-syncer: stall(10ms)@before patch").unwrap();
        let text = "unable to find api field in struct PodStatus for the json field \"hostIPs\"";
        rig.api.fail("PATCH", "", 5, ApiError::status(500, "", text));
        for p in &pods {
            let mut first = status("Ready");
            first.host_ips = Some(vec![model::core::HostIP { ip: "192.0.2.1".into() }]);
            rig.set(p, first).await;
        }
        rig.work().await;
        for n in 0..5 {
            assert_eq!(condition(&rig.told(&format!("p{n}")), "Ready"), "True", "p{n}: {:?}", rig.requests());
        }
        assert_eq!(rig.requests().len(), 10);
    });
}

#[test]
fn stuck_pods_delay_no_other() {
    with_rig(|rig| async move {
        rig.api.lasting_trouble(Matching::of("PATCH", "/pods/stuck"), Trouble::Hang);
        for n in 0..20 {
            let p = rig.syncing(&format!("stuck{n}")).await;
            rig.set(&p, status("Ready")).await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        let free = rig.syncing("free").await;
        rig.says(&free, "Ready").await;
        assert_eq!(condition(&rig.told("free"), "Ready"), "True");
    });
}

#[test]
fn stuck_deletions_delay_no_other() {
    with_rig(|rig| async move {
        // The first attempt of each tells the end; the second has only the object left to delete.
        let later = ApiError::Status {
            code: 503,
            reason: String::new(),
            message: "later".into(),
            retry_after: Some(Duration::from_secs(1)),
        };
        rig.api.fail("DELETE", "", 9, later);
        rig.api.lasting_trouble(Matching::of("DELETE", "/pods/stuck"), Trouble::Hang);
        for name in (0..8).map(|n| format!("stuck{n}")).chain(["the-free-one".to_owned()]) {
            let p = rig.create(&name).await;
            rig.api.user_deletes::<Pod>(Some("ns"), &name, None).unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            rig.worker(&p, WorkerPhase::Terminated);
            rig.terminate(&p).await;
        }
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(rig.stored("the-free-one").is_none(), "{:?}", rig.requests());
    });
}

#[test]
fn ready_and_ends_go_before_the_rest_when_the_server_is_slow() {
    with_rig(|rig| async move {
        let mut pods = Vec::new();
        for n in 0..30 {
            let p = rig.syncing(&format!("p{n}")).await;
            pods.push(p);
        }
        rig.api.lasting_trouble(Matching::of("PATCH", ""), Trouble::Slow(Duration::from_millis(500)));
        for (n, p) in pods.iter().enumerate() {
            rig.set(p, status(if n < 28 { "Pending" } else { "Ready" })).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let first: Vec<String> = rig.requests().into_iter().take(10).collect();
        assert!(first.contains(&"PATCH p28".to_owned()) && first.contains(&"PATCH p29".to_owned()), "{first:?}");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(rig.requests().len(), 30);
    });
}

#[test]
fn a_pod_that_vanishes_while_its_end_waits_keeps_nobody_busy() {
    with_rig(|rig| async move {
        let a = rig.syncing("a").await;
        rig.says(&a, "Running").await;
        rig.worker(&a, WorkerPhase::Terminating);
        rig.says(&a, "Failed 3").await;
        rig.api.vanish::<Pod>(Some("ns"), "a");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = rig.syncer.info().turns;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let turns = rig.syncer.info().turns - before;
        assert!(turns < 40, "{turns} turns in ten seconds of rest");
    });
}

#[test]
fn who_has_nothing_that_waits_wakes_for_the_audits_alone() {
    with_rig(|rig| async move {
        rig.ready(3).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        let before = rig.syncer.info().turns;
        tokio::time::sleep(Duration::from_secs(100)).await;
        let turns = rig.syncer.info().turns - before;
        assert!(turns <= 11, "{turns} turns, of which ten are audits");
    });
}
