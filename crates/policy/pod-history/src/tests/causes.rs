//! Facts, and the cause that they mean.

use model::Timestamp;
use model::core::{Pod, PodStatus};
use model::history::{PodHistory, Reason, What};
use serde_json::{Value, json};

use crate::{
    ApiFacts, Cause, Facts, New, Probes, Pulls, RuntimeFacts, Verdict, VolumeFacts, WorkerFacts, WorkerStage, begin,
    end, note, why,
};

fn s(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

/// A pod of the API server that is on its way, on a node where all is well; tests change what they are about.
struct Case {
    pod: Value,
    status: Value,
    history: PodHistory,
    volumes: Vec<VolumeFacts>,
    pulling: Vec<String>,
    probes: Vec<Probes>,
    stage: WorkerStage,
    error: Option<&'static str>,
}

impl Case {
    fn new() -> Self {
        Case {
            pod: json!({ "metadata": { "name": "web", "namespace": "shop", "uid": "u" }, "spec": {
                "initContainers": [{ "name": "setup", "image": "tool:1" }],
                "containers": [{ "name": "app", "image": "app:1" }], "terminationGracePeriodSeconds": 30 } }),
            status: json!({ "phase": "Pending" }),
            history: PodHistory::default(),
            volumes: Vec::new(),
            pulling: Vec::new(),
            probes: Vec::new(),
            stage: WorkerStage::Syncing,
            error: None,
        }
    }

    fn waiting(mut self, list: &str, name: &str, reason: &str, restarts: i32) -> Self {
        let status = json!({ "name": name, "image": "", "imageID": "", "ready": false, "restartCount": restarts,
            "state": { "waiting": { "reason": reason, "message": "what the status says" } } });
        self.status[list] = json!([status]);
        self
    }

    fn failed(mut self, what: What, of: &str, text: &str) -> Self {
        begin(&mut self.history, what, of, s(50));
        end(&mut self.history, what, of, Err(text), s(51));
        self
    }

    fn under_way(mut self, what: What, of: &str, since: i64) -> Self {
        begin(&mut self.history, what, of, s(since));
        self
    }

    fn error(mut self, error: &'static str) -> Self {
        self.error = Some(error);
        self
    }

    fn volume(mut self, volume: VolumeFacts) -> Self {
        self.volumes.push(volume);
        self
    }

    fn deleted(mut self) -> Self {
        // Half a minute after it was asked for.
        self.pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:01:10Z");
        self.pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        self.pod["metadata"]["finalizers"] = json!(["example.com/billing"]);
        self
    }

    fn running(mut self, name: &str) -> Self {
        let state = json!({ "running": { "startedAt": "1970-01-01T00:00:30Z" } });
        let status =
            json!({ "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state });
        let list = if name == "setup" { "initContainerStatuses" } else { "containerStatuses" };
        self.status[list] = json!([status]);
        self.status["conditions"] =
            json!([{ "type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:00:30Z" }]);
        self
    }

    fn judge(&self, change: impl FnOnce(&mut Facts<'_>)) -> Verdict {
        let pod: Pod = serde_json::from_value(self.pod.clone()).unwrap();
        let status: PodStatus = serde_json::from_value(self.status.clone()).unwrap();
        let mut facts = Facts {
            now: s(100),
            pod: &pod,
            status: Some(&status),
            from_api: true,
            rejected: None,
            undecided: false,
            unwanted: false,
            worker: Some(WorkerFacts {
                stage: self.stage,
                stop_requested: self.stage > WorkerStage::Syncing,
                stop_reason: None,
                grace_s: None,
                synced_at: s(99),
                error: self.error,
            }),
            history: Some(&self.history),
            volumes: Ok(&self.volumes),
            pulls: Pulls { pulling: &self.pulling, queued: 2 },
            runtime: RuntimeFacts { ready: true, stale: false, error: None, network: None },
            probes: &self.probes,
            pressure: &[],
            api: Some(ApiFacts { synced: true, error: None }),
        };
        change(&mut facts);
        why(&facts)
    }
}

fn disk(call: Option<&str>, error: Option<&str>) -> VolumeFacts {
    VolumeFacts {
        name: "data".to_owned(),
        kind: "csi".to_owned(),
        claim: "data".to_owned(),
        driver: "d.example".to_owned(),
        since: Some(s(60)),
        error: error.map(str::to_owned),
        call: call.map(|c| (c.to_owned(), s(61))),
        ..VolumeFacts::default()
    }
}

/// What each verdict has to hold: cause, owner, and words of its summary, what it waits for and what was said.
#[track_caller]
fn says(verdict: &Verdict, cause: Cause, owner: &str, words: &[&str]) {
    let all = serde_json::to_string_pretty(verdict).unwrap();
    assert_eq!((verdict.cause, &*verdict.owner), (cause, owner), "{all}");
    for word in words {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert!(!verdict.step.is_empty() && !verdict.look.is_empty(), "{all}");
}

fn nothing(_: &mut Facts<'_>) {}

#[test]
fn an_image_that_is_missing_and_one_that_is_slow() {
    let missing = Case::new().waiting("containerStatuses", "app", "ImagePullBackOff", 0);
    let missing = missing.failed(What::Pull, "app", "ErrImagePull: not found").error("failed to StartContainer");
    says(&missing.judge(nothing), Cause::ImageMissing, "image-manager", &["app:1", "ImagePullBackOff", "not found"]);
    let again = missing.under_way(What::Pull, "app", 99);
    says(&again.judge(nothing), Cause::ImageMissing, "image-manager", &["not found"]);
    let mut slow = Case::new().under_way(What::Pull, "app", 20);
    slow.pulling = vec!["app:1".to_owned()];
    let verdict = slow.judge(nothing);
    says(&verdict, Cause::ImagePulling, "the registry", &["PullImage app:1"]);
    assert_eq!(verdict.since_ns, Some(s(20).0));
    slow.pulling = vec!["other:1".to_owned()];
    says(&slow.judge(nothing), Cause::PullQueued, "image-manager", &["2 in the queue"]);
}

#[test]
fn a_volume_that_waits() {
    let calls = Case::new().under_way(What::Volumes, "", 58).volume(disk(Some("NodeStageVolume"), None));
    let verdict = calls.judge(nothing);
    says(&verdict, Cause::VolumeWaits, "the CSI driver", &["NodeStageVolume of d.example", "claim data"]);
    assert_eq!(verdict.since_ns, Some(s(61).0));
    let fails = Case::new().failed(What::Volumes, "", "timed out").error("x").volume(disk(None, Some("not attached")));
    says(&fails.judge(nothing), Cause::VolumeWaits, "volume-manager", &["not attached"]);
    let untold = Case::new().failed(What::Volumes, "", "timed out").error("x");
    let verdict = untold.judge(|f| f.volumes = Err("volume manager: no answer"));
    says(&verdict, Cause::VolumeWaits, "volume-manager", &["timed out"]);
    let mut back =
        Case::new().deleted().under_way(What::CleanUp, "", 70).volume(disk(Some("NodeUnpublishVolume"), None));
    back.stage = WorkerStage::Terminated;
    says(&back.judge(nothing), Cause::VolumeWaits, "the CSI driver", &["NodeUnpublishVolume", "give back"]);
}

#[test]
fn a_network_that_is_not_ready() {
    let case = Case::new().failed(What::Network, "", "cni plugin not initialized").error("network is not ready");
    let verdict = case.judge(|f| f.runtime.network = Some("cni plugin not initialized"));
    says(
        &verdict,
        Cause::NetworkNotReady,
        "the network plugin of the node",
        &["cni plugin not initialized", "NetworkReady"],
    );
}

#[test]
fn a_container_that_crashes_an_init_container_that_does_and_one_that_a_probe_ends() {
    let held = |mut case: Case, of| {
        let hold = New { reason: Reason::Exited, number: 3, lasts_ms: 40_000, ..New::of(What::Hold, of) };
        note(&mut case.history, hold, s(90));
        case
    };
    let app = held(Case::new().waiting("containerStatuses", "app", "CrashLoopBackOff", 4), "app");
    let verdict = app.judge(nothing);
    says(
        &verdict,
        Cause::CrashLoop,
        "its own process",
        &["4 restarts", "--previous", "hold app for 40s: exited with code 3"],
    );
    assert_eq!(verdict.until_ns, Some(s(130).0));
    let init = held(Case::new().waiting("initContainerStatuses", "setup", "CrashLoopBackOff", 2), "setup");
    says(&init.judge(nothing), Cause::InitLoop, "its own process", &["setup"]);
    let mut killed = Case::new().waiting("containerStatuses", "app", "CrashLoopBackOff", 4);
    let kill = New { reason: Reason::KilledLiveness, text: "failed liveness probe", ..New::of(What::Kill, "app") };
    note(&mut killed.history, kill, s(80));
    says(&held(killed, "app").judge(nothing), Cause::ProbeFailing, "its own process", &["liveness probe fails"]);
}

#[test]
fn a_probe_that_fails_and_one_that_is_only_young() {
    let probe = |failed, message: Option<&str>| Probes {
        container: "app".to_owned(),
        kind: "Readiness",
        failed,
        message: message.map(str::to_owned),
    };
    let mut case = Case::new().running("app");
    case.probes = vec![probe(true, Some("HTTP 503"))];
    says(
        &case.judge(nothing),
        Cause::ProbeFailing,
        "its own process",
        &["readiness probe of container app fails", "HTTP 503"],
    );
    case.probes = vec![probe(false, None)];
    says(&case.judge(nothing), Cause::ProbePending, "its own process", &["has not succeeded yet"]);
}

#[test]
fn an_init_container_that_runs() {
    let case = Case::new().running("setup");
    says(&case.judge(nothing), Cause::InitRunning, "its own process", &["init container setup runs"]);
}

#[test]
fn admission_and_the_node_under_pressure() {
    let case = Case::new();
    let refused = |reason, message| case.judge(|f| (f.rejected, f.worker) = (Some((reason, message)), None));
    says(
        &refused("OutOfcpu", "not enough cpu"),
        Cause::AdmissionRefused,
        "pod-manager",
        &["OutOfcpu", "not enough cpu"],
    );
    let pressure = refused("Evicted", "The node had condition: [MemoryPressure]. ");
    says(&pressure, Cause::NodePressure, "pod-manager", &["MemoryPressure"]);
    let mut evicted = Case::new();
    evicted.status =
        json!({ "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. " });
    evicted.stage = WorkerStage::Finished;
    let verdict = evicted.judge(|f| f.pressure = Box::leak(Box::new(["MemoryPressure".to_owned()])));
    says(&verdict, Cause::NodePressure, "eviction-manager", &["low on resource: memory", "MemoryPressure now"]);
    let verdict = case.judge(|f| f.undecided = true);
    says(&verdict, Cause::AdmissionPending, "pod-manager", &["room on the node"]);
}

#[test]
fn an_api_server_that_is_away() {
    let away = |f: &mut Facts<'_>| f.api = Some(ApiFacts { synced: true, error: Some("connection refused") });
    let config = VolumeFacts { name: "settings".to_owned(), kind: "configMap".to_owned(), ..VolumeFacts::default() };
    let needs = Case::new().failed(What::Volumes, "", "x").error("x").volume(config);
    says(&needs.judge(away), Cause::ApiAway, "object-store", &["settings (configMap)", "connection refused"]);
    let mut done = Case::new().deleted();
    done.stage = WorkerStage::Finished;
    says(&done.judge(away), Cause::ApiAway, "status-syncer", &["connection refused"]);
    let stored = Case::new().judge(|f| {
        f.undecided = true;
        f.api = Some(ApiFacts { synced: false, error: None });
    });
    says(&stored, Cause::ApiAway, "api-source", &["store of pods"]);
    let empty = VolumeFacts { name: "tmp".to_owned(), kind: "emptyDir".to_owned(), ..VolumeFacts::default() };
    let local = Case::new().failed(What::Volumes, "", "x").error("x").volume(empty);
    says(&local.judge(away), Cause::VolumeWaits, "volume-manager", &["tmp (emptyDir)"]);
}

#[test]
fn a_runtime_that_hangs() {
    for (what, of, call) in [
        (What::Sandbox, "", "RunPodSandbox"),
        (What::Create, "app", "CreateContainer of app"),
        (What::Start, "app", "StartContainer of app"),
        (What::Look, "", "PodSandboxStatus"),
    ] {
        let case = Case::new().under_way(what, of, 80);
        let verdict = case.judge(nothing);
        says(&verdict, Cause::RuntimeHangs, "the container runtime", &[call]);
        assert_eq!(verdict.since_ns, Some(s(80).0));
    }
    let quick = Case::new().under_way(What::Create, "app", 98);
    says(&quick.judge(nothing), Cause::Starting, "runtime-client", &["CreateContainer"]);
    let gone = Case::new().judge(|f| {
        f.runtime = RuntimeFacts { ready: false, stale: true, error: Some("connection refused"), network: Some("?") };
    });
    says(&gone, Cause::RuntimeHangs, "the container runtime", &["connection refused"]);
    let mut stop = Case::new().deleted().under_way(What::Stop, "", 40);
    stop.stage = WorkerStage::Terminating;
    says(
        &stop.judge(nothing),
        Cause::RuntimeHangs,
        "the container runtime",
        &["grace of 30 s is over", "StopContainer"],
    );
    let mut young = Case::new().deleted().under_way(What::Stop, "", 90);
    young.stage = WorkerStage::Terminating;
    let verdict = young.judge(nothing);
    says(&verdict, Cause::Ending, "its own processes", &["30 s to end"]);
    assert_eq!(verdict.until_ns, Some(s(120).0));
}

#[test]
fn an_object_that_finalizers_keep() {
    let mut case = Case::new().deleted();
    case.stage = WorkerStage::Finished;
    let verdict = case.judge(nothing);
    says(
        &verdict,
        Cause::TerminatingFinalizer,
        "who set the finalizers",
        &["example.com/billing", "to end: it was deleted"],
    );
}

#[test]
fn what_is_well_and_what_is_done() {
    let mut ready = Case::new();
    ready.status = json!({ "phase": "Running", "conditions": [
        { "type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:30Z" }] });
    let verdict = ready.judge(nothing);
    says(&verdict, Cause::Ready, "pod-worker", &["ready", "to run: 1 container after 1 init, restartPolicy Always"]);
    let mut done = Case::new();
    (done.status, done.stage) = (json!({ "phase": "Succeeded" }), WorkerStage::Finished);
    says(&done.judge(nothing), Cause::Completed, "nobody", &["well"]);
    let mut turn = Case::new();
    turn.stage = WorkerStage::Waiting;
    says(&turn.judge(nothing), Cause::WaitsForTurn, "pod-manager", &["same name"]);
    let mut gate = Case::new().running("app");
    gate.pod["spec"]["readinessGates"] = json!([{ "conditionType": "example.com/lb" }]);
    let ready = json!({ "type": "ContainersReady", "status": "True" });
    gate.status["conditions"].as_array_mut().unwrap().push(ready);
    says(&gate.judge(nothing), Cause::ReadinessGate, "who sets the condition", &["example.com/lb"]);
    let other = Case::new().waiting("containerStatuses", "app", "CreateContainerConfigError", 0);
    says(&other.judge(nothing), Cause::ContainerFails, "pod-worker", &["what the status says"]);
    let sandbox = Case::new().failed(What::Sandbox, "", "no such handler").error("x");
    says(&sandbox.judge(nothing), Cause::SandboxFails, "the runtime", &["no such handler"]);
    says(&Case::new().error("something else").judge(nothing), Cause::StepFails, "pod-worker", &["something else"]);
}
