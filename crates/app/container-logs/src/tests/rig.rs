//! One pod with one container, a runtime board, a folder of logs, and the route on a loopback port.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Kernel, KernelConfig};
use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use contract::Wiring;
use contract::config_sources::Source;
use contract::lookup::PodLookup;
use contract::pod_manager::DesiredPod;
use contract::runtime::Observed;
use fakes::FakeRuntime;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use log_files::FolderWatch;
use model::core::Pod;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{PodUid, Timestamp};
use tokio::net::{TcpListener, TcpStream};

use crate::{Deps, Settings, router};

pub(super) struct Rig {
    wiring: Wiring,
    pub(super) dir: tempfile::TempDir,
    pub(super) fake: FakeRuntime,
    pub(super) deps: Deps,
    /// Where it is asked over a socket.
    address: Option<SocketAddr>,
}

pub(super) fn line(text: &str) -> String {
    format!("2026-01-01T00:00:00.5Z stdout F {text}\n")
}

pub(super) fn container(id: &str, state: ContainerState, log_path: String) -> ContainerObservation {
    ContainerObservation {
        created_at: Timestamp(1),
        started_at: Timestamp(1),
        log_path,
        ..ContainerObservation::new(id, "app", "s", state)
    }
}

fn pod(status: &str) -> Pod {
    let text = format!(
        r#"{{"metadata":{{"name":"web","namespace":"shop","uid":"u"}},"spec":{{"containers":[{{"name":"app"}}],
        "initContainers":[{{"name":"new"}}]}},"status":{{"containerStatuses":[{{"name":"app","image":"","imageID":"",
        "ready":true,"restartCount":1,{status}}}]}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

impl Rig {
    pub(super) async fn new() -> Self {
        Self::with(FolderWatch::new()).await
    }

    pub(super) async fn with(watch: FolderWatch) -> Self {
        let mut rig = Self::on(&Kernel::new(KernelConfig::default()), watch);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        rig.address = Some(listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, router(rig.deps.clone())).into_future());
        rig
    }

    /// On a paused clock, too: then there are no sockets, and [`Rig::ask_here`] is the way to ask.
    pub(super) fn on(kernel: &Kernel, watch: FolderWatch) -> Self {
        let fake = FakeRuntime::default();
        let wiring = Wiring::default();
        let deps = Deps {
            lookup: PodLookup::of(&wiring),
            runtime: fake.client(),
            effects: kernel.effects("logs"),
            clock: kernel.clock().clone(),
            watch,
            settings: Settings { split_streams: true },
        };
        let rig = Self { dir: tempfile::tempdir().unwrap(), fake, deps, address: None, wiring };
        rig.status(r#""containerID":"fake://now","state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"containerID":"fake://before"}}"#);
        rig.observe(ContainerState::Running);
        rig
    }

    pub(super) fn log(&self) -> PathBuf {
        self.dir.path().join("1.log")
    }

    pub(super) fn previous_log(&self) -> PathBuf {
        self.dir.path().join("0.log")
    }

    /// Status of the container, as JSON fields.
    pub(super) fn status(&self, status: &str) {
        let row = DesiredPod::admitted(Arc::new(pod(status)), Source::File);
        self.wiring.put(PodUid::from("u"), row);
    }

    /// State of the container on the runtime board.
    pub(super) fn observe(&self, state: ContainerState) {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        self.observe_containers(vec![
            container("now", state, text(self.log())),
            container("before", ContainerState::Exited, text(self.previous_log())),
        ]);
    }

    pub(super) fn observe_containers(&self, containers: Vec<ContainerObservation>) {
        let mut pod = PodObservation::empty(PodUid::from("u"), "shop", "web");
        pod.containers = containers;
        let row = Observed { pod: Arc::new(pod), observed_at: Timestamp(1) };
        self.wiring.put(PodUid::from("u"), row);
    }

    pub(super) fn write(&self, text: &str) {
        append(&mut OpenOptions::new().create(true).append(true).open(self.log()).unwrap(), text);
    }

    pub(super) async fn request(&self, method: &str, path: &str) -> hyper::Response<Incoming> {
        send(TcpStream::connect(self.address.expect("a rig with a socket")).await.unwrap(), method, path).await
    }

    /// Answer to a request for the log.
    pub(super) async fn ask(&self, query: &str) -> hyper::Response<Incoming> {
        self.request("GET", &path(query)).await
    }

    /// As [`Rig::ask`], through a pipe in memory that holds so many bytes.
    pub(super) async fn ask_here(&self, query: &str, pipe: usize) -> hyper::Response<Incoming> {
        let (here, there) = tokio::io::duplex(pipe);
        let service = TowerToHyperService::new(router(self.deps.clone()));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(there), service));
        send(here, "GET", &path(query)).await
    }

    /// Code and whole body.
    pub(super) async fn get(&self, query: &str) -> (u16, String) {
        whole(self.ask(query).await).await
    }
}

fn path(query: &str) -> String {
    format!("/containerLogs/shop/web/app{query}")
}

async fn send<S>(stream: S, method: &str, path: &str) -> hyper::Response<Incoming>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", "node").body(Body::empty()).unwrap();
    sender.send_request(request).await.unwrap()
}

pub(super) fn append(file: &mut File, text: &str) {
    file.write_all(text.as_bytes()).unwrap();
}

pub(super) async fn whole(answer: hyper::Response<Incoming>) -> (u16, String) {
    let code = answer.status().as_u16();
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("an end within 20 s")
}

/// A body that is read while it comes.
pub(super) struct Follower {
    body: Incoming,
    pub(super) text: Vec<u8>,
}

impl Follower {
    pub(super) fn new(answer: hyper::Response<Incoming>) -> Self {
        assert_eq!(answer.status(), 200);
        Self { body: answer.into_body(), text: Vec::new() }
    }

    async fn more(&mut self) -> bool {
        match soon(self.body.frame()).await {
            None => false,
            Some(frame) => {
                self.text.extend_from_slice(&frame.unwrap().into_data().unwrap_or(Bytes::new()));
                true
            }
        }
    }

    /// Reads until the text so far ends like this.
    pub(super) async fn until(&mut self, end: &str) {
        while !self.text.ends_with(end.as_bytes()) {
            assert!(self.more().await, "ended with {:?}", String::from_utf8_lossy(&self.text));
        }
    }

    /// Reads to the end; all of the text.
    pub(super) async fn into_whole(mut self) -> String {
        while self.more().await {}
        String::from_utf8(self.text).unwrap()
    }
}
