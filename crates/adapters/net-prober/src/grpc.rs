//! The standard health check of gRPC (`grpc.health.v1`), in plain text.

use std::error::Error;
use std::time::Duration;

use hyper::http::uri::PathAndQuery;
use model::probe::ProbeOutcome;
use model::url::authority;
use ports::probe::NetAttempt;
use tokio::time::{Instant, timeout_at};
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic::{Code, Request};
use tonic_prost::ProstCodec;

use crate::connect::Connector;
use crate::outcome::outcome;

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub(crate) service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    pub(crate) status: i32,
}

const METHOD: &str = "/grpc.health.v1.Health/Check";
const SERVING: i32 = 1;

fn word(status: i32) -> String {
    match status {
        0 => "UNKNOWN".to_owned(),
        1 => "SERVING".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        n => n.to_string(),
    }
}

/// What to check.
pub(crate) struct Check<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) service: String,
    pub(crate) user_agent: &'a str,
}

/// One check; `timeout` covers dialling and the call.
pub(crate) async fn check(connector: &Connector, call: Check<'_>, timeout: Duration) -> NetAttempt {
    let Check { host, port, service, user_agent } = call;
    let until = Instant::now() + timeout;
    let place = authority(host, port);
    let failure = |why: String| outcome(ProbeOutcome::Failure, why);
    let endpoint = match Endpoint::from_shared(format!("http://{place}")).and_then(|e| e.user_agent(user_agent)) {
        Ok(endpoint) => endpoint,
        Err(e) => return failure(format!("error: failed to connect service at {place:?}: {e}")),
    };
    let connect = endpoint.connect_with_connector(tower_fn(connector.clone(), host.to_owned(), port));
    let channel = match timeout_at(until, connect).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(e)) => return failure(format!("error: failed to connect service at {place:?}: {}", root(&e))),
        Err(_) => {
            return failure(format!(
                "timeout: failed to connect service {place:?} within {}: context deadline exceeded",
                seconds(timeout)
            ));
        }
    };
    let mut client = Grpc::new(channel);
    let call = async {
        client.ready().await.map_err(|e| tonic::Status::unavailable(root(&e)))?;
        let codec: ProstCodec<HealthCheckRequest, HealthCheckResponse> = ProstCodec::default();
        client.unary(Request::new(HealthCheckRequest { service }), PathAndQuery::from_static(METHOD), codec).await
    };
    match timeout_at(until, call).await {
        Err(_) => failure(format!("timeout: health rpc did not complete within {}", seconds(timeout))),
        Ok(Ok(answer)) => match answer.into_inner().status {
            SERVING => outcome(ProbeOutcome::Success, "service healthy"),
            other => failure(format!("service unhealthy (responded with {:?})", word(other))),
        },
        Ok(Err(status)) => failure(match status.code() {
            Code::Unimplemented => format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                status.message()
            ),
            Code::DeadlineExceeded => format!("timeout: health rpc did not complete within {}", seconds(timeout)),
            code => format!("error: health rpc probe failed: rpc error: code = {code:?} desc = {}", status.message()),
        }),
    }
}

/// Whole seconds as Go prints them; probe timeouts have no fractions.
fn seconds(timeout: Duration) -> String {
    format!("{}s", timeout.as_secs())
}

/// Dials as the other probes do, so that failures read alike.
fn tower_fn(
    connector: Connector,
    host: String,
    port: u16,
) -> impl tower::Service<
    hyper::Uri,
    Response = hyper_util::rt::TokioIo<tokio::net::TcpStream>,
    Error = std::io::Error,
    Future: Send,
> + Send
+ 'static {
    tower::service_fn(move |_| {
        let (connector, host) = (connector.clone(), host.clone());
        async move { connector.dial(&host, port).await.map(hyper_util::rt::TokioIo::new).map_err(std::io::Error::other) }
    })
}

/// The innermost cause.
fn root(e: &dyn Error) -> String {
    let mut e = e;
    while let Some(inner) = e.source() {
        e = inner;
    }
    e.to_string()
}
