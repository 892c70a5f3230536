//! The routes on a loopback port, a runtime that gives one URL, and a streaming server that does what a test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contract::Wiring;
use contract::config_sources::Source;
use contract::lookup::PodLookup;
use contract::pod_manager::DesiredPod;
use contract::runtime::Observed;
use cri_api::v1;
use model::core::{Container, Pod, PodSpec};
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{ContainerId, PodUid, SandboxId, Timestamp};
use ports::runtime::{ContainerRuntime, EventStream, RuntimeCode, RuntimeError, RuntimeResult};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Deps, Settings, Streams, router};

pub(super) const SPDY: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";
pub(super) const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";

pub(super) struct Bed {
    pub(super) address: SocketAddr,
    pub(super) streams: Streams,
    pub(super) runtime: Arc<Runtime>,
}

impl Bed {
    /// A bed whose streaming server hands every connection, with the head of its request, to `script`.
    pub(super) async fn start<F>(script: impl Fn(TcpStream, String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::with(settings(), script).await
    }

    pub(super) async fn with<F>(
        settings: Settings,
        script: impl Fn(TcpStream, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/stream/TOKEN", listener.local_addr().expect("bound"));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let head = head(&mut stream).await;
                tokio::spawn(script(stream, head));
            }
        });
        let runtime = Arc::new(Runtime { url: Mutex::new(Ok(url)), asked: Mutex::default() });
        let streams = Streams::default();
        let deps = Deps { lookup: lookup(), runtime: runtime.clone(), settings, streams: streams.clone() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let app = router(deps).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, streams, runtime }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("served")
    }

    /// Sends a request and returns the connection and the head of the answer.
    pub(super) async fn ask(&self, line: &str, headers: &str) -> (TcpStream, String) {
        let mut stream = self.connect().await;
        let request = format!("{line} HTTP/1.1\r\nHost: node:10250\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.expect("taken");
        let head = head(&mut stream).await;
        (stream, head)
    }

    /// Sends a request and returns status, head and body of an answer that is no upgrade.
    pub(super) async fn refused(&self, line: &str, headers: &str) -> (u16, String, String) {
        let (mut stream, head) = self.ask(line, headers).await;
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|l| l.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; if line.starts_with("HEAD") { 0 } else { length.unwrap_or(0) }];
        stream.read_exact(&mut body).await.expect("whole");
        (status, head, String::from_utf8(body).expect("text"))
    }
}

pub(super) fn settings() -> Settings {
    Settings { answer_timeout: Duration::from_secs(5), ..Settings::default() }
}

/// Reads up to the empty line, and no byte more.
pub(super) async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("text")
}

pub(super) async fn read(stream: &mut TcpStream, len: usize) -> String {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await.expect("so many bytes");
    String::from_utf8(bytes).expect("text")
}

/// Waits for what must come, and fails rather than hang.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("within 20 s")
}

/// How much a writer gets rid of before it is stopped for half a second. More than `limit` is a failure.
pub(super) async fn taken_until_stopped(stream: &mut (impl tokio::io::AsyncWrite + Unpin), limit: usize) -> usize {
    let piece = vec![b'x'; 64 << 10];
    let mut taken = 0;
    while let Ok(n) = tokio::time::timeout(Duration::from_millis(500), stream.write(&piece)).await {
        taken += n.expect("open");
        assert!(taken < limit, "{taken} bytes were taken from a writer whose reader sleeps");
    }
    taken
}

/// Pod `web` of namespace `shop`: `main` runs, `shell` has a terminal, `old` has ended, `never` was not started. Pod
/// `idle` has no sandbox.
fn lookup() -> PodLookup {
    let wiring = Wiring::default();
    for (uid, name) in [("u1", "web"), ("u2", "idle")] {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.namespace = Some("shop".to_owned());
        let container = |name: &str, tty| Container { name: name.to_owned(), tty, ..Default::default() };
        let containers = ["main", "old", "never"].map(|n| container(n, None)).into_iter();
        let containers = containers.chain([container("shell", Some(true))]).collect();
        pod.spec = Some(PodSpec { containers, ..Default::default() });
        let row = DesiredPod { pod: Arc::new(pod), source: Source::File, rejected: None, mirror: None };
        wiring.put(PodUid::from(uid), row);
    }
    let mut seen = PodObservation::empty(PodUid::from("u1"), "shop", "web");
    let states =
        [("main", ContainerState::Running), ("shell", ContainerState::Running), ("old", ContainerState::Exited)];
    seen.containers = states.into_iter().map(|(name, state)| container(name, state)).collect();
    seen.sandboxes.push(SandboxObservation {
        id: SandboxId::from("s1"),
        attempt: 0,
        ready: true,
        created_at: Timestamp::ZERO,
        host_network: Some(false),
        ips: None,
        runtime_handler: String::new(),
    });
    let row = Observed { pod: Arc::new(seen), observed_at: Timestamp::ZERO };
    wiring.put(PodUid::from("u1"), row);
    PodLookup::of(&wiring)
}

fn container(name: &str, state: ContainerState) -> ContainerObservation {
    ContainerObservation {
        id: ContainerId::from(format!("id-{name}").as_str()),
        name: name.to_owned(),
        sandbox: SandboxId::from("s1"),
        state,
        created_at: Timestamp::ZERO,
        started_at: Timestamp::ZERO,
        finished_at: Timestamp::ZERO,
        exit_code: 0,
        image: String::new(),
        image_ref: String::new(),
        reason: String::new(),
        message: String::new(),
        restart_count: 0,
        hash: None,
        annotations: Arc::default(),
        mounts: Arc::new([]),
        log_path: String::new(),
        resources: None,
        user: None,
    }
}

pub(super) struct Runtime {
    pub(super) url: Mutex<RuntimeResult<String>>,
    /// Requests, as Rust shows them.
    pub(super) asked: Mutex<Vec<String>>,
}

impl Runtime {
    fn answer(&self, asked: String) -> RuntimeResult<String> {
        self.asked.lock().expect("no panic").push(asked);
        self.url.lock().expect("no panic").clone()
    }
}

macro_rules! not_here {
    ($($name:ident($($request:ty)?) -> $answer:ty;)*) => { $(
        fn $name<'a, 'b>(&'a self $(, _: $request)?) -> std::pin::Pin<Box<dyn Future<Output = RuntimeResult<$answer>> + Send + 'b>>
        where 'a: 'b, Self: 'b {
            Box::pin(async { Err(RuntimeError::new(RuntimeCode::Unimplemented, stringify!($name))) })
        }
    )* };
}

#[async_trait]
impl ContainerRuntime for Runtime {
    async fn exec(&self, request: v1::ExecRequest) -> RuntimeResult<v1::ExecResponse> {
        self.answer(format!("{request:?}")).map(|url| v1::ExecResponse { url })
    }
    async fn attach(&self, request: v1::AttachRequest) -> RuntimeResult<v1::AttachResponse> {
        self.answer(format!("{request:?}")).map(|url| v1::AttachResponse { url })
    }
    async fn port_forward(&self, request: v1::PortForwardRequest) -> RuntimeResult<v1::PortForwardResponse> {
        self.answer(format!("{request:?}")).map(|url| v1::PortForwardResponse { url })
    }
    not_here! {
        version() -> v1::VersionResponse;
        status(bool) -> v1::StatusResponse;
        runtime_config() -> v1::RuntimeConfigResponse;
        update_runtime_config(v1::UpdateRuntimeConfigRequest) -> ();
        run_pod_sandbox(v1::RunPodSandboxRequest) -> v1::RunPodSandboxResponse;
        stop_pod_sandbox(v1::StopPodSandboxRequest) -> ();
        remove_pod_sandbox(v1::RemovePodSandboxRequest) -> ();
        pod_sandbox_status(v1::PodSandboxStatusRequest) -> v1::PodSandboxStatusResponse;
        list_pod_sandbox(v1::ListPodSandboxRequest) -> v1::ListPodSandboxResponse;
        update_pod_sandbox_resources(v1::UpdatePodSandboxResourcesRequest) -> ();
        create_container(v1::CreateContainerRequest) -> v1::CreateContainerResponse;
        start_container(v1::StartContainerRequest) -> ();
        stop_container(v1::StopContainerRequest) -> ();
        remove_container(v1::RemoveContainerRequest) -> ();
        list_containers(v1::ListContainersRequest) -> v1::ListContainersResponse;
        container_status(v1::ContainerStatusRequest) -> v1::ContainerStatusResponse;
        update_container_resources(v1::UpdateContainerResourcesRequest) -> ();
        reopen_container_log(v1::ReopenContainerLogRequest) -> ();
        checkpoint_container(v1::CheckpointContainerRequest) -> ();
        exec_sync(v1::ExecSyncRequest) -> v1::ExecSyncResponse;
        list_container_stats(v1::ListContainerStatsRequest) -> v1::ListContainerStatsResponse;
        pod_sandbox_stats(v1::PodSandboxStatsRequest) -> v1::PodSandboxStatsResponse;
        list_pod_sandbox_stats(v1::ListPodSandboxStatsRequest) -> v1::ListPodSandboxStatsResponse;
        events() -> EventStream;
    }
}
