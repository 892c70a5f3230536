//! The routes: who is asked for what, and what is answered when it cannot be had.

use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use contract::lookup::FoundPod;
use cri_api::v1;
use model::core::Container;
use model::runtime::{ContainerObservation, ContainerState};
use ports::runtime::{RuntimeCode, RuntimeError};

use crate::backend::Backend;
use crate::deps::Deps;
use crate::options::{self, StreamOptions, V5};
use crate::refusal::{Refusal, plain, refuse};
use crate::relay::relay;
use crate::tunnel::tunnel;
use crate::{remote_command, websocket};

/// Seconds after which the runtime has forgotten the tokens that it has too many of.
const RETRY_AFTER: &str = "60";

/// `/exec`, `/attach` and `/portForward`, with and without UID, for GET and POST. Connections must be served with
/// upgrades; `ConnectInfo<SocketAddr>` of the client is used when it is there.
pub fn router(deps: Deps) -> Router {
    Router::new()
        .route("/exec/{namespace}/{pod}/{third}", get(exec).post(exec).fallback(wrong_method))
        .route("/exec/{namespace}/{pod}/{third}/{container}", get(exec).post(exec).fallback(wrong_method))
        .route("/attach/{namespace}/{pod}/{third}", get(attach).post(attach).fallback(wrong_method))
        .route("/attach/{namespace}/{pod}/{third}/{container}", get(attach).post(attach).fallback(wrong_method))
        .route("/portForward/{namespace}/{pod}", get(port_forward).post(port_forward).fallback(wrong_method))
        .route("/portForward/{namespace}/{pod}/{third}", get(port_forward).post(port_forward).fallback(wrong_method))
        .with_state(deps)
}

type Names = Path<Vec<String>>;
type Pairs = Query<Vec<(String, String)>>;

async fn wrong_method() -> Response {
    plain(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed".to_owned())
}

async fn exec(State(deps): State<Deps>, names: Names, query: Pairs, request: Request) -> Response {
    serve(&deps, Kind::Exec, &names, &query, request).await.unwrap_or_else(|refusal| *refusal)
}

async fn attach(State(deps): State<Deps>, names: Names, query: Pairs, request: Request) -> Response {
    serve(&deps, Kind::Attach, &names, &query, request).await.unwrap_or_else(|refusal| *refusal)
}

async fn port_forward(State(deps): State<Deps>, names: Names, query: Pairs, request: Request) -> Response {
    forward(&deps, &names, &query, request).await.unwrap_or_else(|refusal| *refusal)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exec,
    Attach,
}

/// exec and attach. A UID in the path is not looked at, as in a kubelet: the pod's name is enough.
async fn serve(
    deps: &Deps,
    kind: Kind,
    Path(names): &Names,
    Query(query): &Pairs,
    mut request: Request,
) -> Result<Response, Refusal> {
    only_get_and_post(&request)?;
    let (namespace, name, container) = match names.as_slice() {
        [namespace, name, container] | [namespace, name, _, container] => (namespace, name, container),
        _ => return Err(refuse(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())),
    };
    let mut wanted = StreamOptions::parse(query).map_err(|text| refuse(StatusCode::BAD_REQUEST, text))?;
    let found = pod(deps, namespace, name)?;
    let id = running(deps, &found, container).map(|c| c.id.as_str().to_owned());
    let url = match kind {
        Kind::Exec => {
            let missing = || internal(format!("container not found ({container:?})"));
            exec_url(deps, id.ok_or_else(missing)?, &wanted).await
        }
        Kind::Attach => {
            let missing = || internal(format!("container {container} not found in pod {name}_{namespace}"));
            let id = id.ok_or_else(missing)?;
            wanted.tty = has_tty(&found, container).ok_or_else(missing)?;
            wanted.stderr &= !wanted.tty;
            attach_url(deps, id, &wanted).await
        }
    };
    let backend = backend(url)?;
    let headers = request.headers();
    if deps.settings.websockets && options::is_websocket(headers) && options::subprotocols(headers).contains(&V5) {
        let subresource = if kind == Kind::Exec { "exec" } else { "attach" };
        metrics::http::WEBSOCKET_STREAMS.with_label_values(&[subresource]).inc();
        let response = websocket::accept(&request, Some(V5))?;
        let client = hyper::upgrade::on(&mut request);
        let settings = deps.settings.clone();
        deps.streams.spawn(remote_command::serve(client, backend, wanted, settings));
        return Ok(response);
    }
    relayed(deps, &backend, request).await
}

async fn forward(
    deps: &Deps,
    Path(names): &Names,
    Query(query): &Pairs,
    request: Request,
) -> Result<Response, Refusal> {
    only_get_and_post(&request)?;
    let (namespace, name, uid) = match names.as_slice() {
        [namespace, name] => (namespace, name, None),
        [namespace, name, uid] => (namespace, name, Some(uid.as_str())),
        _ => return Err(refuse(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())),
    };
    let headers = request.headers();
    let is_websocket = options::is_websocket(headers);
    let is_tunnel = deps.settings.websockets && is_websocket && !options::tunnelled(headers).is_empty();
    let port = if is_websocket && !is_tunnel {
        options::ports(query).map_err(|text| refuse(StatusCode::BAD_REQUEST, text))?
    } else {
        Vec::new()
    };
    pod(deps, namespace, name)?;
    let not_found = || refuse(StatusCode::NOT_FOUND, "pod not found".to_owned());
    let found = deps.lookup.by_full_name(namespace, name, uid).ok_or_else(not_found)?;
    let observed = deps.lookup.observed(&found.uid);
    let sandbox = observed.as_ref().and_then(|o| o.sandboxes.first()).filter(|s| s.ready);
    let missing = || internal(format!("pod not found (\"{name}_{namespace}({})\")", found.uid.as_str()));
    let sandbox = sandbox.ok_or_else(missing)?.id.as_str().to_owned();
    let request_url = v1::PortForwardRequest { pod_sandbox_id: sandbox, port };
    let backend = backend(deps.runtime.port_forward(request_url).await.map(|answer| answer.url))?;
    if is_tunnel {
        metrics::http::WEBSOCKET_STREAMS.with_label_values(&["portforward"]).inc();
        return Ok(tunnel(deps, &backend, request).await);
    }
    relayed(deps, &backend, request).await
}

/// GET routes would take HEAD, too.
fn only_get_and_post(request: &Request) -> Result<(), Refusal> {
    if request.method() == Method::HEAD {
        return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, String::new()));
    }
    Ok(())
}

fn pod(deps: &Deps, namespace: &str, name: &str) -> Result<FoundPod, Refusal> {
    let missing = || refuse(StatusCode::NOT_FOUND, "pod does not exist".to_owned());
    deps.lookup.by_name(namespace, name).ok_or_else(missing)
}

fn running(deps: &Deps, found: &FoundPod, container: &str) -> Option<ContainerObservation> {
    let observed = deps.lookup.observed(&found.uid)?;
    observed.container(container).filter(|c| c.state == ContainerState::Running).cloned()
}

/// Whether the container's process has a terminal, by its spec: an attach cannot change that.
fn has_tty(found: &FoundPod, name: &str) -> Option<bool> {
    let spec = found.pod().spec.as_ref()?;
    let init = spec.init_containers.iter().flatten();
    let mut plain: Vec<&Container> = spec.containers.iter().chain(init).collect();
    plain.retain(|c| c.name == name);
    let ephemeral = spec.ephemeral_containers.iter().flatten().find(|c| c.name == name);
    let tty = plain.first().map(|c| c.tty).or_else(|| ephemeral.map(|c| c.tty))?;
    Some(tty.unwrap_or_default())
}

async fn exec_url(deps: &Deps, container_id: String, wanted: &StreamOptions) -> Result<String, RuntimeError> {
    let StreamOptions { stdin, stdout, stderr, tty, command } = wanted.clone();
    let request = v1::ExecRequest { container_id, cmd: command, tty, stdin, stdout, stderr };
    Ok(deps.runtime.exec(request).await?.url)
}

async fn attach_url(deps: &Deps, container_id: String, wanted: &StreamOptions) -> Result<String, RuntimeError> {
    let StreamOptions { stdin, stdout, stderr, tty, .. } = *wanted;
    let request = v1::AttachRequest { container_id, stdin, tty, stdout, stderr };
    Ok(deps.runtime.attach(request).await?.url)
}

fn backend(url: Result<String, RuntimeError>) -> Result<Backend, Refusal> {
    let url = url.map_err(|e| {
        let status = match e.code {
            RuntimeCode::NotFound => StatusCode::NOT_FOUND,
            RuntimeCode::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = refuse(status, e.go_text());
        if status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    })?;
    Backend::parse(&url).map_err(|e| internal(e.to_string() + "\n"))
}

async fn relayed(deps: &Deps, backend: &Backend, request: Request) -> Result<Response, Refusal> {
    if !options::is_upgrade(request.headers()) {
        return Err(internal("Upgrade request required\n".to_owned()));
    }
    Ok(relay(deps, backend, request).await)
}

fn internal(text: String) -> Refusal {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
}
