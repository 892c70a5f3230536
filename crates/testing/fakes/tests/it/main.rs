//! The fake runtime behaves as a runtime does, on a paused clock.

#![allow(clippy::unwrap_used)] // also outside of #[test] functions

use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use fakes::FakeRuntime;
use fakes::runtime::samples;
use ports::runtime::Runtime;

mod events;
mod faults;
mod files;
mod images;
mod life;
mod roles;

/// A client, a pod `web` with a ready sandbox, and a created container `app`.
struct Pod {
    fake: FakeRuntime,
    client: Arc<dyn Runtime>,
    sandbox: String,
    app: String,
}

/// How a client gets to the runtime: as it does in simulated time, and as it does in life.
type By = fn(&FakeRuntime) -> Arc<dyn Runtime>;
const WAYS: [By; 2] = [FakeRuntime::client, |fake| Arc::new(fake.piped_client())];

async fn pod() -> Pod {
    pod_by(FakeRuntime::client).await
}

async fn pod_by(way: By) -> Pod {
    let fake = FakeRuntime::default();
    fake.add_images(&["app:1"]);
    let client = way(&fake);
    let sandbox = run_sandbox(&*client, "web", 0).await.expect("an empty runtime takes a sandbox");
    let app = create(&*client, &sandbox, "app", 0).await.expect("a ready sandbox takes a container");
    Pod { fake, client, sandbox, app }
}

async fn run_sandbox(client: &dyn Runtime, pod: &str, attempt: u32) -> ports::runtime::RuntimeResult<String> {
    let request =
        v1::RunPodSandboxRequest { config: Some(samples::sandbox(pod, attempt)), runtime_handler: String::new() };
    client.run_pod_sandbox(request).await.map(|r| r.pod_sandbox_id)
}

async fn create(
    client: &dyn Runtime,
    sandbox: &str,
    name: &str,
    attempt: u32,
) -> ports::runtime::RuntimeResult<String> {
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: sandbox.to_owned(),
        config: Some(samples::container("web", name, "app:1", attempt)),
        sandbox_config: Some(samples::sandbox("web", 0)),
    };
    client.create_container(request).await.map(|r| r.container_id)
}

async fn start(client: &dyn Runtime, id: &str) -> ports::runtime::RuntimeResult<()> {
    client.start_container(v1::StartContainerRequest { container_id: id.to_owned() }).await
}

async fn stop(client: &dyn Runtime, id: &str, timeout: i64) -> ports::runtime::RuntimeResult<()> {
    client.stop_container(v1::StopContainerRequest { container_id: id.to_owned(), timeout }).await
}

async fn status(client: &dyn Runtime, id: &str) -> ports::runtime::RuntimeResult<v1::ContainerStatus> {
    let request = v1::ContainerStatusRequest { container_id: id.to_owned(), verbose: false };
    client.container_status(request).await.map(|r| r.status.expect("a status is always sent"))
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
