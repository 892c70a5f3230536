//! A test bed: the manager, a status board to write to, fakes that keep state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{Actor, ActorRef, Ctx, Detached, Handler, Kernel, Spec, supervised};
use async_trait::async_trait;
use contract::Wiring;
use contract::event::RecordEvent;
use contract::probe::{PodProbes, StartProbes, StopProbes};
use contract::runtime::{CallError, ExecOutcome, ExecSync};
use contract::status::StatusEntry;
use model::Timestamp;
use model::core::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, ExecAction,
    HTTPGetAction, Pod, PodSpec, PodStatus, Probe, TCPSocketAction,
};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use model::probe::{ProbeKind, ProbeOutcome, ProbeVerdict};
use ports::journal::{Journal, JournalError};
use ports::probe::{NetAttempt, NetProber, NetTarget};
use tokio::time::Instant;

use crate::{Config, Deps, ProbeManager};

/// Answers exec probes by container id; unknown ones succeed.
#[derive(Default)]
pub(super) struct Execs {
    pub(super) answers: BTreeMap<String, Result<ExecOutcome, CallError>>,
    pub(super) calls: Vec<(Duration, ExecSync)>,
}

struct FakeRuntime(Arc<Mutex<Execs>>, Instant);
supervised!(FakeRuntime);
impl Actor for FakeRuntime {
    type Context = Ctx<Self>;
}
impl Handler<ExecSync> for FakeRuntime {
    type Result = Detached<Result<ExecOutcome, CallError>>;

    fn handle(&mut self, m: ExecSync, _: &mut Ctx<Self>) -> Self::Result {
        let mut execs = self.0.lock().unwrap();
        let answer = execs.answers.get(m.container.as_str()).cloned().unwrap_or_else(|| Ok(exit(0, "")));
        execs.calls.push((self.1.elapsed(), m));
        Detached::new(async move { answer })
    }
}

pub(super) fn exit(exit_code: i32, stdout: &str) -> ExecOutcome {
    ExecOutcome { exit_code, stdout: stdout.as_bytes().to_vec(), stderr: Vec::new() }
}

/// Answers network probes by port; unknown ones succeed. Each takes `delay`.
#[derive(Default)]
pub(super) struct Net {
    pub(super) answers: BTreeMap<u16, NetAttempt>,
    pub(super) calls: Vec<(Duration, NetTarget)>,
    pub(super) delay: Duration,
    pub(super) running: usize,
    pub(super) most: usize,
}

pub(super) struct FakeNet(pub(super) Arc<Mutex<Net>>, Instant);

#[async_trait]
impl NetProber for FakeNet {
    async fn probe(&self, target: NetTarget, timeout: Duration) -> NetAttempt {
        let (answer, delay) = {
            let mut net = self.0.lock().unwrap();
            net.running += 1;
            net.most = net.most.max(net.running);
            let (NetTarget::Http { port, .. } | NetTarget::Tcp { port, .. } | NetTarget::Grpc { port, .. }) = &target;
            let answer = net.answers.get(port).cloned();
            net.calls.push((self.1.elapsed(), target));
            (answer, net.delay)
        };
        tokio::time::sleep(delay.min(timeout)).await;
        self.0.lock().unwrap().running -= 1;
        let fine = NetAttempt { outcome: ProbeOutcome::Success, output: "ok".into() };
        answer.unwrap_or(if delay > timeout { net_failure("timeout") } else { fine })
    }
}

pub(super) fn net_failure(output: &str) -> NetAttempt {
    NetAttempt { outcome: ProbeOutcome::Failure, output: output.into() }
}

struct FakeRecorder(Arc<Mutex<Vec<(String, String)>>>);
supervised!(FakeRecorder);
impl Actor for FakeRecorder {
    type Context = Ctx<Self>;
}
impl Handler<RecordEvent> for FakeRecorder {
    type Result = ();

    fn handle(&mut self, m: RecordEvent, _: &mut Ctx<Self>) {
        self.0.lock().unwrap().push((m.event.reason.into_owned(), m.event.message));
    }
}

#[derive(Default)]
pub(super) struct FakeJournal(pub(super) Mutex<BTreeMap<String, Vec<u8>>>);

impl Journal for FakeJournal {
    fn load(&self, key: &str) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    fn save(&self, key: &str, value: &[u8]) -> Result<(), JournalError> {
        self.0.lock().unwrap().insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<(), JournalError> {
        self.0.lock().unwrap().remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, JournalError> {
        Ok(self.0.lock().unwrap().keys().filter(|k| k.starts_with(prefix)).cloned().collect())
    }
}

pub(super) struct Bed {
    pub(super) kernel: Kernel,
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<ProbeManager>,
    pub(super) execs: Arc<Mutex<Execs>>,
    pub(super) net: Arc<Mutex<Net>>,
    pub(super) events: Arc<Mutex<Vec<(String, String)>>>,
    version: Mutex<u64>,
}

/// A daemon that has run for a day.
pub(super) fn config(kernel: &Kernel) -> Config {
    Config::new(Timestamp(kernel.clock().unix_nanos() - 86_400_000_000_000))
}

impl Bed {
    pub(super) fn new(kernel: Kernel) -> Self {
        let config = config(&kernel);
        Self::with(kernel, config, None)
    }

    pub(super) fn with(kernel: Kernel, config: Config, journal: Option<Arc<dyn Journal>>) -> Self {
        let start = kernel.clock().now();
        let (execs, net, events) = (Arc::default(), Arc::default(), Arc::default());
        let wiring = Wiring::default();
        let state = Arc::clone(&execs);
        let runtime = kernel.spawn(Spec::new("runtime-client"), move |_| FakeRuntime(Arc::clone(&state), start));
        wiring.inlet::<ExecSync>().connect(&runtime);
        let state = Arc::clone(&events);
        let recorder = kernel.spawn(Spec::new("event-recorder"), move |_| FakeRecorder(Arc::clone(&state)));
        wiring.inlet::<RecordEvent>().connect(&recorder);
        let mut deps = Deps::new(Arc::new(FakeNet(Arc::clone(&net), start)));
        deps.journal = journal;
        let crew = wiring.crew();
        let manager = kernel.spawn(Spec::new("probe-manager").mailbox(256), move |_| {
            ProbeManager::new(crew.succeed(), deps.clone(), config.clone())
        });
        wiring.connect::<contract::ProbeManager, _>(&manager);
        Self { kernel, wiring, manager, execs, net, events, version: Mutex::new(0) }
    }

    pub(super) async fn start(&self, pod: &Arc<Pod>) {
        self.wiring.ask(StartProbes { pod: pod.clone() }).await.unwrap();
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
        let entry = StatusEntry {
            version: *version,
            namespace: "ns".into(),
            name: "web".into(),
            status: Arc::new(status),
            finished: false,
            changed_at: self.wall(),
        };
        self.wiring.put(model::pod::uid(pod), entry);
    }

    pub(super) fn row(&self, pod: &Pod) -> Option<Arc<PodProbes>> {
        self.wiring.board::<PodProbes>().get(&model::pod::uid(pod))
    }

    pub(super) fn verdict(&self, pod: &Pod, id: &str, kind: ProbeKind) -> Option<ProbeVerdict> {
        self.row(pod)?.verdict(&id.into(), kind)
    }

    pub(super) fn messages(&self) -> Vec<String> {
        self.events.lock().unwrap().iter().map(|(_, m)| m.clone()).collect()
    }

    /// Whole seconds (rounded down) at which network probes began.
    pub(super) fn net_seconds(&self) -> Vec<u64> {
        self.net.lock().unwrap().calls.iter().map(|(at, _)| at.as_secs()).collect()
    }

    pub(super) fn net_count(&self) -> usize {
        self.net.lock().unwrap().calls.len()
    }

    pub(super) fn exec_count(&self) -> usize {
        self.execs.lock().unwrap().calls.len()
    }
}

pub(super) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

pub(super) fn running(name: &str, id: &str, since: Timestamp, started: bool) -> ContainerStatus {
    let state = ContainerState {
        running: Some(ContainerStateRunning { started_at: since.to_api() }),
        ..ContainerState::default()
    };
    ContainerStatus {
        name: name.into(),
        container_id: Some(format!("containerd://{id}")),
        started: Some(started),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

pub(super) fn ended(name: &str, id: &str, exit_code: i32) -> ContainerStatus {
    let state = ContainerState {
        terminated: Some(ContainerStateTerminated { exit_code, ..ContainerStateTerminated::default() }),
        ..ContainerState::default()
    };
    ContainerStatus { state: Some(state), ..running(name, id, Timestamp::ZERO, false) }
}

pub(super) fn pod(uid: &str, containers: Vec<Container>) -> Arc<Pod> {
    Arc::new(Pod {
        metadata: ObjectMeta {
            name: Some("web".into()),
            namespace: Some("ns".into()),
            uid: Some(uid.into()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { containers, ..PodSpec::default() }),
        status: None,
    })
}

pub(super) fn container(name: &str) -> Container {
    Container { name: name.into(), ..Container::default() }
}

pub(super) fn every(period: i32) -> Probe {
    Probe { period_seconds: Some(period), ..Probe::default() }
}

pub(super) fn tcp(port: i32, probe: Probe) -> Option<Probe> {
    let action = TCPSocketAction { host: None, port: IntOrString::Int(port) };
    Some(Probe { tcp_socket: Some(action), ..probe })
}

pub(super) fn http(port: i32, probe: Probe) -> Option<Probe> {
    let action = HTTPGetAction { port: IntOrString::Int(port), path: Some("/".into()), ..HTTPGetAction::default() };
    Some(Probe { http_get: Some(action), ..probe })
}

pub(super) fn exec(command: &[&str], probe: Probe) -> Option<Probe> {
    let command = command.iter().map(|w| (*w).to_owned()).collect();
    Some(Probe { exec: Some(ExecAction { command: Some(command) }), ..probe })
}
