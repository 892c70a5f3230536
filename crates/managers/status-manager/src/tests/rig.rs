//! An API server, the three boards, and both actors. What PodManager would put on its board is fed from a watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Kernel};
use contract::Wiring;
use contract::config_sources::Source;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::status::{SetPodStatus, TerminatePod};
use fakes::api::{Logged, verb};
use fakes::{FakeApi, MemoryJournal};
use futures::StreamExt;
use model::core::{Pod, PodStatus};
use model::{Timestamp, pod};
use ports::api::{ApiServer, Followed, Kind, Object, Selection};
use ports::journal::Journal;
use serde_json::{Value, json};

use crate::{StatusManager, StatusSyncer, SyncerConfig, SyncerDeps};

/// The daemon of one life around a cluster that outlives it.
pub(super) struct Rig {
    pub(super) kernel: Kernel,
    pub(super) api: FakeApi,
    pub(super) journal: Arc<MemoryJournal>,
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<StatusManager>,
    pub(super) syncer: ActorRef<StatusSyncer>,
    watch: tokio::task::JoinHandle<()>,
}

impl Rig {
    pub(super) fn new(kernel: &Kernel) -> Rig {
        Self::life(kernel, FakeApi::new(), Arc::default())
    }

    /// The next life of the daemon: actors and boards are new, cluster and journal stay.
    pub(super) async fn restart(self) -> Rig {
        self.watch.abort();
        self.syncer.kill();
        self.manager.stop();
        self.syncer.stop();
        self.manager.stopped().await;
        self.syncer.stopped().await;
        self.api.forget_requests();
        Self::life(&self.kernel, self.api, self.journal)
    }

    fn life(kernel: &Kernel, api: FakeApi, journal: Arc<MemoryJournal>) -> Rig {
        let wiring = Wiring::default();
        let lines = journal.clone();
        let new = move |crew| StatusManager::new(crew).with_journal(lines.clone());
        let manager = fakes::start(kernel, &wiring, new);
        let deps = SyncerDeps { api: Arc::new(api.clone()), journal: journal.clone() };
        let new = move |crew| StatusSyncer::new(crew, SyncerConfig::default(), deps.clone());
        let syncer = fakes::start(kernel, &wiring, new);
        let watch = tokio::task::spawn_local(feed(api.clone(), wiring.clone()));
        Rig { kernel: kernel.clone(), api, journal, wiring, manager, syncer, watch }
    }

    /// Makes a pod in the API, as user and scheduler do.
    pub(super) async fn create(&self, name: &str) -> Arc<Pod> {
        let made = self.api.put(&pod(name, json!({})));
        self.work().await;
        Arc::new(made)
    }

    /// As [`Rig::create`], and its worker syncs.
    pub(super) async fn syncing(&self, name: &str) -> Arc<Pod> {
        let made = self.create(name).await;
        self.worker(&made, WorkerPhase::Syncing);
        made
    }

    /// So many pods, `p0` and so on, that are ready.
    pub(super) async fn ready(&self, count: usize) -> Vec<Arc<Pod>> {
        let mut pods = Vec::new();
        for n in 0..count {
            let made = self.syncing(&format!("p{n}")).await;
            self.set(&made, status("Ready")).await;
            pods.push(made);
        }
        self.work().await;
        pods
    }

    /// A worker says this of its pod, see [`status`], and everybody works.
    pub(super) async fn says(&self, made: &Pod, short: &str) {
        self.set(made, status(short)).await;
        self.work().await;
    }

    /// The pod as the board has it now.
    pub(super) fn desired(&self, made: &Pod) -> Arc<Pod> {
        self.wiring.board::<DesiredPod>().get(&pod::uid(made)).map(|row| row.pod.clone()).expect("a desired pod")
    }

    /// A worker says what became of its pod.
    pub(super) async fn set(&self, made: &Pod, status: PodStatus) {
        let pod = self.desired(made);
        self.wiring.ask(SetPodStatus { pod, status: status.into() }).await.expect("the status is taken");
    }

    pub(super) async fn terminate(&self, made: &Pod) {
        let pod = self.desired(made);
        self.wiring.ask(TerminatePod { pod }).await.expect("the end is taken");
    }

    /// A worker in this phase that has synced.
    pub(super) fn worker(&self, made: &Pod, phase: WorkerPhase) {
        self.wiring.put(pod::uid(made), worker(phase, Timestamp(1)));
    }

    pub(super) async fn work(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    pub(super) fn stored(&self, name: &str) -> Option<Pod> {
        self.api.read(Some("ns"), name)
    }

    /// The status that the API has.
    pub(super) fn told(&self, name: &str) -> PodStatus {
        self.stored(name).and_then(|p| p.status).unwrap_or_default()
    }

    pub(super) fn phase(&self, name: &str) -> String {
        self.told(name).phase.unwrap_or_default()
    }

    /// Requests in order, e.g. `PATCH a`.
    pub(super) fn requests(&self) -> Vec<String> {
        let show = |r: &Logged| {
            let name = r.path.split('/').nth(6).unwrap_or_default().to_owned();
            format!("{} {name}", verb(r.method))
        };
        self.api.requests().iter().map(show).collect()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.journal.keys("status/").expect("the journal works")
    }
}

/// Runs a test around a first life.
pub(super) fn with_rig<F: Future<Output = ()>>(test: impl FnOnce(Rig) -> F) {
    actor::testing::run(1, |kernel| test(Rig::new(&kernel)));
}

pub(super) fn worker(phase: WorkerPhase, synced_at: Timestamp) -> WorkerState {
    WorkerState { synced_at, ..WorkerState::new(phase) }
}

/// A pod of one container on this node.
pub(super) fn pod(name: &str, annotations: Value) -> Pod {
    fakes::object(json!({"metadata": {"name": name, "namespace": "ns", "annotations": annotations, "generation": 1},
        "spec": {"nodeName": "n1", "restartPolicy": "Always", "containers": [{"name": "app"}],
            "terminationGracePeriodSeconds": 30},
        "status": {"phase": "Pending", "qosClass": "BestEffort", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
}

/// `Pending`, `Pending sandbox`, `Running`, `Ready`, or the end with an exit code: `Failed 3`, `Succeeded 0`.
pub(super) fn status(short: &str) -> PodStatus {
    let (word, code) = short.split_once(' ').unwrap_or((short, ""));
    let sandbox = if code == "sandbox" { "True" } else { "False" };
    let (phase, ready) = if word == "Ready" { ("Running", true) } else { (word, false) };
    let state = match (phase, code.parse::<i32>()) {
        (_, Ok(code)) => json!({"terminated": {"exitCode": code, "reason": "Error",
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z"}}),
        ("Pending", _) => json!({"waiting": {"reason": "ContainerCreating"}}),
        _ => json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}),
    };
    let word = if ready { "True" } else { "False" };
    fakes::object(json!({"phase": phase, "qosClass": "BestEffort",
        "conditions": [{"type": "Ready", "status": word}, {"type": "ContainersReady", "status": word},
            {"type": "PodReadyToStartContainers", "status": sandbox}, {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "app", "image": "i", "imageID": "sha256:1", "restartCount": 0, "ready": ready,
            "started": ready, "containerID": "containerd://c1", "lastState": {}, "state": state}]}))
}

pub(super) fn condition(status: &PodStatus, kind: &str) -> String {
    let found = status.conditions.iter().flatten().find(|c| c.type_ == kind);
    found.map_or("absent".to_owned(), |c| c.status.clone())
}

pub(super) fn exit_code(status: &PodStatus) -> Option<i32> {
    let state = status.container_statuses.as_ref()?.first()?.state.as_ref()?;
    state.terminated.as_ref().map(|t| t.exit_code)
}

/// What API source and PodManager do.
async fn feed(api: FakeApi, wiring: Wiring) {
    let selection = Selection { kind: Kind::Pod, namespace: None, field_selector: "spec.nodeName=n1".to_owned() };
    let mut follow = api.follow(selection);
    let mut known: BTreeMap<String, Arc<Pod>> = BTreeMap::new();
    while let Some(step) = follow.next().await {
        match step {
            Followed::All(all) => known = all.into_iter().map(named).collect(),
            Followed::Applied(object) => known.extend([named(object)]),
            Followed::Deleted(object) => drop(known.remove(&named(object).0)),
            Followed::Failed(_) => continue,
        }
        show(&known, &wiring);
    }
}

fn named(object: Object) -> (String, Arc<Pod>) {
    let Object::Pod(copy) = object else { panic!("a follower of pods sees {object:?}") };
    (pod::full_name(&copy), copy)
}

fn show(known: &BTreeMap<String, Arc<Pod>>, wiring: &Wiring) {
    let rows = wiring.board::<DesiredPod>().snapshot();
    for (uid, row) in &rows {
        let copy = known.get(&pod::full_name(&row.pod));
        if row.source == Source::File {
            let mirror = copy.cloned();
            if row.mirror != mirror {
                wiring.put(uid.clone(), DesiredPod { mirror, ..(**row).clone() });
            }
        } else if copy.is_none_or(|p| pod::uid(p) != *uid) {
            wiring.take_away::<DesiredPod>(uid);
        }
    }
    for copy in known.values().filter(|p| !pod::is_mirror(p)) {
        let row = rows.get(&pod::uid(copy));
        if row.is_none_or(|r| r.pod != *copy) {
            let rejected = row.and_then(|r| r.rejected.clone());
            let row = DesiredPod { rejected, ..DesiredPod::admitted(copy.clone(), Source::Api) };
            wiring.put(pod::uid(copy), row);
        }
    }
}
