//! The manager, a status board to write to, a network and a runtime that answer as they are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{ActorRef, Kernel};
use contract::probe::{PodProbes, StartProbes, StopProbes};
use contract::runtime::{CallError, ExecOutcome, ExecSync};
use contract::status::StatusEntry;
use contract::{RuntimeClient, Wiring};
use fakes::{Events, FakeNet, StandIn};
use model::Timestamp;
use model::core::{Container, ContainerStatus, Pod, PodStatus, Probe};
use model::probe::{ProbeKind, ProbeOutcome, ProbeVerdict};
use ports::journal::Journal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Config, Deps, ProbeManager};

pub(super) fn exit(exit_code: i32, stdout: &str) -> ExecOutcome {
    ExecOutcome { exit_code, stdout: stdout.as_bytes().to_vec(), stderr: Vec::new() }
}

pub(super) struct Bed {
    pub(super) kernel: Kernel,
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<ProbeManager>,
    /// Answers of exec probes by container id; others succeed.
    exec_answers: Arc<Mutex<BTreeMap<String, Result<ExecOutcome, CallError>>>>,
    pub(super) runtime: StandIn<RuntimeClient>,
    pub(super) net: Arc<FakeNet>,
    pub(super) events: Events,
    began: Instant,
    version: Mutex<u64>,
}

/// A daemon that has run for a day.
pub(super) fn config(kernel: &Kernel) -> Config {
    Config::new(Timestamp(kernel.clock().unix_nanos() - 86_400_000_000_000))
}

fn manager(kernel: &Kernel, wiring: &Wiring, deps: Deps, config: Config) -> ActorRef<ProbeManager> {
    fakes::start(kernel, wiring, move |crew| ProbeManager::new(crew, deps.clone(), config.clone()))
}

impl Bed {
    pub(super) fn new(kernel: Kernel) -> Self {
        let config = config(&kernel);
        Self::with(kernel, config, None)
    }

    pub(super) fn with(kernel: Kernel, config: Config, journal: Option<Arc<dyn Journal>>) -> Self {
        let wiring = Wiring::default();
        let (runtime, events, net) = (StandIn::on(&wiring), Events::on(&wiring), Arc::<FakeNet>::default());
        let exec_answers: Arc<Mutex<BTreeMap<_, _>>> = Arc::default();
        let answers = exec_answers.clone();
        runtime.answer(move |m: &ExecSync| {
            answers.lock().unwrap().get(m.container.as_str()).cloned().unwrap_or_else(|| Ok(exit(0, "")))
        });
        net.open_all();
        let deps = Deps { journal, ..Deps::new(net.clone()) };
        let manager = manager(&kernel, &wiring, deps, config);
        let (version, began) = (Mutex::new(0), Instant::now());
        Self { kernel, wiring, manager, exec_answers, runtime, net, events, began, version }
    }

    /// Another one takes the place, which knows nothing but rows and the journal.
    pub(super) fn replace(&mut self, journal: Option<Arc<dyn Journal>>) {
        self.manager.stop();
        let deps = Deps { journal, ..Deps::new(self.net.clone()) };
        self.manager = manager(&self.kernel, &self.wiring, deps, Config::new(self.wall()));
    }

    pub(super) async fn start(&self, pod: &Arc<Pod>) {
        self.wiring.ask(StartProbes { pod: pod.clone() }).await.unwrap();
    }

    /// A pod whose one container runs and has started, and its worker asks for probes.
    pub(super) async fn runs(&self, pod: &Arc<Pod>) {
        self.show(pod, vec![running("m", "c1", self.wall(), true)]);
        self.start(pod).await;
    }

    /// Network probes of this port fail so from now on.
    pub(super) fn refuse(&self, port: u16, output: &str) {
        self.net.answer(port, ProbeOutcome::Failure, output);
    }

    /// Exec probes of container `c1` end so from now on.
    pub(super) fn execs_end(&self, answer: Result<ExecOutcome, CallError>) {
        self.exec_answers.lock().unwrap().insert("c1".to_owned(), answer);
    }

    pub(super) async fn stop(&self, pod: &Pod, keep_readiness: bool) {
        let m = StopProbes { uid: model::pod::uid(pod), keep_readiness };
        self.wiring.ask(m).await.unwrap();
    }

    pub(super) fn wall(&self) -> Timestamp {
        Timestamp(self.kernel.clock().unix_nanos())
    }

    /// Publishes a status with these containers.
    pub(super) fn show(&self, pod: &Pod, containers: Vec<ContainerStatus>) {
        let mut version = self.version.lock().unwrap();
        *version += 1;
        let is_init = |c: &ContainerStatus| model::pod::init_containers(pod).iter().any(|i| i.name == c.name);
        let (init, regular) = containers.into_iter().partition(is_init);
        let status = PodStatus {
            phase: Some("Running".into()),
            pod_ip: Some("10.0.0.7".into()),
            container_statuses: Some(regular),
            init_container_statuses: Some(init),
            ..PodStatus::default()
        };
        let entry = StatusEntry { version: *version, changed_at: self.wall(), ..fakes::status_entry(pod, status) };
        self.wiring.put(model::pod::uid(pod), entry);
    }

    pub(super) fn row(&self, pod: &Pod) -> Option<Arc<PodProbes>> {
        self.wiring.board::<PodProbes>().get(&model::pod::uid(pod))
    }

    pub(super) fn verdict(&self, pod: &Pod, id: &str, kind: ProbeKind) -> Option<ProbeVerdict> {
        self.row(pod)?.verdict(&id.into(), kind)
    }

    pub(super) fn messages(&self) -> Vec<String> {
        self.events.all().into_iter().map(|e| e.message).collect()
    }

    /// Whole seconds (rounded down) at which network probes began.
    pub(super) fn net_seconds(&self) -> Vec<u64> {
        self.net.probes().iter().map(|(at, _)| (*at - self.began).as_secs()).collect()
    }

    pub(super) fn net_count(&self) -> usize {
        self.net.probes().len()
    }

    pub(super) fn exec_count(&self) -> usize {
        self.runtime.asked::<ExecSync>().len()
    }
}

/// Runs a test around a manager of a daemon that has run for a day.
pub(super) fn with_bed(test: impl AsyncFnOnce(Bed)) {
    actor::testing::run(1, async |kernel| test(Bed::new(kernel)).await);
}

pub(super) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn status(name: &str, id: &str, started: bool, state: Value) -> ContainerStatus {
    fakes::object(json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "containerID": format!("containerd://{id}"), "started": started, "state": state}))
}

pub(super) fn running(name: &str, id: &str, since: Timestamp, started: bool) -> ContainerStatus {
    status(name, id, started, json!({"running": {"startedAt": since.to_api()}}))
}

pub(super) fn ended(name: &str, id: &str, exit_code: i32) -> ContainerStatus {
    status(name, id, false, json!({"terminated": {"exitCode": exit_code}}))
}

pub(super) fn pod(uid: &str, containers: Vec<Container>) -> Arc<Pod> {
    let metadata = json!({"name": "web", "namespace": "ns"});
    Arc::new(fakes::pod(uid, json!({"metadata": metadata, "spec": {"containers": containers}})))
}

pub(super) fn container(name: &str) -> Container {
    Container { name: name.into(), ..Container::default() }
}

pub(super) fn every(period: i32) -> Probe {
    Probe { period_seconds: Some(period), ..Probe::default() }
}

pub(super) fn tcp(port: i32, probe: Probe) -> Option<Probe> {
    Some(Probe { tcp_socket: fakes::object(json!({"port": port})), ..probe })
}

pub(super) fn http(port: i32, probe: Probe) -> Option<Probe> {
    Some(Probe { http_get: fakes::object(json!({"port": port, "path": "/"})), ..probe })
}

pub(super) fn exec(command: &[&str], probe: Probe) -> Option<Probe> {
    Some(Probe { exec: fakes::object(json!({"command": command})), ..probe })
}
