//! One request: understood, troubled, answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Request, Response, StatusCode};
use model::url::Query;
use ports::api::{ApiError, ApiServer, Method, PatchKind};

use crate::reply::{Body, failure, whole};
use crate::state::Shared;
use crate::trouble::HttpTrouble;
use crate::watch;

/// Clients wait less long than this.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// Answers a request; an error ends the connection.
pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, io::Error> {
    let path = request.uri().path().to_owned();
    let query = Query::parse(request.uri().query().unwrap_or_default()).into_pairs();
    let header = request.headers().get(AUTHORIZATION).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let traceparent = request.headers().get("traceparent").and_then(|v| v.to_str().ok()).map(str::to_owned);
    shared.with(|s| {
        s.authorizations.push(header);
        s.traceparents.push(traceparent);
    });
    let Some(method) = method(&request) else {
        return Ok(failure(&ApiError::status(405, "MethodNotAllowed", "unknown method or content type")));
    };
    if matches!(path.as_str(), "/healthz" | "/livez" | "/readyz") {
        return Ok(whole(StatusCode::OK, "ok"));
    }
    match shared.with(|s| s.http.next(method, &path)) {
        Some(HttpTrouble::Body(code, body)) => {
            return Ok(whole(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), body));
        }
        Some(HttpTrouble::Cut) => return Err(cut()),
        Some(HttpTrouble::CutBody) => {
            let part = stream::once(async { Ok(Frame::data(Bytes::from_static(b"{\"kind\": \"Po"))) });
            let end = stream::once(async {
                // What was sent leaves the buffers first.
                tokio::time::sleep(Duration::from_millis(5)).await;
                Err(cut())
            });
            let part = part.chain(end);
            return Ok(Response::new(BodyExt::boxed(StreamBody::new(part))));
        }
        None => {}
    }
    if query.iter().any(|(key, value)| key == "watch" && matches!(value.as_str(), "true" | "1")) {
        return Ok(watch::answer(&shared, &path, &query));
    }
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let mut asked = ports::api::Request::new(method, path).body(body).deadline(FOREVER);
    asked.query = query;
    let created = method == Method::Post;
    match shared.api.call(asked).await {
        Ok(body) if created => Ok(whole(StatusCode::CREATED, body)),
        Ok(body) => Ok(whole(StatusCode::OK, body)),
        Err(error @ ApiError::Status { .. }) => Ok(failure(&error)),
        Err(_) => Err(cut()),
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "cut by the test")
}

fn method(request: &Request<Incoming>) -> Option<Method> {
    let content = request.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    Some(match (request.method().as_str(), content) {
        ("GET", _) => Method::Get,
        ("POST", _) => Method::Post,
        ("PUT", _) => Method::Put,
        ("DELETE", _) => Method::Delete,
        ("PATCH", "application/strategic-merge-patch+json") => Method::Patch(PatchKind::Strategic),
        ("PATCH", "application/merge-patch+json") => Method::Patch(PatchKind::Merge),
        _ => return None,
    })
}
