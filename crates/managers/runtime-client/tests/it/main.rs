//! RuntimeClient against a runtime that keeps state, on a paused clock.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Kernel};
use contract::Wiring;
use contract::runtime::{
    CallError, CreateContainer, ExecSync, ObservePod, Observed, RunPodSandbox, RuntimeInfo, StartContainer,
    StopContainer,
};
use fakes::FakeRuntime;
use fakes::runtime::{Features, samples};
use model::runtime::{ContainerState, PodObservation};
use model::{ContainerId, PodUid, SandboxId};
use runtime_client::{CallLimits, Deps, RuntimeClient};
use tokio::time::{Instant, sleep};

mod calls;
mod faults;
mod link;
mod view;

/// A node's runtime side: a fake runtime, the actor, and the way to it.
struct Rig {
    kernel: Kernel,
    fake: FakeRuntime,
    actor: ActorRef<RuntimeClient>,
    wiring: Wiring,
}

/// Runs `test` with a rig that has been through its first relist.
fn rig<F: Future<Output = ()>>(features: Features, test: impl FnOnce(Rig) -> F) {
    actor::testing::run(7, |kernel| async move {
        let fake = FakeRuntime::new(features);
        fake.add_images(&["app:1"]);
        let rig = Rig::new(kernel, fake);
        sleep(ms(5)).await;
        test(rig).await;
    });
}

impl Rig {
    fn new(kernel: Kernel, fake: FakeRuntime) -> Self {
        let wiring = Wiring::default();
        // By HTTP/2, as in life: calls are counted here, and what comes before what decides how many there are.
        let client: Arc<dyn ports::runtime::ContainerRuntime> = Arc::new(fake.piped_client());
        let deps = Deps::new(client, Arc::new(fakes::LinuxFs), CallLimits::default());
        let actor = fakes::start(&kernel, &wiring, move |crew| RuntimeClient::new(&crew, deps.clone()));
        Self { kernel, fake, actor, wiring }
    }

    async fn sandbox(&self, pod: &str, attempt: u32) -> Result<SandboxId, CallError> {
        let config = Arc::new(samples::sandbox(pod, attempt));
        self.wiring.call(RunPodSandbox { uid: uid(pod), config, runtime_handler: String::new() }).await
    }

    async fn create(&self, pod: &str, sandbox: &SandboxId, name: &str, attempt: u32) -> Result<ContainerId, CallError> {
        let config = Arc::new(samples::container(pod, name, "app:1", attempt));
        let sandbox_config = Arc::new(samples::sandbox(pod, 0));
        let sandbox = sandbox.clone();
        self.wiring.call(CreateContainer { uid: uid(pod), sandbox, config, sandbox_config }).await
    }

    async fn start(&self, pod: &str, container: &ContainerId) -> Result<(), CallError> {
        self.wiring.call(StartContainer { uid: uid(pod), container: container.clone() }).await
    }

    async fn stop(&self, pod: &str, container: &ContainerId, grace_s: i64) -> Result<(), CallError> {
        self.wiring.call(StopContainer { uid: uid(pod), container: container.clone(), grace_s }).await
    }

    async fn exec(&self, pod: &str, container: &ContainerId, timeout: Duration) -> Result<i32, CallError> {
        let container = container.clone();
        let m = ExecSync { uid: uid(pod), container, command: vec!["check".to_owned()], timeout };
        self.wiring.call(m).await.map(|o| o.exit_code)
    }

    /// A pod with one running container.
    async fn run(&self, pod: &str) -> (SandboxId, ContainerId) {
        let sandbox = self.sandbox(pod, 0).await.unwrap();
        let app = self.create(pod, &sandbox, "app", 0).await.unwrap();
        self.start(pod, &app).await.unwrap();
        (sandbox, app)
    }

    async fn observe(&self, pod: &str, force: bool) -> Result<Arc<PodObservation>, CallError> {
        let (namespace, name) = ("ns".to_owned(), pod.to_owned());
        self.wiring.call(ObservePod { uid: uid(pod), namespace, name, force }).await
    }

    fn row(&self, pod: &str) -> Option<Arc<PodObservation>> {
        self.wiring.board::<Observed>().get(&uid(pod)).map(|row| row.pod.clone())
    }

    /// State of the newest `app` in the view.
    fn state(&self, pod: &str) -> Option<ContainerState> {
        self.row(pod)?.container("app").map(|c| c.state)
    }

    /// How long it takes until the view shows that state.
    async fn until(&self, pod: &str, state: ContainerState) -> Duration {
        let before = Instant::now();
        let mut row = self.wiring.board::<Observed>().subscribe(uid(pod));
        let shows = |pod: &PodObservation| pod.container("app").is_some_and(|c| c.state == state);
        row.wait_for(|row| row.as_ref().is_some_and(|row| shows(&row.pod))).await.unwrap();
        before.elapsed()
    }

    fn info(&self) -> Arc<RuntimeInfo> {
        self.wiring.value::<RuntimeInfo>().get()
    }
}

fn uid(pod: &str) -> PodUid {
    format!("uid-{pod}").into()
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
