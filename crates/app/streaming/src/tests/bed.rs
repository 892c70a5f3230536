//! The routes on a loopback port, a runtime that gives one URL, and a streaming server that does what a test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use contract::Wiring;
use contract::config_sources::Source;
use contract::lookup::PodLookup;
use contract::pod_manager::DesiredPod;
use contract::runtime::Observed;
use fakes::FakeRuntime;
use model::core::{Container, Pod, PodSpec};
use model::runtime::{ContainerObservation, ContainerState, PodObservation, SandboxObservation};
use model::{PodUid, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{Deps, Settings, Streams, router};

pub(super) const SPDY: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";
pub(super) const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";

pub(super) struct Bed {
    pub(super) address: SocketAddr,
    pub(super) streams: Streams,
    pub(super) runtime: FakeRuntime,
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
        let runtime = FakeRuntime::default();
        runtime.set_stream_url(&url);
        let streams = Streams::default();
        let deps = Deps { lookup: lookup(), runtime: runtime.client(), settings, streams: streams.clone() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let app = router(deps).into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, streams, runtime }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("served")
    }

    /// What sessions the runtime was asked for, as Rust shows the requests.
    pub(super) fn asked(&self) -> Vec<String> {
        self.runtime.mutations().iter().map(|request| format!("{request:?}")).collect()
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
        let row = DesiredPod::admitted(Arc::new(pod), Source::File);
        wiring.put(PodUid::from(uid), row);
    }
    let mut seen = PodObservation::empty(PodUid::from("u1"), "shop", "web");
    let states =
        [("main", ContainerState::Running), ("shell", ContainerState::Running), ("old", ContainerState::Exited)];
    seen.containers = states
        .into_iter()
        .map(|(name, state)| ContainerObservation::new(format!("id-{name}"), name, "s1", state))
        .collect();
    seen.sandboxes.push(SandboxObservation { host_network: Some(false), ..SandboxObservation::new("s1", 0, true) });
    let row = Observed { pod: Arc::new(seen), observed_at: Timestamp::ZERO };
    wiring.put(PodUid::from("u1"), row);
    PodLookup::of(&wiring)
}
