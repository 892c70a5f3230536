//! How pods of the API end.

use super::*;
use crate::memo::Record;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn condition(status: &PodStatus, type_: &str) -> Option<(String, String, String)> {
    let c = status.conditions.iter().flatten().find(|c| c.type_ == type_)?;
    Some((c.status.clone(), c.reason.clone().unwrap_or_default(), c.message.clone().unwrap_or_default()))
}

#[test]
fn a_pod_that_was_deleted_before_it_started_gets_its_last_status() {
    run(1, |kernel| async move {
        let mut pod = pod(json!({}), json!({}));
        pod.metadata.deletion_timestamp = Some(Time(Default::default()));
        let bench = Bench::start(&kernel, nothing());
        bench.tell(&pod, UpdateKind::Create).await;
        assert_eq!(bench.phase(), WorkerPhase::Finished);
        let words = bench.see(|w| w.words.clone());
        assert!(words.contains(&"finished".to_owned()), "{words:?}");
        assert!(!words.contains(&"RunPodSandbox".to_owned()));
    });
}

/// Edge 55.
#[test]
fn a_pod_that_the_node_stops_says_why() {
    let table = [
        (
            "Preempting",
            "Preempted in order to admit critical pod",
            "Pod was preempted by Kubelet to accommodate a critical pod.",
        ),
        ("Evicted", "The node was low on resource: memory.", "The node was low on resource: memory."),
    ];
    for (reason, message, why) in table {
        run(2, move |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let pod = pod(json!({}), json!({}));
            bench.tell(&pod, UpdateKind::Create).await;
            assert_eq!(bench.last_status().phase.as_deref(), Some("Running"));
            bench.kill(&pod, reason, message).await;
            assert_eq!(bench.phase(), WorkerPhase::Finished);
            let status = bench.last_status();
            assert_eq!(status.phase.as_deref(), Some("Failed"));
            assert_eq!((status.reason.as_deref(), status.message.as_deref()), (Some(reason), Some(message)));
            let target = condition(&status, "DisruptionTarget");
            assert_eq!(target, Some(("True".to_owned(), "TerminationByKubelet".to_owned(), why.to_owned())));
        });
    }
}

#[test]
fn a_pod_that_had_succeeded_before_it_is_to_go_stays_so() {
    with_bench(async |bench| {
        let mut pod = pod(json!({}), json!({"restartPolicy": "Never"}));
        bench.tell(&pod, UpdateKind::Create).await;
        pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
        bench.kill(&pod, "Preempting", "Preempted in order to admit critical pod").await;
        assert_eq!(bench.phase(), WorkerPhase::Finished);
        let status = bench.last_status();
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Succeeded"), None));
        assert_eq!(condition(&status, "DisruptionTarget"), None);
    });
}

#[test]
fn a_pod_over_a_limit_of_its_own_is_evicted_and_not_disrupted() {
    with_bench(async |bench| {
        let pod = pod(json!({}), json!({}));
        bench.tell(&pod, UpdateKind::Create).await;
        let reason = Some(("Evicted".to_owned(), "too much".to_owned()));
        let request = KillRequest { evicted: true, grace_s: Some(1), own_fault: true, reason, deleted: false };
        bench.tell(&pod, UpdateKind::Kill(request)).await;
        assert_eq!(bench.phase(), WorkerPhase::Finished);
        let status = bench.last_status();
        let told = (status.phase.as_deref(), status.reason.as_deref(), status.message.as_deref());
        assert_eq!(told, (Some("Failed"), Some("Evicted"), Some("too much")));
        assert_eq!(condition(&status, "DisruptionTarget"), None);
    });
}

#[test]
fn a_gate_that_somebody_else_opens_makes_the_pod_ready() {
    with_bench(async |bench| {
        let mut pod = pod(json!({}), json!({ "readinessGates": [{ "conditionType": "example.com/lb" }] }));
        bench.tell(&pod, UpdateKind::Create).await;
        let shut = condition(&bench.last_status(), "Ready").unwrap();
        let text = "corresponding condition of pod readiness gate \"example.com/lb\" does not exist.";
        assert_eq!(shut, ("False".to_owned(), "ReadinessGatesNotReady".to_owned(), text.to_owned()));
        let gate = json!([{ "type": "example.com/lb", "status": "True" }]);
        pod.status.get_or_insert_default().conditions = serde_json::from_value(gate).unwrap();
        bench.tell(&pod, UpdateKind::Sync).await;
        assert_eq!(condition(&bench.last_status(), "Ready").unwrap().0, "True");
    });
}

#[test]
fn a_pod_past_its_deadline_is_stopped_and_failed() {
    with_bench(async |bench| {
        bench.tell(&pod(json!({}), json!({ "activeDeadlineSeconds": 30 })), UpdateKind::Create).await;
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert_eq!(bench.phase(), WorkerPhase::Syncing);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(bench.phase(), WorkerPhase::Finished);
        let status = bench.last_status();
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("DeadlineExceeded")));
        assert_eq!(bench.events("DeadlineExceeded").len(), 1);
    });
}

impl Bench {
    fn record(&self) -> Option<Record> {
        Record::load(&*self.journal, &UID.into())
    }

    /// It is told as it was, nothing was started, and the next daemon will know.
    fn is_over(&self) {
        assert_eq!((self.phase(), self.last_status().phase.as_deref()), (WorkerPhase::Finished, Some("Succeeded")));
        for c in self.last_status().container_statuses.unwrap() {
            let ended = c.state.as_ref().and_then(|s| s.terminated.as_ref()).map(|t| t.exit_code);
            assert_eq!(ended, Some(0), "{c:?}");
        }
        assert!(self.see(|w| w.created.is_empty()));
        assert!(self.record().is_some_and(|r| r.over.is_some()));
    }

    async fn start_static(&self, pod: &Pod) {
        self.tell(pod, UpdateKind::Create).await;
        self.worker.ask(contract::pod_worker::GrantStart { uid: UID.into() }, ASK).await.unwrap();
        let_work().await;
    }
}

fn static_and_never_again() -> Pod {
    let mut pod = pod(json!({}), json!({ "restartPolicy": "Never" }));
    pod.metadata.annotations.get_or_insert_default().insert("kubernetes.io/config.source".into(), "file".into());
    pod
}

/// A disk that runs short or a new runtime takes the containers, one after the other, and nobody else remembers them.
#[test]
fn a_static_pod_that_ran_to_its_end_is_over_whatever_the_runtime_still_has_of_it() {
    run(8, |kernel| async move {
        let mut pod = static_and_never_again();
        let mut ended = left_running(&pod);
        let spec = pod.spec.as_mut().unwrap();
        spec.containers.push(model::core::Container { name: "side".to_owned(), ..spec.containers[0].clone() });
        let side =
            ContainerObservation { name: "side".to_owned(), ..container("c2", ended.containers[0].hash.unwrap()) };
        ended.containers.push(side);
        ended.containers.iter_mut().for_each(|c| c.state = ContainerState::Exited);
        let bench = Bench::start(&kernel, ended.clone());
        bench.start_static(&pod).await;
        bench.is_over();
        let record = bench.record().expect("it is remembered");
        ended.containers.pop();
        for left in [ended, nothing()] {
            let next = Bench::start_with_record(&kernel, left, &record);
            next.start_static(&pod).await;
            next.is_over();
        }
    });
}

#[test]
fn a_static_pod_that_came_to_its_end_before_the_node_stopped_it_is_over() {
    run(10, |kernel| async move {
        let pod = static_and_never_again();
        let mut ended = left_running(&pod);
        ended.containers[0].state = ContainerState::Exited;
        kernel.faults().add_text("pod-worker/u1: stall(2s)@before terminate#1").unwrap();
        let bench = Bench::start(&kernel, ended);
        bench.start_static(&pod).await;
        assert_eq!(bench.phase(), WorkerPhase::Terminating);
        let reason = Some(("Terminated".to_owned(), "the node shuts down".to_owned()));
        bench.tell(&pod, UpdateKind::Kill(KillRequest { reason, ..KillRequest::default() })).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        bench.is_over();
    });
}

#[test]
fn a_static_pod_that_the_node_stopped_or_whose_manifest_went_is_not_remembered() {
    for kill in [
        KillRequest {
            reason: Some(("Terminated".to_owned(), "the node shuts down".to_owned())),
            ..KillRequest::default()
        },
        KillRequest { deleted: true, ..KillRequest::default() },
    ] {
        run(9, move |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let pod = static_and_never_again();
            bench.start_static(&pod).await;
            assert_eq!(bench.phase(), WorkerPhase::Syncing);
            bench.tell(&pod, UpdateKind::Kill(kill)).await;
            assert_eq!((bench.phase(), bench.record()), (WorkerPhase::Finished, None));
        });
    }
}

#[test]
fn an_end_that_takes_long_says_what_it_waits_for() {
    for (stuck, waits_for) in [
        ("pod-worker/u1: stall(100s)@before StopPodSandbox", "waits for its containers and sandboxes to stop"),
        ("crew: stall(100s)@turn:UnmountVolumes", "waits for its volumes to be unmounted"),
        ("crew: stall(100s)@turn:RemovePodCgroup", "waits for its cgroup to be removed"),
        ("crew: stall(20s)@turn:TerminatePod", ""),
    ] {
        run(5, move |kernel| async move {
            let pod = pod(json!({}), json!({ "terminationGracePeriodSeconds": 2 }));
            let bench = Bench::start(&kernel, nothing());
            bench.tell(&pod, UpdateKind::Create).await;
            kernel.faults().add_text(stuck).unwrap();
            bench.tell(&deleted(&pod), UpdateKind::Update).await;
            let error = || bench.row().error.clone().unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(29)).await;
            assert_eq!(error(), "", "{stuck}");
            tokio::time::sleep(Duration::from_secs(4)).await;
            assert_eq!(error(), waits_for);
            tokio::time::sleep(Duration::from_secs(80)).await;
            assert_eq!((bench.phase(), error()), (WorkerPhase::Finished, String::new()), "{stuck}");
        });
    }
}

impl Bench {
    /// Nothing is left of the pod, and its end was told once at least.
    fn assert_ended(&self, what: &str) {
        assert_eq!(self.phase(), WorkerPhase::Finished, "{what}: {:?}", self.row());
        let (observed, words) = self.see(|w| (w.observed.clone().unwrap(), w.words.clone()));
        assert!(!observed.is_alive(), "{what}: {words:#?}");
        for word in ["volumes gone", "cgroup removed", "finished"] {
            assert!(words.iter().any(|w| w == word), "{what}: not {word}: {words:#?}");
        }
    }
}

fn deleted(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    pod.metadata.deletion_timestamp = Some(Time(Default::default()));
    pod
}

#[test]
fn a_deletion_that_comes_at_any_point_of_a_start_is_heeded_soon() {
    let points = [
        "pod-worker/u1: stall(1s)@before sync#1",
        "pod-worker/u1: stall(1s)@before EnsurePodCgroup#1",
        "pod-worker/u1: stall(1s)@before MountVolumes#1",
        "pod-worker/u1: stall(1s)@planned#1",
        "pod-worker/u1: stall(1s)@before RunPodSandbox#1",
        "pod-worker/u1: stall(1s)@after RunPodSandbox#1",
        "pod-worker/u1: stall(1s)@before CreateContainer#1",
        "pod-worker/u1: stall(1s)@after CreateContainer#1",
        "pod-worker/u1: stall(1s)@before StartContainer#1",
        "pod-worker/u1: stall(1s)@after StartContainer#1",
        "crew: stall(1s)@turn:SetPodStatus#1",
        "crew: stall(1s)@turn:MountVolumes#1",
        "crew: stall(1s)@turn:StartProbes#1",
        "crew: stall(1s)@turn:RunPodSandbox#1",
        "crew: stall(1s)@turn:StartContainer#1",
    ];
    for point in points {
        run(6, move |kernel| async move {
            kernel.faults().add_text(point).unwrap();
            let bench = Bench::start(&kernel, nothing());
            let pod = pod(json!({}), json!({}));
            bench.tell(&pod, UpdateKind::Create).await;
            assert_eq!(kernel.faults().log().len(), 1, "{point}: never struck");
            bench.tell(&deleted(&pod), UpdateKind::Update).await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            bench.assert_ended(point);
        });
    }
}

#[test]
fn an_end_survives_the_death_of_whoever_takes_part_and_is_not_delayed() {
    let worker = ["before terminate", "before StopContainer", "after StopContainer", "before StopPodSandbox"];
    let later = ["after terminate", "before clean up", "after clean up"];
    let crew = [
        "ObservePod",
        "SetPodStatus",
        "StopProbes",
        "StopContainer",
        "StopPodSandbox",
        "UnmountVolumes",
        "RemovePodCgroup",
        "TerminatePod",
    ];
    let deaths =
        worker.iter().chain(&later).flat_map(|at| ["panic", "kill"].map(|how| format!("pod-worker/u1: {how}@{at}#1")));
    let deaths: Vec<String> = deaths.chain(crew.iter().map(|of| format!("crew: panic@turn:{of}#1"))).collect();
    for death in deaths {
        run(7, |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let pod = pod(json!({}), json!({}));
            bench.tell(&pod, UpdateKind::Create).await;
            kernel.faults().add_text(&death).unwrap();
            bench.tell(&deleted(&pod), UpdateKind::Update).await;
            assert_eq!(kernel.faults().log().len(), 1, "{death}: never struck");
            tokio::time::sleep(Duration::from_secs(3)).await;
            bench.assert_ended(&death);
        });
    }
}
