//! Pods of the API: admission by the node, objects, deletion, what is left of earlier lives.

use super::*;
use contract::eviction::NodePressure;
use contract::pod_manager::{KillPod, RemoveDeadContainers};
use contract::pod_worker::KillRequest;
use contract::runtime::{Relist, RemoveContainer};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};

fn selecting(uid: &str) -> Pod {
    let json = serde_json::json!({ "spec": { "nodeSelector": { "disk": "ssd" }, "containers": [{ "name": "c" }] } });
    pod(uid, json)
}

fn deleting(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(Default::default()));
    pod
}

#[test]
fn objects_are_held_before_the_worker_starts_and_let_go_when_it_is_through() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[plain("u1")]).await;
        assert_eq!(bench.heard(), ["hold u1", "worker u1 create"]);
        bench.set(Source::Api, &[deleting(plain("u1"))]).await;
        assert_eq!(bench.heard(), ["worker u1 update"]);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.heard(), ["release u1"]);
    });
}

#[test]
fn claims_of_a_pod_are_looked_up_before_its_worker_starts_unless_it_ends() {
    with_bench(Setup::default(), async |bench| {
        let volumes = serde_json::json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "a" } }]);
        let claiming = |uid: &str| {
            pod(uid, serde_json::json!({ "spec": { "containers": [{ "name": "c" }], "volumes": volumes.clone() } }))
        };
        bench.set(Source::Api, &[claiming("u1"), deleting(claiming("u2"))]).await;
        let heard = bench.heard();
        let at = |word: &str| heard.iter().position(|heard| heard == word);
        assert!(at("expect u1").is_some() && at("expect u1") < at("worker u1 create"), "{heard:?}");
        assert_eq!(at("expect u2"), None, "{heard:?}");
    });
}

#[test]
fn what_a_worker_did_not_take_in_it_is_told_again() {
    run(13, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        bench.know_node(&[]);
        let small = asking("small", "1500m", 0);
        bench.set(Source::Api, &[plain("u1"), plain("u2"), small.clone()]).await;
        bench.heard();
        kernel.faults().permit_drop::<UpdatePod>();
        kernel.faults().add_text("pod-worker: drop@turn:UpdatePod").unwrap();
        bench.set(Source::Api, &[deleting(plain("u1")), plain("u2"), small.clone()]).await;
        assert_eq!(bench.phase("u1"), Some(WorkerPhase::Syncing), "it does not know");
        kernel.faults().clear();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.phase("u1"), Some(WorkerPhase::Terminating), "deleted");
        kernel.faults().add_text("pod-worker: drop@turn:UpdatePod").unwrap();
        bench
            .set(Source::Api, &[plain("u2"), small.clone(), asking("big", "1", model::pod::SYSTEM_CRITICAL_PRIORITY)])
            .await;
        assert_eq!(bench.phase("small"), Some(WorkerPhase::Syncing), "it does not know");
        kernel.faults().clear();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.phase("small"), Some(WorkerPhase::Terminating), "preempted");
    });
}

#[test]
fn a_removed_pod_is_stopped_with_its_own_grace() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[plain("u1")]).await;
        bench.heard();
        bench.set(Source::Api, &[]).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.heard(), ["worker u1 kill None None", "release u1"]);
        assert_eq!(bench.phase("u1"), None, "the worker is forgotten");
    });
}

#[test]
fn a_pod_that_the_node_does_not_suit_is_refused_after_a_second_look_at_the_node() {
    with_bench(Setup::default(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[selecting("u1")]).await;
        assert_eq!(bench.rejection("u1").as_deref(), Some("NodeAffinity"));
        let text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        assert_eq!(
            bench.heard(),
            [format!("event NodeAffinity {text}"), format!("status u1 NodeAffinity: Pod was rejected: {text}")]
        );
        assert_eq!(bench.api.requests_of("GET", "nodes/n1").len(), 1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(bench.phase("u1"), None, "and never looked at again");
    });
}

#[test]
fn a_label_that_the_watch_has_not_shown_yet_is_found_by_the_second_look() {
    with_bench(Setup::default(), async |bench| {
        let mut node = bench.know_node(&[]);
        node.metadata.labels = Some([("disk".to_owned(), "ssd".to_owned())].into());
        bench.api.put(&node);
        bench.set(Source::Api, &[selecting("u1")]).await;
        assert_eq!(bench.rejection("u1"), None);
        assert_eq!(bench.phase("u1"), Some(WorkerPhase::Syncing));
    });
}

#[test]
fn an_api_server_that_is_away_leaves_the_first_look_in_force() {
    with_bench(Setup::default(), async |bench| {
        bench.know_node(&[]);
        bench.api.lasting_trouble(Matching::any(), fakes::api::Trouble::Fail(unreachable()));
        bench.set(Source::Api, &[selecting("u1"), plain("u2")]).await;
        assert_eq!(bench.rejection("u1").as_deref(), Some("NodeAffinity"));
        assert_eq!(bench.phase("u2"), Some(WorkerPhase::Syncing));
    });
}

#[test]
fn a_pod_that_goes_while_the_node_is_read_is_not_started() {
    with_bench(Setup::default(), async |bench| {
        bench.know_node(&[]);
        bench.api.trouble(Matching::of("GET", "nodes"), fakes::api::Trouble::Slow(Duration::from_secs(20)), 1);
        bench.set(Source::Api, &[selecting("u1")]).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(bench.phase("u1"), None, "housekeeping does not start it behind the back of admission");
        bench.set(Source::Api, &[]).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(bench.heard().is_empty());
    });
}

#[test]
fn a_rebuilt_manager_does_not_start_what_its_predecessor_had_not_decided_about() {
    with_bench(Setup::default(), async |bench| {
        bench.know_node(&[]);
        bench.api.lasting_trouble(Matching::of("GET", "nodes"), fakes::api::Trouble::Slow(Duration::from_secs(20)));
        bench.set(Source::Api, &[selecting("u1")]).await;
        bench.manager.kill();
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!((bench.phase("u1"), bench.rejection("u1")), (None, None), "the Node is read again");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!((bench.phase("u1"), bench.rejection("u1").as_deref()), (None, Some("NodeAffinity")));
        assert!(bench.heard().iter().any(|word| word.starts_with("status u1 NodeAffinity")));
    });
}

#[test]
fn a_rebuilt_manager_goes_on_waiting_for_victims_and_tells_one_that_was_not_told() {
    run(15, |kernel| async move {
        let bench = Bench::start(&kernel, Setup { stop_after: Duration::from_secs(8), ..Setup::default() });
        let small = asking("small", "1500m", 0);
        bench.set(Source::Api, std::slice::from_ref(&small)).await;
        kernel.faults().permit_drop::<UpdatePod>();
        kernel.faults().add_text("pod-worker: drop@turn:UpdatePod").unwrap();
        let critical = asking("big", "1", model::pod::SYSTEM_CRITICAL_PRIORITY);
        bench.set(Source::Api, &[small, critical]).await;
        bench.manager.kill();
        kernel.faults().clear();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.phase("small"), Some(WorkerPhase::Terminating));
        assert_eq!(bench.phase("big"), None, "its victim is not gone yet");
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert_eq!(bench.phase("big"), Some(WorkerPhase::Syncing));
        assert!(!bench.pods.get(&"big".into()).unwrap().undecided);
    });
}

#[test]
fn a_refusal_that_the_status_board_does_not_have_is_told_again() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[asking("u1", "64", 0)]).await;
        let told = |words: Vec<String>| words.iter().filter(|word| word.starts_with("status u1 OutOfcpu")).count();
        assert_eq!(told(bench.heard()), 1);
        bench.wiring.take_away::<StatusEntry>(&"u1".into());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(told(bench.heard()), 1);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(told(bench.heard()), 0, "the board has it");
    });
}

/// The runtime has a sandbox of a pod, since an earlier daemon.
fn has_sandbox(bench: &Bench, uid: &str, name: &str) {
    let mut pod = PodObservation::empty(uid.into(), "default", name);
    pod.sandboxes.push(SandboxObservation::new("s", 0, true));
    fakes::observe(&bench.wiring, pod);
}

#[test]
fn an_orphan_whose_kill_was_lost_is_told_again() {
    run(17, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        StandIn::on(&bench.wiring).answer(|_: &Relist| Ok(()));
        has_sandbox(&bench, "u9", "stray");
        kernel.faults().permit_drop::<UpdatePod>();
        kernel.faults().add_text("pod-worker: drop@turn:UpdatePod").unwrap();
        bench.set(Source::Api, &[]).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.phase("u9"), None, "it does not know");
        kernel.faults().clear();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(bench.heard(), ["worker u9 kill Some(1) None"]);
    });
}

#[test]
fn a_refused_pod_that_runs_already_is_ended_with_its_own_grace_and_tells_why() {
    run(18, |kernel| async move {
        let bench = Bench::start(&kernel, Setup::default());
        StandIn::on(&bench.wiring).answer(|_: &Relist| Ok(()));
        has_sandbox(&bench, "u1", "u1");
        bench.set(Source::Api, &[asking("u1", "64", 0)]).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(bench.rejection("u1").as_deref(), Some("OutOfcpu"));
        let heard = bench.heard();
        assert!(heard.contains(&"worker u1 kill None Some(\"OutOfcpu\")".to_owned()), "{heard:?}");
        assert!(!heard.iter().any(|word| word.starts_with("status u1")), "its worker does: {heard:?}");
    });
}

#[test]
fn a_critical_pod_starts_when_its_victims_are_gone() {
    with_bench(Setup::default(), async |bench| {
        bench.know_node(&[]);
        bench.set(Source::Api, &[asking("small", "1500m", 0), plain("bystander")]).await;
        bench.heard();
        let critical = asking("big", "1", model::pod::SYSTEM_CRITICAL_PRIORITY);
        bench.set(Source::Api, &[asking("small", "1500m", 0), plain("bystander"), critical]).await;
        assert_eq!(
            bench.heard(),
            [
                "event Preempting Preempted in order to admit critical pod",
                "worker small kill None Some(\"Preempting\")"
            ]
        );
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.phase("big"), None, "its victim is not gone yet");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.phase("big"), Some(WorkerPhase::Syncing));
        assert_eq!(bench.phase("bystander"), Some(WorkerPhase::Syncing));
    });
}

/// As at the begin of a daemon. Its containers were tidied away: by the runtime nothing tells that it ran.
#[test]
fn a_pod_that_has_succeeded_is_no_victim() {
    with_bench(Setup::default(), async |bench| {
        bench.know_node(&[]);
        let mut done = asking("done", "1500m", 0);
        done.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
        let critical = asking("big", "1", model::pod::SYSTEM_CRITICAL_PRIORITY);
        bench.set(Source::Api, &[done, critical]).await;
        assert_eq!(bench.phase("big"), Some(WorkerPhase::Syncing));
        assert!(!bench.heard().iter().any(|word| word.contains("Preempting")));
    });
}

#[test]
fn a_victim_that_does_not_go_delays_the_critical_pod_for_a_while_only() {
    run(8, |kernel| async move {
        let bench = Bench::start(&kernel, Setup { stop_after: Duration::from_secs(3600), ..Setup::default() });
        bench.set(Source::Api, &[asking("small", "1500m", 0)]).await;
        let critical = asking("big", "1", model::pod::SYSTEM_CRITICAL_PRIORITY);
        bench.set(Source::Api, &[asking("small", "1500m", 0), critical]).await;
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(bench.phase("big"), None);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.phase("big"), Some(WorkerPhase::Syncing));
        let text = "event ExceededGracePeriod Container runtime did not kill the pod within specified grace period.";
        assert!(bench.heard().contains(&text.to_owned()));
    });
}

#[test]
fn a_refused_pod_that_is_deleted_gets_finished() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[asking("u1", "64", 0)]).await;
        assert_eq!(bench.rejection("u1").as_deref(), Some("OutOfcpu"));
        bench.heard();
        bench.set(Source::Api, &[deleting(asking("u1", "64", 0))]).await;
        assert_eq!(bench.heard(), ["worker u1 kill None None"]);
    });
}

#[test]
fn a_pod_that_came_to_its_end_here_does_not_run_again_though_the_api_says_it_runs() {
    with_bench(Setup::default(), async |bench| {
        let mut running = plain("u1");
        running.status = Some(model::core::PodStatus { phase: Some("Running".into()), ..Default::default() });
        bench.wiring.put("u1".into(), status_row(&running, "Failed"));
        bench.set(Source::Api, &[running]).await;
        let worker = bench.workers.get(&"u1".into()).unwrap();
        assert!(worker.termination_requested, "its worker only cleans up");
        let phase = worker.pod.as_ref().and_then(|p| p.status.as_ref()).and_then(|s| s.phase.clone());
        assert_eq!(phase.as_deref(), Some("Failed"));
    });
}

#[test]
fn a_status_that_comes_back_from_the_api_wakes_only_pods_with_gates() {
    with_bench(Setup::default(), async |bench| {
        let gated = pod(
            "gated",
            serde_json::json!({ "spec": { "containers": [{ "name": "c" }],
            "readinessGates": [{ "conditionType": "example.com/lb" }] } }),
        );
        bench.set(Source::Api, &[plain("u1"), gated.clone()]).await;
        bench.heard();
        let said = |mut p: Pod| {
            p.status = Some(model::core::PodStatus { phase: Some("Running".into()), ..Default::default() });
            p
        };
        bench.set(Source::Api, &[said(plain("u1")), said(gated)]).await;
        assert_eq!(bench.heard(), ["worker gated update"]);
    });
}

#[test]
fn pressure_and_shutdown_of_the_node_refuse_pods() {
    with_bench(Setup::default(), async |bench| {
        bench.wiring.set(NodePressure { conditions: vec!["DiskPressure".to_owned()] });
        bench.set(Source::Api, &[plain("u1")]).await;
        assert_eq!(bench.rejection("u1").as_deref(), Some("Evicted"));
        let running = ContainerObservation::new("c1", "app", "s", ContainerState::Running);
        let of_u3 = PodObservation { containers: vec![running], ..PodObservation::empty("u3".into(), "default", "u3") };
        fakes::observe(&bench.wiring, of_u3);
        bench.set(Source::Api, &[plain("u1"), plain("u3")]).await;
        assert_eq!(
            bench.rejection("u3"),
            None,
            "it runs since an earlier daemon: whether it goes is decided elsewhere"
        );
        bench.wiring.set(NodePressure::default());
        bench.wiring.set(NodeView { origin: NodeOrigin::Host, shutting_down: true, ..NodeView::default() });
        bench.set(Source::Api, &[plain("u1"), plain("u2"), plain("u3")]).await;
        assert_eq!(bench.rejection("u2").as_deref(), Some("NodeShutdown"));
    });
}

#[test]
fn a_rebuilt_manager_goes_on_with_refusals_and_objects() {
    with_bench(Setup::default(), async |bench| {
        let all = [asking("no", "64", 0), plain("yes")];
        bench.set(Source::Api, &all).await;
        bench.manager.kill();
        settle().await;
        bench.heard();
        bench.set(Source::Api, &all).await;
        assert_eq!(bench.rejection("no").as_deref(), Some("OutOfcpu"));
        assert!(bench.heard().is_empty(), "nothing is said twice");
        bench.set(Source::Api, &all[..1]).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(bench.heard().contains(&"release yes".to_owned()));
    });
}

#[test]
fn a_set_that_may_lack_pods_starts_its_own_and_stops_nobody() {
    with_bench(Setup::default(), async |bench| {
        // A worker of a pod that the copy lacks: an earlier life left it.
        let stray = PodUid::from("u9");
        let state = WorkerState { synced_at: model::Timestamp(1), ..WorkerState::new(WorkerPhase::Syncing) };
        bench.wiring.put(stray, state);
        bench.set_provisional(Source::Api, &[plain("u1")]).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let heard = bench.heard();
        assert!(heard.contains(&"worker u1 create".to_owned()), "{heard:?}");
        assert!(!heard.iter().any(|w| w.contains("u9")), "{heard:?}");
        bench.set(Source::Api, &[plain("u1")]).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let heard = bench.heard();
        assert!(heard.iter().any(|w| w.contains("u9")), "now it is known to be nobody's: {heard:?}");
    });
}

#[test]
fn a_pod_ends_early_by_order_and_does_not_come_again() {
    with_bench(Setup::default(), async |bench| {
        bench.set(Source::Api, &[plain("u1")]).await;
        bench.heard();
        let request =
            KillRequest { grace_s: Some(7), reason: Some(("Evicted".into(), "m".into())), ..KillRequest::default() };
        let kill = |uid: &str| KillPod { uid: uid.into(), request: request.clone() };
        assert!(bench.wiring.ask(kill("u1")).await.unwrap());
        assert!(!bench.wiring.ask(kill("stranger")).await.unwrap(), "nobody works for it");
        assert_eq!(bench.heard(), ["worker u1 kill Some(7) Some(\"Evicted\")"]);
        assert!(bench.wiring.ask(kill("u1")).await.unwrap(), "again is no harm");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(bench.phase("u1"), Some(WorkerPhase::Finished));
        assert!(!bench.heard().iter().any(|word| word.contains("create")));
    });
}

#[test]
fn when_a_disk_runs_short_containers_of_ended_pods_go_too() {
    with_bench(Setup::default(), async |bench| {
        let runtime_client = fakes::StandIn::on(&bench.wiring);
        runtime_client.answer(|_: &RemoveContainer| Ok(()));
        bench.set(Source::Api, &[plain("ended"), plain("runs")]).await;
        for uid in ["ended", "runs"] {
            let dead = |n: i64| {
                let dead = ContainerObservation::new(format!("{uid}-{n}"), "app", "s", ContainerState::Exited);
                ContainerObservation { created_at: model::Timestamp(n), ..dead }
            };
            let containers = vec![dead(2), dead(1)];
            fakes::observe(
                &bench.wiring,
                PodObservation { containers, ..PodObservation::empty(uid.into(), "default", uid) },
            );
        }
        bench.wiring.put("ended".into(), WorkerState::new(WorkerPhase::Finished));
        bench.kernel.faults().add_text("pod-manager: panic@turn:RemoveDeadContainers#1").unwrap();
        bench.kernel.faults().enable();
        assert!(bench.wiring.ask(RemoveDeadContainers).await.is_err(), "whoever asks is told, and asks again");
        bench.wiring.ask(RemoveDeadContainers).await.unwrap();
        let mut gone: Vec<_> =
            runtime_client.asked::<RemoveContainer>().into_iter().map(|m| m.container.to_string()).collect();
        gone.sort();
        assert_eq!(gone, ["ended-1", "ended-2", "runs-1"], "of one that runs the newest stays");
    });
}
