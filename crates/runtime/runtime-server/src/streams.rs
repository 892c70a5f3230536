//! The streaming server: exec, attach and port-forward over SPDY, on a loopback port.
//!
//! A call of the CRI leaves a session under a token that nobody can guess, good once and for a minute; whoever was given the URL
//! comes for it. Kubelets come with `SPDY/3.1`, also where their own client speaks WebSocket.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::runtime::Runtime;
use crate::sessions::{LAST_WORD, Session};

mod command;
mod fd;
mod forward;

/// Connections at a time.
const MAX_CONNECTIONS: usize = 512;
const SPDY: &str = "SPDY/3.1";
const PROTOCOL: &str = "x-stream-protocol-version";

/// Answers those who come, until the process ends.
pub(crate) async fn serve(rt: Arc<Runtime>, listener: TcpListener) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(e) => {
                warn!("streaming server: {e}");
                continue;
            }
        };
        let rt = Arc::clone(&rt);
        tokio::spawn(async move {
            let _permit = permit;
            connection(rt, stream).await;
        });
    }
}

async fn connection(rt: Arc<Runtime>, stream: TcpStream) {
    // Keystrokes must not wait for each other; a failure costs latency only.
    let _ = stream.set_nodelay(true);
    let (done, mut finished) = tokio::sync::mpsc::channel::<()>(1);
    let service = service_fn(move |request| {
        let (rt, done) = (Arc::clone(&rt), done.clone());
        async move { Ok::<_, std::convert::Infallible>(answer(rt, request, done)) }
    });
    let http = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
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
    rt: Arc<Runtime>,
    mut request: Request<Incoming>,
    done: tokio::sync::mpsc::Sender<()>,
) -> Response<Full<Bytes>> {
    let Some(session) = rt.streams.take(request.uri().path()) else {
        return refused(StatusCode::NOT_FOUND, "no such stream, or its time is over");
    };
    if !names(request.headers(), UPGRADE.as_str(), SPDY) {
        return refused(StatusCode::BAD_REQUEST, "only SPDY/3.1 is spoken here");
    }
    let protocol = session.protocol();
    if !names(request.headers(), PROTOCOL, protocol) {
        return refused(StatusCode::FORBIDDEN, &format!("only {protocol} is spoken here"));
    }
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let _done = done;
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
