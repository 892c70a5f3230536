//! The streaming server: exec, attach and port-forward over SPDY, on a loopback port.
//!
//! A call of the CRI leaves a session under a token that nobody can guess, good once and for a minute; whoever was given the URL
//! comes for it. Kubelets come with `SPDY/3.1`, also where their own client speaks WebSocket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tracing::{debug, warn};

use crate::runtime::Runtime;
use crate::sessions::{LAST_WORD, Session};

mod command;
mod fd;
mod forward;

/// Sessions at a time.
const MAX_SESSIONS: usize = 512;
/// Connections that have not shown a token yet. For one more, the one that has waited longest goes: anybody on this machine can connect.
const MAX_STRANGERS: usize = 256;
/// How long a request may take to come.
const REQUEST: Duration = Duration::from_secs(10);
const SPDY: &str = "SPDY/3.1";
const PROTOCOL: &str = "x-stream-protocol-version";

/// Connections that have not shown a token, by the order in which they came.
#[derive(Debug, Default)]
struct Strangers(Mutex<BTreeMap<u64, AbortHandle>>);

impl Strangers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a connection, whose task `begin` spawns: it cannot be known, or gone, before it is in here.
    fn add(&self, number: u64, begin: impl FnOnce() -> AbortHandle) {
        let mut all = self.all();
        while all.len() >= MAX_STRANGERS {
            if let Some((_, oldest)) = all.pop_first() {
                oldest.abort();
            }
        }
        all.insert(number, begin());
    }

    /// It has shown a token, or has gone.
    fn remove(&self, number: u64) {
        self.all().remove(&number);
    }
}

/// What all connections share.
#[derive(Clone)]
struct Door {
    rt: Arc<Runtime>,
    strangers: Arc<Strangers>,
    free: Arc<Semaphore>,
}

/// Answers those who come, until the process ends.
pub(crate) async fn serve(rt: Arc<Runtime>, listener: TcpListener) {
    let free = Arc::new(Semaphore::new(MAX_SESSIONS));
    let door = Door { rt, strangers: Arc::default(), free };
    for number in 0_u64.. {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                warn!("streaming server: {e}");
                continue;
            }
        };
        let mine = door.clone();
        let task = async move {
            connection(&mine, number, stream).await;
            mine.strangers.remove(number);
        };
        door.strangers.add(number, || tokio::spawn(task).abort_handle());
    }
}

async fn connection(door: &Door, number: u64, stream: TcpStream) {
    // Keystrokes must not wait for each other; a failure costs latency only.
    let _ = stream.set_nodelay(true);
    let (done, mut finished) = tokio::sync::mpsc::channel::<()>(1);
    let service = service_fn(move |request| {
        let (door, done) = (door.clone(), done.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(&door, number, request, done)) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    let http =
        http.timer(TokioTimer::new()).header_read_timeout(REQUEST).serve_connection(TokioIo::new(stream), service);
    if let Err(e) = http.with_upgrades().await {
        debug!("streaming server: {e}");
    }
    // The session goes on after HTTP has ended.
    while finished.recv().await.is_some() {}
}

fn refused(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{why}\n"))));
    *response.status_mut() = status;
    response
}

fn names(headers: &HeaderMap, header: &str, wanted: &str) -> bool {
    let values = headers.get_all(header).iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(wanted))
}

fn answer(
    door: &Door,
    number: u64,
    mut request: Request<Incoming>,
    done: tokio::sync::mpsc::Sender<()>,
) -> Response<Full<Bytes>> {
    let Ok(permit) = Arc::clone(&door.free).try_acquire_owned() else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "too many streams");
    };
    let Some(session) = door.rt.streams.take(request.uri().path()) else {
        return refused(StatusCode::NOT_FOUND, "no such stream, or its time is over");
    };
    if !names(request.headers(), UPGRADE.as_str(), SPDY) {
        return refused(StatusCode::BAD_REQUEST, "only SPDY/3.1 is spoken here");
    }
    let protocol = session.protocol();
    if !names(request.headers(), PROTOCOL, protocol) {
        return refused(StatusCode::FORBIDDEN, &format!("only {protocol} is spoken here"));
    }
    // From here on nobody else's connection can end this one.
    door.strangers.remove(number);
    let upgrade = hyper::upgrade::on(&mut request);
    let rt = Arc::clone(&door.rt);
    tokio::spawn(async move {
        let _held: (tokio::sync::mpsc::Sender<()>, OwnedSemaphorePermit) = (done, permit);
        match upgrade.await {
            Ok(upgraded) => run(&rt, session, TokioIo::new(upgraded)).await,
            Err(e) => debug!("streaming server: {e}"),
        }
    });
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(SPDY));
    headers.insert(PROTOCOL, HeaderValue::from_static(protocol));
    response
}

async fn run(rt: &Arc<Runtime>, session: Session, io: TokioIo<hyper::upgrade::Upgraded>) {
    let (incoming, driver) = spdy::serve(io, &spdy::Options::default());
    let mut driver = Box::pin(driver);
    let work = async {
        match session {
            Session::Command(command) => command::serve(rt, command, incoming).await,
            Session::Forward(forward) => forward::serve(rt, &forward, incoming).await,
        }
    };
    // When the connection ends first, the work is dropped, and a process that it held ends.
    tokio::select! {
        _ = &mut driver => return,
        () = work => {}
    }
    // The client closes when it has read its status.
    let _ = tokio::time::timeout(LAST_WORD, driver).await;
}
