//! One EvictionManager; the test plays everybody whom it asks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::testing::settle;
use actor::{ActorRef, Kernel};
use contract::eviction::{NodePressure, PressureView};
use contract::image::RemoveUnusedImages;
use contract::pod_manager::{DesiredPod, KillPod, RemoveDeadContainers};
use contract::pod_worker::{KillRequest, WorkerPhase, WorkerState};
use contract::stats::{StatsError, Summarise};
use contract::{ImageManager, PodManager, StatsManager, Wiring};
use eviction::{Amount, Signal, Threshold};
use fakes::{Events, FakeMachine, FakeMemoryAlarm, FakeRuntime, MemFs, StandIn, pod};
use model::PodUid;
use model::core::Pod;
use model::stats::{PodStats, Summary};
use ports::host::HostFs as _;
use ports::stats::StatsSource;
use serde_json::{Value, json};

use crate::{Config, Deps, EvictionManager};

pub(super) const GI: u64 = 1 << 30;

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(super) fn threshold(signal: &str, below: &str, grace: Duration) -> Threshold {
    let below = Amount::Absolute(below.parse().unwrap());
    Threshold { signal: Signal::parse(signal).unwrap(), below, min_reclaim: None, grace }
}

pub(super) fn config(thresholds: &[Threshold]) -> Config {
    Config {
        thresholds: thresholds.to_vec(),
        pressure_transition: secs(300),
        max_pod_grace: secs(60),
        local_storage: true,
        measures_volumes: true,
        root_dir: "/".into(),
        pods_cgroup: None,
        early_looks: true,
        memcg_notification: false,
    }
}

/// The row of a worker that was told to end its pod.
pub(super) fn ending(phase: WorkerPhase, request: &KillRequest) -> WorkerState {
    WorkerState { evicted: request.evicted, kill: Some(request.clone()), ..WorkerState::new(phase) }
}

/// What the stand-ins answer.
pub(super) struct Said {
    pub pods: BTreeMap<String, PodStats>,
    pub failure: Option<StatsError>,
    /// What needs the runtime fails.
    pub full_fails: bool,
    /// It never answers.
    pub full_hangs: bool,
    /// What tidying up brings the disk to.
    pub reclaimed: Option<u64>,
    /// Who is not there to be ended.
    pub away: Vec<String>,
    /// Workers stop their pods at once.
    pub obedient: bool,
}

fn summary(said: &Said, ask: &Summarise) -> Result<Arc<Summary>, StatsError> {
    if said.full_fails && !ask.only_cpu_and_memory {
        return Err(StatsError { message: "the runtime does not answer".to_owned() });
    }
    let pods = said.pods.values().cloned().collect();
    said.failure.clone().map_or_else(|| Ok(Arc::new(Summary { pods, ..Summary::default() })), Err)
}

pub(super) struct Rig {
    pub kernel: Kernel,
    pub wiring: Wiring,
    pub machine: Arc<FakeMachine>,
    pub alarm: Arc<FakeMemoryAlarm>,
    pub events: Events,
    pub said: Arc<Mutex<Said>>,
    pub runtime: FakeRuntime,
    pub files: MemFs,
    /// Counters of the kernel; there are none at first.
    pub counters: Option<Arc<dyn StatsSource>>,
    stats: StandIn<StatsManager>,
    pub pods: StandIn<PodManager>,
    pub images: StandIn<ImageManager>,
}

impl Rig {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let wiring = Wiring::default();
        let said = Said {
            pods: BTreeMap::new(),
            failure: None,
            full_fails: false,
            full_hangs: false,
            reclaimed: None,
            away: Vec::new(),
            obedient: true,
        };
        let rig = Self {
            kernel: kernel.clone(),
            events: Events::on(&wiring),
            stats: StandIn::on(&wiring),
            pods: StandIn::on(&wiring),
            images: StandIn::on(&wiring),
            said: Arc::new(Mutex::new(said)),
            machine: Arc::default(),
            alarm: Arc::default(),
            runtime: FakeRuntime::default(),
            files: MemFs::default(),
            counters: None,
            wiring,
        };
        rig.files.create_dir(Path::new("/tmp"), 0o755).unwrap();
        rig.answer();
        rig
    }

    fn answer(&self) {
        let said = self.said.clone();
        self.stats.answer_later(move |ask: &Summarise| {
            let hangs = said.lock().unwrap().full_hangs && !ask.only_cpu_and_memory;
            let answer = summary(&said.lock().unwrap(), ask);
            async move { if hangs { std::future::pending().await } else { answer } }
        });
        let (said, wiring) = (self.said.clone(), self.wiring.clone());
        self.pods.answer(move |kill: &KillPod| {
            let said = said.lock().unwrap();
            if said.away.iter().any(|uid| uid == kill.uid.as_str()) {
                return false;
            }
            let phase = if said.obedient { WorkerPhase::Finished } else { WorkerPhase::Terminating };
            wiring.put(kill.uid.clone(), ending(phase, &kill.request));
            true
        });
        self.pods.answer(|_: &RemoveDeadContainers| ());
        let (said, machine) = (self.said.clone(), self.machine.clone());
        self.images.answer(move |_: &RemoveUnusedImages| {
            if let Some(available) = said.lock().unwrap().reclaimed {
                machine.change(|m| m.disk.as_mut().unwrap().available_bytes = available);
            }
            Ok(1)
        });
    }

    pub(super) fn start(&self, config: Config) -> ActorRef<EvictionManager> {
        let deps = Arc::new(self.deps());
        let config = Arc::new(config);
        let new = move |crew| EvictionManager::new(crew, config.clone(), deps.clone());
        fakes::start(&self.kernel, &self.wiring, new)
    }

    pub(super) fn deps(&self) -> Deps {
        Deps {
            host: self.machine.clone(),
            fs: Arc::new(self.files.clone()),
            stats: self.counters.clone().unwrap_or_else(|| Arc::new(self.files.clone())),
            images: self.runtime.client(),
            alarm: self.alarm.clone(),
        }
    }

    /// A pod that runs here, with what it uses of memory and requests.
    pub(super) fn run_pod(&self, uid: &str, priority: i32, uses_mi: u64) {
        self.run(uid, json!({ "spec": { "priority": priority, "terminationGracePeriodSeconds": 40, "containers": [{ "name": "app" }] } }));
        self.measure(
            uid,
            json!({
                "memory": { "time": "2026-01-01T00:00:00Z", "workingSetBytes": uses_mi << 20 },
                "containers": [{ "name": "app", "startTime": "2026-01-01T00:00:00Z",
                    "memory": { "time": "2026-01-01T00:00:00Z", "workingSetBytes": uses_mi << 20 } }],
            }),
        );
    }

    pub(super) fn run(&self, uid: &str, json: Value) {
        let pod: Pod = pod(uid, json);
        let row = DesiredPod::admitted(Arc::new(pod), contract::config_sources::Source::Api);
        self.wiring.put(PodUid::from(uid), row);
        self.wiring.put(PodUid::from(uid), WorkerState::new(WorkerPhase::Syncing));
    }

    pub(super) fn measure(&self, uid: &str, mut stats: Value) {
        stats["podRef"] = json!({ "name": uid, "namespace": "default", "uid": uid });
        stats["startTime"] = json!("2026-01-01T00:00:00Z");
        self.said.lock().unwrap().pods.insert(uid.to_owned(), serde_json::from_value(stats).unwrap());
    }

    pub(super) fn memory_available(&self, bytes: u64) {
        self.machine.change(|m| {
            let memory = m.memory.as_mut().unwrap();
            memory.working_set_bytes = memory.total_bytes - bytes;
        });
    }

    pub(super) fn disk_available(&self, bytes: u64) {
        self.machine.change(|m| m.disk.as_mut().unwrap().available_bytes = bytes);
    }

    /// The worker of a pod that was told to end has come so far.
    pub(super) fn comes_to(&self, uid: &str, phase: WorkerPhase) {
        let kill = self.kills().into_iter().rfind(|kill| kill.uid.as_str() == uid).unwrap();
        self.wiring.put(PodUid::from(uid), ending(phase, &kill.request));
    }

    /// How many victims were told of, by an event each.
    pub(super) fn told(&self) -> usize {
        self.events.lines().iter().filter(|line| line.starts_with("Warning Evicted")).count()
    }

    pub(super) fn conditions(&self) -> Vec<String> {
        self.wiring.value::<NodePressure>().get().conditions.clone()
    }

    /// What people are shown.
    pub(super) fn view(&self) -> PressureView {
        (*self.wiring.value::<PressureView>().get()).clone()
    }

    pub(super) fn kills(&self) -> Vec<KillPod> {
        self.pods.asked()
    }

    pub(super) fn killed(&self) -> Vec<String> {
        self.kills().into_iter().map(|kill| kill.uid.to_string()).collect()
    }

    /// How often dead containers and images were to go.
    pub(super) fn reclaims(&self) -> (usize, usize) {
        (self.pods.asked::<RemoveDeadContainers>().len(), self.images.asked::<RemoveUnusedImages>().len())
    }

    /// How often pods were measured.
    pub(super) fn measured(&self) -> usize {
        self.stats.asked::<Summarise>().len()
    }

    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
        settle().await;
    }
}
