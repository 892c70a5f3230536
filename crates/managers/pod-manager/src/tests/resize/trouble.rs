//! Resizes while others come, go, hang or die.

use model::runtime::{ContainerObservation, ContainerState, PodObservation};

use super::*;

const CRITICAL: i32 = model::pod::SYSTEM_CRITICAL_PRIORITY;

async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

fn slow(seconds: u64) -> Setup {
    Setup { stop_after: Duration::from_secs(seconds), ..Setup::default() }
}

fn cpu_of(file: &serde_json::Value, uid: &str) -> String {
    file["entries"][uid]["ContainerResources"]["c"]["requests"]["cpu"].as_str().unwrap().to_owned()
}

#[test]
fn room_that_others_make_is_not_given_to_one_that_comes_meanwhile() {
    with_bench(slow(8), async |bench| {
        let victim = asking("u2", "1", 0);
        bench.set(Source::Api, &[sized("u1", "500m", CRITICAL, 1), victim.clone()]).await;
        let grown = sized("u1", "1800m", CRITICAL, 2);
        bench.set(Source::Api, &[grown.clone(), victim.clone()]).await;
        assert_eq!(bench.phase("u2"), Some(WorkerPhase::Terminating));
        bench.set(Source::Api, &[grown, victim, asking("u3", "500m", 0)]).await;
        assert_eq!(bench.rejection("u3"), Some("OutOfcpu".to_owned()));
        seconds(9).await;
        assert_eq!(has(&bench, "u1"), "1800m");
    });
}

#[test]
fn a_victim_of_a_resize_that_was_not_told_is_told_again() {
    run(14, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        let victim = asking("u2", "1", 0);
        bench.set(Source::Api, &[sized("u1", "500m", CRITICAL, 1), victim.clone()]).await;
        kernel.faults().permit_drop::<UpdatePod>();
        kernel.faults().add_text("pod-worker: drop@turn:UpdatePod").unwrap();
        bench.set(Source::Api, &[sized("u1", "1500m", CRITICAL, 2), victim]).await;
        assert_eq!(bench.phase("u2"), Some(WorkerPhase::Syncing), "it does not know");
        kernel.faults().clear();
        seconds(2).await;
        assert_eq!(bench.phase("u2"), Some(WorkerPhase::Terminating));
        seconds(5).await;
        assert_eq!(has(&bench, "u1"), "1500m");
    });
}

#[test]
fn a_victim_of_a_resize_that_does_not_end_is_not_waited_for_for_ever() {
    with_bench(slow(3600), async |bench| {
        let victim = asking("u2", "1", 0);
        bench.set(Source::Api, &[sized("u1", "500m", CRITICAL, 1), victim.clone()]).await;
        bench.set(Source::Api, &[sized("u1", "1500m", CRITICAL, 2), victim]).await;
        seconds(9).await;
        assert_eq!(has(&bench, "u1"), "500m");
        seconds(2).await;
        assert_eq!(has(&bench, "u1"), "1500m", "as a pod that is new would start");
        assert_eq!(events(&bench), ["Preempting", "ResizeDeferred", "ExceededGracePeriod", "ResizeStarted"]);
    });
}

#[test]
fn a_pod_that_waits_for_room_starts_with_what_it_was_admitted_with() {
    with_bench(slow(8), async |bench| {
        let victim = asking("u2", "1500m", 0);
        bench.set(Source::Api, std::slice::from_ref(&victim)).await;
        bench.set(Source::Api, &[victim.clone(), sized("u1", "1", CRITICAL, 1)]).await;
        assert_eq!(bench.phase("u1"), None, "its victim is not gone yet");
        bench.set(Source::Api, &[victim, sized("u1", "8", CRITICAL, 2)]).await;
        seconds(9).await;
        assert_eq!((bench.phase("u1"), has(&bench, "u1")), (Some(WorkerPhase::Syncing), "1".to_owned()));
        assert_eq!(cpu_of(&file(&bench, "/r/allocated_pods_state"), "u1"), "1");
    });
}

#[test]
fn a_grant_that_is_taken_back_while_it_is_written_down_does_not_stay_in_the_file() {
    run(1, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1)]).await;
        seconds(6).await;
        // The first writes down that the wish is not granted.
        kernel.faults().add_text("pod-manager: stall(5s)@saved-allocations#2").unwrap();
        bench.set(Source::Api, &[sized("u1", "1500m", 0, 2)]).await;
        assert_eq!(cpu_of(&file(&bench, "/r/allocated_pods_state"), "u1"), "1500m");
        bench.set(Source::Api, &[sized("u1", "500m", 0, 3)]).await;
        seconds(10).await;
        assert_eq!(cpu_of(&file(&bench, "/r/allocated_pods_state"), "u1"), "500m");
        assert_eq!(has(&bench, "u1"), "500m");
    });
}

/// The worker was told in the same turn in which the files are written again.
#[test]
fn a_resize_is_under_way_before_its_worker_has_heard_of_it() {
    run(1, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1)]).await;
        seconds(6).await;
        kernel.faults().add_text("pod-manager: stall(5s)@saved-allocations#2").unwrap();
        let grown = sized("u1", "1", 0, 2);
        bench.set(Source::Api, std::slice::from_ref(&grown)).await;
        bench.set(Source::Api, &[grown, plain("u2")]).await;
        seconds(5).await;
        assert_eq!(has(&bench, "u1"), "1", "granted");
        let entries = file(&bench, "/r/allocated_pods_state");
        assert!(entries["entries"]["u2"].is_object(), "written again: {entries}");
        assert_eq!(cpu_of(&file(&bench, "/r/actuated_pods_state"), "u1"), "500m");
        seconds(10).await;
        assert_eq!(cpu_of(&file(&bench, "/r/actuated_pods_state"), "u1"), "1");
    });
}

#[test]
fn a_wait_that_an_earlier_daemon_told_of_is_not_told_again() {
    run(1, async |kernel| {
        let bench = Bench::start(&kernel, Setup::default());
        bench.set(Source::Api, &[sized("u1", "500m", 0, 1), asking("u2", "1", 0)]).await;
        seconds(6).await;
        let next = Bench::start_on(&kernel, Setup::default(), bench.disk.clone());
        let mut waits = sized("u1", "1500m", 0, 2);
        let told = serde_json::json!({ "conditions": [{ "type": "PodResizePending", "status": "True",
            "reason": "Deferred", "message": NO_ROOM, "observedGeneration": 2,
            "lastTransitionTime": "1970-01-01T00:00:09Z" }] });
        waits.status = Some(serde_json::from_value(told).unwrap());
        next.set(Source::Api, &[waits, asking("u2", "1", 0)]).await;
        assert_eq!(pending(&next, "u1"), Some(("Deferred", NO_ROOM.to_owned())));
        let since = next.pods.get(&"u1".into()).unwrap().pending.as_ref().unwrap().since;
        assert_eq!((since, events(&next)), (model::Timestamp::from_secs(9), Vec::new()));
    });
}

/// It must not be refused, and so killed, for what it only wishes for.
#[test]
fn a_checkpoint_that_is_lost_costs_no_running_pod_its_place() {
    run(1, async |kernel| {
        for (has_status, expected) in [(true, "500m"), (false, "1500m")] {
            let disk = fakes::MemFs::with_dirs(["/r"]);
            disk.write_file(Path::new("/r/allocated_pods_state"), b"{", 0o600).unwrap();
            let bench = Bench::start_on(&kernel, Setup::default(), disk);
            for uid in ["u1", "u2"] {
                let runs = ContainerObservation::new(uid, "c", "s", ContainerState::Running);
                let seen =
                    PodObservation { containers: vec![runs], ..PodObservation::empty(uid.into(), "default", uid) };
                fakes::observe(&bench.wiring, seen);
            }
            let mut waits = sized("u1", "1500m", 0, 2);
            let told = serde_json::json!({ "containerStatuses": [{ "name": "c", "image": "", "imageID": "",
                "ready": true, "restartCount": 0, "allocatedResources": { "cpu": "500m" },
                "resources": { "requests": { "cpu": "500m" } } }] });
            waits.status = Some(serde_json::from_value(told).unwrap()).filter(|_| has_status);
            bench.set(Source::Api, &[waits, asking("u2", "1", 0)]).await;
            assert_eq!((has(&bench, "u1"), bench.rejection("u1")), (expected.to_owned(), None));
            let other = if has_status { None } else { Some("OutOfcpu".to_owned()) };
            assert_eq!(bench.rejection("u2"), other, "nobody can know what it was granted");
        }
    });
}
