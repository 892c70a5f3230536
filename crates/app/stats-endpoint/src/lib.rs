//! `/stats/summary`, `/metrics/resource` and `/metrics/cadvisor` (interfaces 5.3, 5.4, 6).
//!
//! Owns methods, parameters, status codes and encoding of these paths. Never measures: StatsManager does. Authentication and
//! authorization are the front's.

#![forbid(unsafe_code)]

use actor::{Class, Effects};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use contract::stats::{Cadvisor, Resource, StatsError, Summarise};
use contract::{Crew, Server};

mod form;
#[cfg(test)]
mod tests;

/// Prometheus text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Most that a form may hold; it has one parameter of interest.
const FORM_LIMIT: usize = 64 << 10;

/// What the endpoints work with.
#[derive(Clone, Debug)]
pub struct Deps {
    /// Who measures.
    pub crew: Crew<Server>,
    /// Packs long answers.
    pub effects: Effects,
}

/// The endpoints, open to whoever reaches them.
pub fn router(deps: Deps) -> Router {
    Router::new()
        .route("/stats/summary", any(summary))
        .route("/stats", any(no_such_page))
        .route("/stats/", any(no_such_page))
        .route("/stats/{*rest}", any(no_such_page))
        .route("/metrics/resource", any(resource))
        .route("/metrics/cadvisor", any(cadvisor))
        .with_state(deps)
}

async fn summary(State(deps): State<Deps>, request: Request) -> Response {
    if request.method() != Method::GET && request.method() != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, [("Allow", "GET, POST")], "405: Method Not Allowed").into_response();
    }
    let only = match only_cpu_and_memory(request).await {
        Ok(only) => only,
        Err(text) => return internal(&format!("parse form failed: {text}")),
    };
    match deps.crew.call(Summarise { only_cpu_and_memory: only }).await {
        Ok(summary) => match serde_json::to_vec(&summary.in_whole_seconds()) {
            Ok(json) => ([(CONTENT_TYPE, "application/json")], json).into_response(),
            Err(e) => internal(&e.to_string()),
        },
        Err(e) => internal(&e.to_string()),
    }
}

/// The one parameter, from the query and, with POST, from the form: it counts when it is given once and is `true`.
async fn only_cpu_and_memory(request: Request) -> Result<bool, String> {
    const NAME: &str = "only_cpu_and_memory";
    let query = request.uri().query().unwrap_or_default().to_owned();
    let is_form = request.method() == Method::POST
        && request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.split(';').next().unwrap_or_default().trim() == "application/x-www-form-urlencoded");
    let body = if is_form { read_form(request.into_body()).await? } else { Bytes::new() };
    let form = String::from_utf8_lossy(&body);
    let mut values = Vec::new();
    for text in [form.as_ref(), query.as_str()] {
        values.extend(form::values(text, NAME)?);
    }
    Ok(values == ["true"])
}

async fn read_form(body: Body) -> Result<Bytes, String> {
    to_bytes(body, FORM_LIMIT).await.map_err(|_| "http: POST too large".to_owned())
}

async fn resource(State(deps): State<Deps>, headers: HeaderMap) -> Response {
    metrics(&deps.effects, deps.crew.ask(Resource).await.map_err(Into::into), &headers).await
}

async fn cadvisor(State(deps): State<Deps>, headers: HeaderMap) -> Response {
    metrics(&deps.effects, deps.crew.call(Cadvisor).await, &headers).await
}

async fn metrics(effects: &Effects, text: Result<std::sync::Arc<str>, StatsError>, headers: &HeaderMap) -> Response {
    let text = match text {
        Ok(text) => text,
        Err(e) => return internal(&e.to_string()),
    };
    let plain = |text: &str| ([(CONTENT_TYPE, TEXT), (VARY, "Accept-Encoding")], text.to_owned()).into_response();
    if !accepts_gzip(headers) {
        return plain(&text);
    }
    let packed = {
        let text = text.clone();
        effects.attempt(Class::Computing, move || gzip(text.as_bytes())).await
    };
    match packed {
        Ok(Ok(packed)) => {
            let head = [(CONTENT_TYPE, TEXT), (VARY, "Accept-Encoding"), (CONTENT_ENCODING, "gzip")];
            (head, packed).into_response()
        }
        _ => plain(&text),
    }
}

/// `gzip` or `*` is named, and not with weight 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    let mut parts = named.flat_map(|v| v.split(','));
    parts.any(|part| {
        let mut words = part.split(';').map(str::trim);
        let coding = words.next().unwrap_or_default();
        let refused = words.filter_map(|w| w.strip_prefix("q=")).any(|q| q.parse() == Ok(0.0));
        (coding.eq_ignore_ascii_case("gzip") || coding == "*") && !refused
    })
}

fn gzip(text: &[u8]) -> std::io::Result<Vec<u8>> {
    use std::io::Write;
    // Metrics repeat themselves: the fastest level takes them to a tenth.
    let mut packer = flate2::write::GzEncoder::new(Vec::with_capacity(text.len() / 8), flate2::Compression::fast());
    packer.write_all(text)?;
    packer.finish()
}

async fn no_such_page() -> Response {
    (StatusCode::NOT_FOUND, "404: Page Not Found").into_response()
}

fn internal(text: &str) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Error: {text}")).into_response()
}
