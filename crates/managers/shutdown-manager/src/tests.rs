//! The actor among stand-ins: a login manager, files and workers that the test moves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle, until};
use actor::{ActorRef, Kernel};
use contract::config_sources::Source;
use contract::pod_manager::KillPod;
use contract::pod_worker::{KillRequest, WorkerPhase, WorkerState};
use contract::shutdown::Shutdown;
use contract::{PodManager, Wiring};
use fakes::{Events, FakeLogind, MemFs, StandIn};
use model::{PodUid, Timestamp};
use node_shutdown::Group;
use ports::host::HostFs as _;
use serde_json::json;

use crate::{Config, Deps, Hold, ShutdownManager, Turn};

mod life;
mod trouble;

const BEGUN: &str = "Normal Shutdown: Shutdown manager detected shutdown event";
const CANCELLED: &str = "Normal Shutdown: Shutdown manager detected shutdown cancellation";
const STATE: &str = "/root/graceful_node_shutdown_state";
const DROP_IN: &str = "/etc/logind.conf.d/99-kubelet.conf";

/// 20 s for the usual pods, 10 s for critical ones.
fn usual() -> Vec<Group> {
    vec![Group { priority: 0, period_s: 20 }, Group { priority: 2_000_000_000, period_s: 10 }]
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

struct Rig {
    kernel: Kernel,
    wiring: Wiring,
    logind: FakeLogind,
    files: MemFs,
    hold: Hold,
    turn: Turn,
    events: Events,
    pods: StandIn<PodManager>,
    groups: Vec<Group>,
}

impl Rig {
    /// A logind that grants what is needed.
    fn new(kernel: &Kernel) -> Self {
        let wiring = Wiring::default();
        let (events, pods) = (Events::on(&wiring), StandIn::on(&wiring));
        let workers = wiring.clone();
        pods.answer(move |kill: &KillPod| {
            hears(&workers, kill.uid.as_str(), kill.request.clone());
            true
        });
        let logind = FakeLogind::default();
        logind.grant(secs(30), secs(30));
        let files = MemFs::default();
        files.create_dir(Path::new("/root"), 0o750).unwrap();
        let (kernel, hold, turn, groups) = (kernel.clone(), Hold::default(), Turn::default(), usual());
        Self { kernel, wiring, logind, files, hold, turn, events, pods, groups }
    }

    fn start(&self) -> ActorRef<ShutdownManager> {
        let config = Arc::new(Config {
            groups: self.groups.clone(),
            root_dir: "/root".into(),
            drop_in_dir: "/etc/logind.conf.d".into(),
            tells_times: true,
        });
        let (logind, fs) = (Arc::new(self.logind.clone()), Arc::new(self.files.clone()));
        let deps = Arc::new(Deps { logind, fs, hold: self.hold.clone(), turn: self.turn.clone() });
        fakes::start(&self.kernel, &self.wiring, move |crew| ShutdownManager::new(crew, config.clone(), deps.clone()))
    }

    /// With the lock taken.
    async fn up(kernel: &Kernel) -> (Self, ActorRef<ShutdownManager>) {
        let rig = Self::new(kernel);
        let actor = rig.start();
        until("the lock", || rig.logind.held() == 1).await;
        (rig, actor)
    }

    /// A pod that runs.
    fn pod(&self, uid: &str, priority: i32, grace_s: i64) {
        let spec = json!({"spec": {"priority": priority, "terminationGracePeriodSeconds": grace_s, "containers": []}});
        fakes::desire(&self.wiring, fakes::pod(uid, spec), Source::Api);
        self.worker(uid, WorkerPhase::Syncing);
    }

    fn worker(&self, uid: &str, phase: WorkerPhase) {
        self.wiring.put(PodUid::from(uid), WorkerState::new(phase));
    }

    fn board(&self) -> Arc<Shutdown> {
        self.wiring.value::<Shutdown>().get()
    }

    /// Pods that were told to stop, with the seconds that each has.
    fn told(&self) -> Vec<(String, i64)> {
        let asked = self.pods.asked::<KillPod>();
        asked.iter().map(|m| (m.uid.as_str().to_owned(), m.request.grace_s.unwrap())).collect()
    }

    fn file(&self, path: &str) -> Option<String> {
        let read = self.files.read_file(Path::new(path), 4096).ok()?;
        Some(String::from_utf8(read).unwrap())
    }
}

/// Its worker heard of it.
fn hears(wiring: &Wiring, uid: &str, request: KillRequest) {
    let row = WorkerState { kill: Some(request), ..WorkerState::new(WorkerPhase::Terminating) };
    wiring.put(PodUid::from(uid), row);
}

/// Lets everything happen that is going to.
async fn rest() {
    for _ in 0..50 {
        settle().await;
    }
}

fn told(list: &[(&str, i64)]) -> Vec<(String, i64)> {
    list.iter().map(|(uid, grace)| ((*uid).to_owned(), *grace)).collect()
}

#[test]
fn the_turn_of_a_group_lasts_by_a_clock_that_nobody_sets() {
    let (turn, begun) = (Turn::default(), tokio::time::Instant::now());
    let since = Timestamp::from_secs(1_000);
    for (of, after, lasts) in [(since, 0, 0), (since, 7, 7), (since, 30, 30)] {
        assert_eq!(turn.lasts(of, begun + secs(after)), secs(lasts));
    }
    // Another group, which is told to have begun before the first one: somebody set the clock.
    let next = Timestamp::from_secs(10);
    for (after, lasts) in [(31, 0), (33, 2)] {
        assert_eq!(turn.lasts(next, begun + secs(after)), secs(lasts));
    }
}
