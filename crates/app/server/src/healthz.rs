//! `/healthz` on its own plain port (interfaces 3.5): up before everything else, so that kubeadm sees a node that still waits for
//! its certificate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

#[cfg(test)]
mod tests;

/// Connections at a time; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// A connection may live this long.
const CONNECTION_LIFE: Duration = Duration::from_secs(60);
/// A caller has this long to send a request's head.
const HEAD: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(5) };
/// Size of a request's head, bytes.
const HEAD_BYTES: usize = 8 * 1024;
/// Fields of a request's head.
const HEAD_FIELDS: usize = 64;
/// Pause before a port that could not be opened is tried again.
const RETRY: Duration = Duration::from_secs(5);

type Probe = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Named checks of the node's health. Probes answer at once: they read what others found.
#[derive(Clone)]
pub struct Checks(Arc<Vec<(&'static str, Probe)>>);

impl std::fmt::Debug for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Default for Checks {
    /// `ping`, which always passes.
    fn default() -> Self {
        Self(Arc::new(vec![("ping", Arc::new(|| Ok(())))]))
    }
}

impl Checks {
    /// One more check, after the others. The reason of a failure is told to callers of `/healthz/NAME` only.
    #[must_use]
    pub fn with(&self, name: &'static str, probe: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        let mut all = (*self.0).clone();
        all.push((name, Arc::new(probe)));
        Self(Arc::new(all))
    }

    /// Runs all checks, in order.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, Result<(), String>)> + '_ {
        self.0.iter().map(|(name, probe)| (*name, probe()))
    }

    /// The first check that fails, with its reason.
    #[must_use]
    pub fn first_failure(&self) -> Option<(&'static str, String)> {
        self.0.iter().find_map(|(name, probe)| Some((*name, probe().err()?)))
    }
}

/// `/healthz` and `/healthz/NAME`, for any server that shows health.
pub fn router(checks: Checks) -> Router {
    Router::new().route("/healthz", get(all)).route("/healthz/{name}", get(one)).with_state(checks)
}

fn answer(code: StatusCode, body: String) -> Response {
    let head = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (code, head, body).into_response()
}

async fn all(State(checks): State<Checks>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let pairs = query.split('&').map(|p| p.split_once('=').unwrap_or((p, "")));
    let mut verbose = false;
    let mut excluded = Vec::new();
    for (key, value) in pairs {
        match key {
            "verbose" => verbose = true,
            "exclude" => excluded.push(value),
            _ => {}
        }
    }
    let mut lines = String::new();
    let mut failed = false;
    for (name, probe) in checks.0.iter() {
        if let Some(at) = excluded.iter().position(|e| e == name) {
            excluded.remove(at);
            lines.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        match probe() {
            Ok(()) => lines.push_str(&format!("[+]{name} ok\n")),
            Err(reason) => {
                tracing::warn!(check = name, reason, "healthz check failed");
                lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
                failed = true;
            }
        }
    }
    for name in excluded {
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {name:?}\n"));
    }
    match (failed, verbose) {
        (true, _) => answer(StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}healthz check failed\n")),
        (false, true) => answer(StatusCode::OK, format!("{lines}healthz check passed\n")),
        (false, false) => answer(StatusCode::OK, "ok".to_owned()),
    }
}

async fn one(State(checks): State<Checks>, Path(name): Path<String>) -> Response {
    match checks.0.iter().find(|(n, _)| *n == name) {
        None => answer(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
        Some((_, probe)) => match probe() {
            Ok(()) => answer(StatusCode::OK, "ok".to_owned()),
            Err(reason) => answer(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")),
        },
    }
}

/// Serves on an address until the task is dropped. A port that cannot be opened is logged and tried again: a node without its
/// health port goes on.
pub async fn serve(address: SocketAddr, checks: Checks) {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => accept(listener, checks.clone()).await,
            Err(e) => tracing::error!(%address, error = %e, "healthz cannot be served, trying again in 5 s"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Serves the connections of a listener until it fails.
pub async fn accept(listener: TcpListener, checks: Checks) {
    let router = router(checks);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    let _in_time = tokio::time::timeout(CONNECTION_LIFE, serve_connection(stream, router)).await;
                    drop(place);
                });
            }
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(e) => {
                // Out of file descriptors, most probably: the others give theirs back.
                tracing::warn!(error = %e, "healthz takes no connection");
                return;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_FIELDS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(e) = served {
        tracing::trace!(error = %e, "a connection to healthz ended badly");
    }
}
