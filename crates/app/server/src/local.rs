//! The local socket: HTTP over a unix socket of mode 0600. It answers the command line, and whoever is root here with the
//! node's own endpoints (`/containerLogs`, `/exec`, `/stats/summary` ...) at their usual paths, without asking who it is.

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use axum::Router;
use axum::routing::{get, post};
use tokio::net::UnixListener;

use crate::listener::{Accepting, Listener};

mod answer;
mod managers;
mod near;
mod places;
mod pressure;
mod routes;
mod stands;
mod views;

pub use answer::{
    Actors, ApiLine, CertificateLine, EventLine, Manifests, NodeInfo, PluginLine, PodDetail, PodItems, Refused,
    Registration, VolumeLine, WorkerLine,
};
pub use places::{
    AskedLine, DifferenceLine, Done, HistoryLine, ManagerLine, Managers, NotDone, RefusedLine, ShadowLine, SwapOrder,
};
pub use pressure::{ConditionLine, PressureInfo, ReclaimLine, SignalLine, ThresholdLine, VictimLine};
pub use views::Views;

/// All routes.
pub fn router(views: Views) -> Router {
    Router::new()
        .route("/v1/pods", get(routes::pods))
        .route("/v1/pods/{name}", get(routes::pod))
        .route("/v1/why/{name}", get(stands::why))
        .route("/v1/timeline/{name}", get(stands::timeline))
        .route("/v1/actors", get(routes::actors))
        .route("/v1/manifests", get(routes::manifests))
        .route("/v1/plugins", get(routes::plugins))
        .route("/v1/volumes", get(routes::volumes))
        .route("/v1/pressure", get(pressure::pressure))
        .route("/v1/events", get(routes::events))
        .route("/v1/node", get(routes::node))
        .route("/v1/managers", get(managers::all))
        .route("/v1/managers/{name}", get(managers::one))
        .route("/v1/managers/{name}/swap", post(managers::swap))
        .route("/v1/managers/{name}/rollback", post(managers::roll_back))
        .route("/v1/faults", post(routes::add_fault).get(routes::faults).delete(routes::clear_faults))
        .with_state(Arc::new(views))
}

/// Where one pod stands and what its life was, for callers of the node's port that may use all of the node (`nodes/proxy`).
pub fn stands_router(views: Views) -> Router {
    Router::new()
        .route("/bosun/why/{namespace}/{name}", get(stands::why_of))
        .route("/bosun/timeline/{namespace}/{name}", get(stands::timeline_of))
        .with_state(Arc::new(views))
}

/// The socket, opened anew when it is broken. See [`bind`].
///
/// # Errors
/// As of [`bind`].
pub fn listen(path: &Path, accepting: Accepting) -> io::Result<Listener<UnixListener>> {
    let (socket, name, path) = (bind(path)?, path.display().to_string(), path.to_owned());
    Ok(Listener::new(socket, name, accepting, move || bind(&path)))
}

/// Binds the socket: its folder is made 0700 when absent, a socket that nobody answers is replaced, the mode is 0600.
///
/// # Errors
/// The path cannot be bound, or another daemon answers on it.
fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if let Some(dir) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    if path.exists() {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            let text = format!("{} is served by another bosun; stop it or choose --socket", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves the views and `extra` (the node's endpoints, at paths outside `/v1`) until `stop` resolves. Connections may be
/// upgraded.
pub async fn serve(
    listener: Listener<UnixListener>,
    views: Views,
    extra: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    // Never an error: the listener goes on for ever.
    let _ended = axum::serve(listener, router(views).merge(extra)).with_graceful_shutdown(stop).await;
}

#[cfg(test)]
mod tests;
