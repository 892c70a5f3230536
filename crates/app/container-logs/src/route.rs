//! From a request to an answer: texts and codes of interfaces 4.3.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use container_log::{LogOptions, choose, decode, quote};
use contract::lookup::FoundPod;
use futures::stream;
use model::url::unescape;
use model::{ContainerId, Timestamp, pod};

use crate::Deps;
use crate::liveness::{self, Liveness};
use crate::reader::{Log, Reader};

/// The route. It answers whoever asks: authentication and authorization stand before it.
pub fn router(deps: Deps) -> Router {
    // One pattern for all, as parts of the path may be empty, which is an answer of its own.
    Router::new().route("/containerLogs/{*path}", any(container_logs)).with_state(Arc::new(deps))
}

async fn container_logs(State(deps): State<Arc<Deps>>, request: Request) -> Response {
    // HEAD is no GET here, as a kubelet has it.
    if request.method() != Method::GET {
        let allow = [(axum::http::header::ALLOW, "GET")];
        return (StatusCode::METHOD_NOT_ALLOWED, allow, "405: Method Not Allowed").into_response();
    }
    match prepare(&deps, request.uri().path(), request.uri().query().unwrap_or_default()) {
        Ok(wanted) => Body::from_stream(body(deps, wanted)).into_response(),
        Err((code, text)) => (StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST), text).into_response(),
    }
}

/// What an accepted request asks for.
struct Asked {
    found: FoundPod,
    /// As the status has it: `<runtime>://<id>`.
    full_id: String,
    options: LogOptions,
}

/// Everything that can be refused with a code. After it the answer is 200, whatever happens.
fn prepare(deps: &Deps, path: &str, query: &str) -> Result<Asked, (u16, String)> {
    let lookup = &deps.lookup;
    let [namespace, name, container] = parts(path).ok_or_else(|| (404, "404: Page Not Found".to_owned()))?;
    for (part, text) in
        [(&name, "Missing podID."), (&namespace, "Missing podNamespace."), (&container, "Missing container name.")]
    {
        if part.is_empty() {
            return Err((400, format!("{{\"message\": \"{text}\"}}")));
        }
    }
    let options = decode(query, deps.settings.split_streams).map_err(|r| (r.code, r.body))?;
    let quoted = |text: &str| quote(text.as_bytes());
    let found = lookup.by_name(&namespace, &name);
    let found = found.ok_or_else(|| (404, format!("pod {} does not exist", quoted(&name))))?;
    if pod::find_container(found.pod(), &container).is_none() {
        return Err((404, format!("container {} not found in pod {}", quoted(&container), quoted(&name))));
    }
    let status = lookup.status_of(&found).unwrap_or_default();
    let full_id = choose(&status, &name, &container, options.previous).map_err(|text| (400, text))?;
    Ok(Asked { found, full_id, options })
}

/// Namespace, pod and container of a path; parts may be empty. A slash at the end is no part.
fn parts(path: &str) -> Option<[String; 3]> {
    let mut parts: Vec<&str> = path.strip_prefix("/containerLogs/")?.split('/').collect();
    if parts.len() == 4 && parts[3].is_empty() {
        parts.pop();
    }
    let text = |part| String::from_utf8(unescape(part).ok()?.into_owned()).ok();
    let parts: Vec<String> = parts.into_iter().map(text).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// The answer: nothing is asked or opened before the client has its 200.
fn body(deps: Arc<Deps>, asked: Asked) -> impl futures::Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
    enum At {
        Start(Box<(Arc<Deps>, Asked)>),
        Reading(Box<Reader>),
        End,
    }
    stream::unfold(At::Start(Box::new((deps, asked))), |at| async move {
        let mut reader = match at {
            At::Start(start) => match open(&start.0, start.1).await {
                Ok(reader) => Box::new(reader),
                Err(text) => return Some((Ok(Bytes::from(text)), At::End)),
            },
            At::Reading(reader) => reader,
            At::End => return None,
        };
        let chunk = reader.next().await?;
        Some((Ok(chunk), At::Reading(reader)))
    })
}

async fn open(deps: &Deps, asked: Asked) -> Result<Reader, String> {
    let id = ContainerId::from(model::ids::bare_id(&asked.full_id));
    let path = log_path(deps, &asked.found, &id).await;
    let path = path.ok_or_else(|| format!("unable to retrieve container logs for {}", asked.full_id))?;
    let follow = asked.options.follow.then(|| {
        let row = deps.lookup.runtime.subscribe(asked.found.uid.clone());
        Liveness::new(row, id.clone(), deps.runtime.clone())
    });
    let now = Timestamp(deps.clock.unix_nanos());
    let log = Log { path, since: asked.options.since(now), options: asked.options, follow };
    Reader::open(log, &deps.watch, deps.effects.clone()).await
}

/// Where the runtime writes the log. It knows by itself; the board has it from there.
async fn log_path(deps: &Deps, found: &FoundPod, id: &ContainerId) -> Option<PathBuf> {
    let observed = deps.lookup.observed(&found.uid);
    let seen = observed.as_ref().and_then(|pod| pod.containers.iter().find(|c| c.id == *id));
    let path = match seen.map(|c| c.log_path.clone()).filter(|path| !path.is_empty()) {
        Some(path) => path,
        None => match liveness::status(&*deps.runtime, id).await {
            Ok(status) => status.log_path,
            Err(e) => {
                tracing::debug!(container = %id, error = %e.go_text(), "the runtime does not tell where the log is");
                return None;
            }
        },
    };
    (!path.is_empty()).then(|| PathBuf::from(path))
}
