//! One request: read in one way, let in or not, answered by the router.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use futures::FutureExt;
use http_body_util::Limited;
use hyper::body::Incoming;
use tokio::time::Instant;
use tower::Service;

use super::access::{Access, Denied, Shown};
use super::connection_state::{ConnectionState, Phase};
use super::counts::{Counts, add};
use super::places::Places;
use super::response_body::{ResponseBody, Underway};
use super::settings::Limits;
use super::traced;

/// What all requests of a server share.
pub(super) struct Served {
    pub(super) router: Router,
    /// `None`: the read-only server.
    pub(super) access: Option<Arc<Access>>,
    pub(super) places: Arc<Places>,
    pub(super) limits: Limits,
    pub(super) counts: Arc<Counts>,
}

/// What all requests of a connection share.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) served: Arc<Served>,
    pub(super) conn: Arc<ConnectionState>,
    pub(super) shown: Shown,
}

impl Connection {
    /// Answers a request.
    pub(super) async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let server = if self.served.access.is_some() { "readwrite" } else { "readonly" };
        let labels = node_access::labels(request.method().as_str(), request.uri().path());
        let underway = Underway::begin(self.conn.clone(), labels, server);
        add(&self.served.counts.requests);
        let ends = Instant::now() + self.served.limits.request;
        let head_only = request.method() == Method::HEAD;
        let answered = tokio::time::timeout_at(ends, self.guarded(request)).await;
        let mut response = answered.unwrap_or_else(|_| plain(StatusCode::SERVICE_UNAVAILABLE, "Timeout"));
        if head_only {
            // HTTP/2 would send it, and break the stream by that.
            *response.body_mut() = Body::empty();
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // From here on the stream is its handler's; its place is free when it ends.
            self.conn.enter(Phase::Upgraded);
        }
        Ok(response.map(|body| Body::new(ResponseBody::new(body, underway, ends))))
    }

    async fn guarded(&self, request: Request<Incoming>) -> Response<Body> {
        match AssertUnwindSafe(self.admitted(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => {
                add(&self.served.counts.panics);
                tracing::error!("a handler of the HTTP server panicked");
                plain(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
            }
        }
    }

    async fn admitted(&self, mut request: Request<Incoming>) -> Response<Body> {
        if let Err(refusal) = self.admit(&mut request).await {
            return refusal;
        }
        request.extensions_mut().insert(ConnectInfo(self.conn.peer));
        let most = self.served.limits.body_bytes;
        let request = request.map(|body| Body::new(Limited::new(body, most)));
        let span = traced::begin(&request, self.served.access.is_some());
        let mut router = self.served.router.clone();
        let response = match span.run(router.call(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        traced::end(span, response.status());
        response
    }

    /// Lets a request through, with the path that was authorised, or answers it.
    async fn admit(&self, request: &mut Request<Incoming>) -> Result<(), Response<Body>> {
        let user = match &self.served.access {
            Some(access) => {
                let user = access.user(&self.shown, self.conn.origin, request.headers_mut()).await;
                Some((access, user.map_err(|d| self.deny(d))?))
            }
            None => None,
        };
        let path = node_access::canonical(request.uri().path()).map_err(|refused| {
            add(&self.served.counts.bad_paths);
            plain(StatusCode::BAD_REQUEST, &format!("Bad Request: {refused}"))
        })?;
        if let Some((access, user)) = user {
            let checked = access.check(&user, request.method().as_str(), &path.first).await;
            checked.map_err(|d| self.deny(d))?;
            if !user.is_anonymous() {
                self.served.places.trust(&self.conn);
            }
            request.extensions_mut().insert(user);
        }
        self.conn.grant();
        let Some(uri) = with_path(request.uri(), &path.path) else {
            return Err(plain(StatusCode::BAD_REQUEST, "Bad Request"));
        };
        *request.uri_mut() = uri;
        Ok(())
    }

    fn deny(&self, denied: Denied) -> Response<Body> {
        let counts = &self.served.counts;
        match denied {
            Denied::Unauthorized => {
                add(&counts.unauthenticated);
                plain(StatusCode::UNAUTHORIZED, node_access::UNAUTHORIZED)
            }
            Denied::Forbidden(body) => {
                add(&counts.forbidden);
                plain(StatusCode::FORBIDDEN, &body)
            }
            Denied::Failed(body) => {
                add(&counts.authorizer_failures);
                plain(StatusCode::INTERNAL_SERVER_ERROR, &body)
            }
            Denied::Busy => {
                add(&counts.busy);
                let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
        }
    }
}

/// The same URI with another path.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    if uri.path() == path {
        return Some(uri.clone());
    }
    let both = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(both.ok()?);
    Uri::from_parts(parts).ok()
}

fn plain(code: StatusCode, body: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() = code;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}
