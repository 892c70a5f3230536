//! The routes.

use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use flate2::Compression;
use flate2::write::GzEncoder;
use metrics::prometheus::proto::MetricFamily;

use crate::collect;
use crate::deps::Deps;
use crate::encode::{Form, takes_gzip};

/// Any method but DELETE on `slis` reads, as with a kubelet, whose mux looks at paths alone.
pub(crate) fn router(deps: Arc<Deps>) -> Router {
    Router::new()
        .route("/metrics", any(main))
        .route("/metrics/probes", any(probes))
        .route("/metrics/slis", any(slis).delete(forget))
        .with_state(deps)
}

async fn main(State(deps): State<Arc<Deps>>, headers: HeaderMap) -> Response {
    answer(&headers, &collect::main(&deps).await)
}

async fn probes(State(deps): State<Arc<Deps>>, headers: HeaderMap) -> Response {
    answer(&headers, &collect::probes(&deps).await)
}

async fn slis(State(deps): State<Arc<Deps>>, headers: HeaderMap) -> Response {
    answer(&headers, &collect::slis(&deps))
}

async fn forget() -> &'static str {
    metrics::slis::reset();
    "metrics reset\n"
}

fn answer(headers: &HeaderMap, families: &[MetricFamily]) -> Response {
    let form = Form::negotiate(headers);
    let body = form.encode(families);
    let mut response = if takes_gzip(headers) {
        match gzip(&body) {
            Ok(packed) => {
                let mut response = Body::from(packed).into_response();
                response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                response
            }
            Err(e) => return (StatusCode::INTERNAL_SERVER_ERROR, format!("metrics: {e}\n")).into_response(),
        }
    } else {
        Body::from(body).into_response()
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type()));
    response
}

/// Level 1: a scrape's worth of text shrinks to a tenth with it, and the CPU is the pods'.
fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::fast());
    out.write_all(body)?;
    out.finish()
}
