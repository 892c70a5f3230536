//! Stands between a node and its runtime, passes everything on, and writes down the mutating calls as recordings have them.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{UnixListener, UnixStream};

use crate::cri::json;
use crate::recording::Call;

/// Methods that change something, as the recordings have them.
const MUTATING: &[&str] = &[
    "RunPodSandbox",
    "StopPodSandbox",
    "RemovePodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "RemoveContainer",
    "UpdateContainerResources",
    "ReopenContainerLog",
    "ExecSync",
    "PullImage",
];

type Body = BoxBody<Bytes, hyper::Error>;
type Calls = Arc<Mutex<Vec<Call>>>;

/// A recording socket. Ends when dropped.
pub struct Recorder {
    calls: Calls,
    socket: PathBuf,
    // Holds the threads.
    _runtime: tokio::runtime::Runtime,
}

impl Recorder {
    /// Listens on `socket`; asks `upstream` for the runtime's socket at each new connection.
    pub fn start(
        socket: &Path,
        upstream: impl Fn() -> Option<PathBuf> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let calls = Calls::default();
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(socket)?
        };
        let kept = calls.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Some(target) = upstream() {
                    tokio::spawn(serve(stream, target, kept.clone()));
                }
            }
        });
        Ok(Recorder { calls, socket: socket.to_owned(), _runtime: runtime })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// All calls so far, in the order of their arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(stream: UnixStream, target: PathBuf, calls: Calls) {
    let Ok(upstream) = UnixStream::connect(&target).await else { return };
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(upstream)).await;
    let Ok((sender, connection)) = shaken else { return };
    tokio::spawn(connection);
    let service = service_fn(move |request| {
        let (sender, calls) = (sender.clone(), calls.clone());
        async move { Ok::<_, Infallible>(pass(request, sender, calls).await) }
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

/// gRPC codes.
const DEADLINE_EXCEEDED: &str = "4";
const UNAVAILABLE: &str = "14";

fn failure(code: &'static str, error: &dyn std::fmt::Display) -> Response<Body> {
    let empty = Full::new(Bytes::new()).map_err(|never| match never {}).boxed();
    let mut answer = Response::new(empty);
    let headers = answer.headers_mut();
    headers.insert("content-type", hyper::header::HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", hyper::header::HeaderValue::from_static(code));
    if let Ok(text) = hyper::header::HeaderValue::from_str(&error.to_string().replace('\n', " ")) {
        headers.insert("grpc-message", text);
    }
    answer
}

async fn pass(request: Request<Incoming>, mut sender: SendRequest<Body>, calls: Calls) -> Response<Body> {
    let rpc = request.uri().path().strip_prefix("/runtime.v1.").and_then(|p| p.split_once('/'));
    let rpc = rpc.map(|(_, method)| method.to_owned()).filter(|m| MUTATING.contains(&m.as_str()));
    let Some(rpc) = rpc else {
        let (head, body) = request.into_parts();
        return match sender.send_request(Request::from_parts(head, body.boxed())).await {
            Ok(answer) => answer.map(BodyExt::boxed),
            Err(error) => failure(UNAVAILABLE, &error),
        };
    };
    match record(rpc, request, sender, calls).await {
        Ok(answer) => answer,
        Err(error) => failure(UNAVAILABLE, &error),
    }
}

#[allow(clippy::cast_precision_loss, reason = "seconds to compare, not to add up")]
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// The message behind the five bytes that say how long it is.
fn message(body: &Bytes) -> &[u8] {
    body.get(5..).unwrap_or_default()
}

/// The runtime of the recordings refused commands without a time limit (lifecycle hooks) and pulls at once; so does this one.
fn is_refused(calls: &Calls, place: usize) -> bool {
    let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    let call = &mut calls[place];
    let untimed = call.rpc == "ExecSync" && call.request["timeout"].as_str().is_none_or(|t| t == "0");
    let refused = untimed || call.rpc == "PullImage";
    if refused {
        call.end = now();
    }
    refused
}

async fn record(
    rpc: String,
    request: Request<Incoming>,
    mut sender: SendRequest<Body>,
    calls: Calls,
) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let start = now();
    let call = Call {
        request: json(&format!("runtime.v1.{rpc}Request"), message(&bytes)),
        rpc: rpc.clone(),
        start,
        end: f64::INFINITY,
        made: None,
    };
    let place = {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(call);
        calls.len() - 1
    };
    if is_refused(&calls, place) {
        return Ok(failure(DEADLINE_EXCEEDED, &"Deadline Exceeded"));
    }
    let whole = Full::new(bytes).map_err(|never| match never {}).boxed();
    let answer = sender.send_request(Request::from_parts(head, whole)).await?;
    let (head, body) = answer.into_parts();
    let collected = body.collect().await?;
    let trailers = collected.trailers().cloned();
    let bytes = collected.to_bytes();
    {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls[place].end = now();
        if ["RunPodSandbox", "CreateContainer"].contains(&rpc.as_str()) && bytes.len() > 5 {
            let response = json(&format!("runtime.v1.{rpc}Response"), message(&bytes));
            let id = response["pod_sandbox_id"].as_str().or(response["container_id"].as_str());
            calls[place].made = id.map(str::to_owned);
        }
    }
    let whole = Full::new(bytes).map_err(|never| match never {});
    let body = match trailers {
        Some(trailers) => whole.with_trailers(async move { Some(Ok(trailers)) }).boxed(),
        None => whole.boxed(),
    };
    Ok(Response::from_parts(head, body))
}
