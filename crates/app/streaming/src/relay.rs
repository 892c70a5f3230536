//! A client's upgrade request, replayed to the runtime; then bytes both ways, unseen.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::extract::Request;
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use crate::backend::Backend;
use crate::deps::{Deps, Settings};
use crate::handshake::{Answer, HandshakeError, upgrade};
use crate::refusal::{Refusal, refuse};
use crate::splice::splice;

/// Headers that concern one connection only, or that the runtime has no business with.
const NOT_REPLAYED: &[HeaderName] =
    &[header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::AUTHORIZATION, header::COOKIE];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Answers the client as the runtime answered us; after 101 the two are joined.
pub(crate) async fn relay(deps: &Deps, backend: &Backend, mut request: Request) -> Response {
    let client = hyper::upgrade::on(&mut request);
    let method = request.method().clone();
    let headers = replayed(&request);
    let (parts, runtime) = match ask(&deps.settings, backend, method, headers).await {
        Ok(switched) => switched,
        Err(answer) => return *answer,
    };
    let idle = deps.settings.idle_timeout;
    deps.streams.spawn(async move {
        match client.await {
            Ok(client) => {
                let ended = splice(TokioIo::new(client), runtime, idle).await;
                tracing::debug!(?ended, "stream relayed");
            }
            Err(e) => tracing::debug!(error = %e, "the client went before its stream began"),
        }
    });
    Response::from_parts(parts, Body::empty())
}

/// Dials the runtime and asks it to switch protocols.
///
/// # Errors
/// The answer for the client: the runtime's own when it refuses, 500 when it cannot be had or talks nonsense.
pub(crate) async fn ask(
    settings: &Settings,
    backend: &Backend,
    method: Method,
    headers: HeaderMap,
) -> Result<(Parts, TokioIo<Upgraded>), Refusal> {
    match connect(settings, backend, method, headers).await {
        Ok(Answer::Switched(parts, runtime)) => Ok((parts, runtime)),
        Ok(Answer::Refused(parts, body)) if parts.status.as_u16() >= 400 => Err(Box::new(forward(parts, body))),
        Ok(Answer::Refused(parts, _)) => {
            let text = format!("invalid upgrade response: status code {}", parts.status.as_u16());
            Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, text + "\n"))
        }
        Err(text) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, text + "\n")),
    }
}

/// As [`ask`], for callers with another way to tell failures.
pub(crate) async fn connect(
    settings: &Settings,
    backend: &Backend,
    method: Method,
    headers: HeaderMap,
) -> Result<Answer, String> {
    let stream = backend.dial(settings.answer_timeout).await.map_err(|e| e.to_string())?;
    let mut request = hyper::Request::new(Empty::<Bytes>::new());
    *request.method_mut() = method;
    *request.uri_mut() = backend.target.parse().map_err(|_| "error dialing backend: not a path".to_owned())?;
    *request.headers_mut() = headers;
    if !request.headers().contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(&backend.address())
    {
        request.headers_mut().insert(header::HOST, host);
    }
    upgrade(stream, request, settings.answer_timeout).await.map_err(|e| match e {
        HandshakeError::Http(e) => format!("the runtime's streaming server broke off: {e}"),
        HandshakeError::Timeout => "the runtime's streaming server did not answer in time".to_owned(),
    })
}

/// The client's headers, with the client's address.
pub(crate) fn replayed(request: &Request) -> HeaderMap {
    let mut headers = request.headers().clone();
    for name in NOT_REPLAYED {
        headers.remove(name);
    }
    if let Some(ConnectInfo(client)) = request.extensions().get::<ConnectInfo<SocketAddr>>() {
        let earlier: Vec<_> = headers.get_all(FORWARDED_FOR).iter().filter_map(|v| v.to_str().ok()).collect();
        let all =
            earlier.into_iter().map(str::to_owned).chain([client.ip().to_string()]).collect::<Vec<_>>().join(", ");
        if let Ok(value) = HeaderValue::from_str(&all) {
            headers.insert(FORWARDED_FOR, value);
        }
    }
    headers
}

/// The runtime's refusal, word for word; the connection ends with it.
fn forward(mut parts: Parts, body: Bytes) -> Response {
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
        parts.headers.remove(name);
    }
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    parts.extensions = axum::http::Extensions::new();
    parts.version = axum::http::Version::HTTP_11;
    Response::from_parts(parts, Body::from(body))
}
