//! The actor with workers that do as they are told, against a fake API server.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::testing::{run, settle};
use actor::{Actor, ActorRef, Ctx, Family, Handler, Kernel, Spec, supervised};
use contract::board::{BoardPoster, BoardReader};
use contract::config_sources::Source;
use contract::event::RecordEvent;
use contract::node::{NodeOrigin, NodeView};
use contract::objects::{HoldObjects, ReleaseObjects};
use contract::pod_manager::{ChangePods, ChangesTaken, DesiredPod, SetPods};
use contract::pod_worker::{GrantStart, UpdateKind, UpdatePod, WorkerPhase, WorkerState};
use contract::status::{SetPodStatus, StatusEntry};
use contract::volume::ExpectVolumes;
use contract::{PodWorker, RoleMessage, Wiring};
use fakes::api::Matching;
use fakes::{FakeApi, MemFs, StandIn, pod};
use model::PodUid;
use model::allocation::{PendingResize, Resizable};
use model::core::{Node, Pod, PodStatus};
use pod_admission::NodeFacts;
use ports::api::ApiError;

use crate::{Config, Deps, PodManager};

mod changes;
mod cluster;
mod mirrors;
mod resize;

/// What was said to others, in order.
type Words = Arc<Mutex<Vec<String>>>;

/// Plays everybody whom PodManager tells something.
fn listen(wiring: &Wiring, words: &Words) {
    fn hear<M: RoleMessage<Result = ()>>(wiring: &Wiring, words: &Words, word: impl Fn(&M) -> String + Send + 'static) {
        let words = words.clone();
        StandIn::on(wiring).answer(move |m: &M| words.lock().unwrap().push(word(m)));
    }
    hear(wiring, words, |m: &RecordEvent| format!("event {} {}", m.event.reason, m.event.message));
    hear(wiring, words, |m: &HoldObjects| format!("hold {}", model::pod::uid(&m.pod)));
    hear(wiring, words, |m: &ReleaseObjects| format!("release {}", m.uid));
    hear(wiring, words, |m: &ExpectVolumes| format!("expect {}", model::pod::uid(&m.pod)));
    let board = wiring.clone();
    hear(wiring, words, move |m: &SetPodStatus| {
        let row = StatusEntry { status: m.status.clone(), finished: false, ..status_row(&m.pod, "") };
        board.put(model::pod::uid(&m.pod), row);
        let text = |of: &Option<String>| of.clone().unwrap_or_default();
        format!("status {} {}: {}", model::pod::uid(&m.pod), text(&m.status.reason), text(&m.status.message))
    });
}

/// A worker that shows what a real one would show, and stops its pod after `stop_after`.
struct Puppet {
    uid: PodUid,
    board: BoardPoster<PodUid, WorkerState>,
    words: Words,
    stop_after: Duration,
    phase: WorkerPhase,
    pod: Option<Arc<Pod>>,
    pending: Option<PendingResize>,
    stops: bool,
}

impl Actor for Puppet {
    type Context = Ctx<Self>;
}
supervised!(Puppet);

impl Puppet {
    fn post(&self) {
        let row = WorkerState {
            termination_requested: self.stops,
            started_terminating: self.stops,
            deleted: self.stops,
            pod: self.pod.clone(),
            pending: self.pending.clone(),
            ..WorkerState::new(self.phase)
        };
        self.board.post(self.uid.clone(), Arc::new(row));
    }
}

impl Handler<UpdatePod> for Puppet {
    type Result = ();
    fn handle(&mut self, m: UpdatePod, ctx: &mut Ctx<Self>) {
        let kind = match &m.kind {
            UpdateKind::Create if m.is_behind => "create behind".to_owned(),
            UpdateKind::Create => "create".to_owned(),
            UpdateKind::Update => "update".to_owned(),
            UpdateKind::Sync => "sync".to_owned(),
            UpdateKind::Kill(k) => format!("kill {:?} {:?}", k.grace_s, k.reason.as_ref().map(|r| &r.0)),
        };
        self.words.lock().unwrap().push(format!("worker {} {kind}", self.uid));
        if let Some(pod) = m.pod {
            self.pod = Some(pod);
            self.pending = m.pending;
        }
        let pod = self.pod.as_deref().cloned().unwrap_or_default();
        let terminal = model::pod::is_terminal(&pod);
        let kill = matches!(m.kind, UpdateKind::Kill(_));
        if kill || terminal || pod.metadata.deletion_timestamp.is_some() {
            if !std::mem::replace(&mut self.stops, true) {
                self.phase = WorkerPhase::Terminating;
                ctx.after(self.stop_after, |act, _| {
                    act.phase = WorkerPhase::Finished;
                    act.post();
                });
            }
        } else if !model::pod::is_static(&pod) {
            self.phase = WorkerPhase::Syncing;
        }
        self.post();
    }
}

impl Handler<GrantStart> for Puppet {
    type Result = ();
    fn handle(&mut self, _: GrantStart, _: &mut Ctx<Self>) {
        if self.phase == WorkerPhase::Waiting {
            self.phase = WorkerPhase::Syncing;
            self.post();
        }
    }
}

struct Bench {
    kernel: Kernel,
    api: FakeApi,
    disk: MemFs,
    words: Words,
    wiring: Wiring,
    workers: BoardReader<PodUid, WorkerState>,
    pods: BoardReader<PodUid, DesiredPod>,
    manager: ActorRef<PodManager>,
}

struct Setup {
    sources: BTreeSet<Source>,
    facts: NodeFacts,
    stop_after: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        let amount = |s: &str| s.parse().unwrap();
        let allocatable = [("cpu", "2"), ("memory", "1Gi"), ("pods", "10")];
        Self {
            sources: [Source::Api].into(),
            facts: NodeFacts {
                name: "n1".to_owned(),
                allocatable: allocatable.map(|(k, v)| (k.to_owned(), amount(v))).into(),
                ..NodeFacts::default()
            },
            stop_after: Duration::from_secs(3),
        }
    }
}

impl Bench {
    fn start(kernel: &Kernel, setup: Setup) -> Self {
        Self::start_on(kernel, setup, MemFs::with_dirs(["/r"]))
    }

    /// With these files of an earlier daemon.
    fn start_on(kernel: &Kernel, setup: Setup, disk: MemFs) -> Self {
        let words = Words::default();
        let wiring = Wiring::default();
        listen(&wiring, &words);
        wiring.set(fakes::well());
        wiring.connect_workers(&puppets(kernel, &wiring, &words, setup.stop_after));
        let api = FakeApi::new();
        let deps = Arc::new(Deps {
            facts: setup.facts,
            api: Some(Arc::new(api.clone())),
            fs: Arc::new(disk.clone()),
            journal: Arc::new(fakes::MemoryJournal::default()),
        });
        let config = Arc::new(Config {
            sources: setup.sources,
            housekeeping: Duration::from_secs(2),
            gc_period: Duration::from_secs(100_000),
            gc: crate::GcPolicy::default(),
            root_dir: "/r".into(),
            resizable: Resizable::default(),
            pod_logs_dir: "/nowhere/pods".into(),
            container_logs_dir: "/nowhere/containers".into(),
        });
        let new = move |crew| PodManager::new(crew, config.clone(), deps.clone());
        let manager = fakes::start(kernel, &wiring, new);
        let kernel = kernel.clone();
        Self { kernel, api, disk, words, workers: wiring.board(), pods: wiring.board(), wiring, manager }
    }

    async fn set(&self, source: Source, pods: &[Pod]) {
        let pods = pods.iter().cloned().map(Arc::new).collect();
        self.wiring.ask(SetPods { source, pods, provisional: false, number: 0 }).await.unwrap();
        // Housekeeping comes a moment after each change.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    /// As [`Bench::set`], from a copy that may lack pods.
    async fn set_provisional(&self, source: Source, pods: &[Pod]) {
        let pods = pods.iter().cloned().map(Arc::new).collect();
        self.wiring.ask(SetPods { source, pods, provisional: true, number: 0 }).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    /// What was said since the last time that somebody asked; what is said twice (every word may be) counts once.
    fn heard(&self) -> Vec<String> {
        let mut words = std::mem::take(&mut *self.words.lock().unwrap());
        words.dedup();
        words
    }

    /// The API server has this Node.
    fn know_node(&self, labels: &[(&str, &str)]) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some("n1".to_owned());
        node.metadata.labels = Some(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
        let node = self.api.put(&node);
        let view = NodeView { node: Some(Arc::new(node.clone())), origin: NodeOrigin::Api, ..NodeView::default() };
        self.wiring.set(view);
        node
    }

    fn phase(&self, uid: &str) -> Option<WorkerPhase> {
        self.workers.get(&uid.into()).map(|w| w.phase)
    }

    fn rejection(&self, uid: &str) -> Option<String> {
        self.pods.get(&uid.into()).and_then(|row| row.rejected.clone()).map(|(reason, _)| reason)
    }
}

/// Runs a test around a manager.
fn with_bench(setup: Setup, test: impl AsyncFnOnce(Bench)) {
    run(1, async |kernel| test(Bench::start(&kernel, setup)).await);
}

fn puppets(kernel: &Kernel, wiring: &Wiring, words: &Words, stop_after: Duration) -> Arc<Family<PodUid, Puppet>> {
    let (kernel, wiring, words) = (kernel.clone(), wiring.clone(), words.clone());
    Family::new(move |uid: &PodUid| {
        let crew = wiring.member_crew::<PodWorker>(uid.as_str());
        let (words, uid) = (words.clone(), uid.clone());
        kernel.spawn(Spec::new(format!("pod-worker/{uid}")), move |_| Puppet {
            uid: uid.clone(),
            board: crew.succeed().poster(),
            words: words.clone(),
            stop_after,
            phase: WorkerPhase::Waiting,
            pod: None,
            pending: None,
            stops: false,
        })
    })
}

fn plain(uid: &str) -> Pod {
    pod(uid, serde_json::json!({ "spec": { "containers": [{ "name": "c" }] } }))
}

fn asking(uid: &str, cpu: &str, priority: i32) -> Pod {
    let json = serde_json::json!({ "spec": { "priority": priority,
        "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }] } });
    pod(uid, json)
}

fn status_row(pod: &Pod, phase: &str) -> StatusEntry {
    let status = PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() };
    StatusEntry { finished: true, ..fakes::status_entry(pod, status) }
}

fn unreachable() -> ApiError {
    ApiError::Unreachable { message: "connection refused".to_owned() }
}
