//! Probes and hooks over the network: HTTP(S) with hyper, plain TCP, gRPC health.
//!
//! Owns nothing but the wire: one connection per attempt, closed at its end; no proxy, no keep-alive, no compression, no
//! certificate check, as a kubelet does it (pod-lifecycle 8.3, 5.10). Never decides what an outcome means.
//!
//! COMPAT(kubelet): a kubelet sets `SO_LINGER` to 1 s on probe sockets; here a close would then block the thread that all
//! probes share, so it is left out.

#![forbid(unsafe_code)]

mod connect;
mod grpc;
mod http;
mod outcome;

use std::time::Duration;

use async_trait::async_trait;
use model::probe::ProbeOutcome;
use model::url::Url;
use ports::hook::{HookHttp, HookRequest};
use ports::probe::{NetAttempt, NetProber, NetTarget};
use resolver::Resolver;
use tokio::time::{Instant, timeout_at};

use crate::connect::{Connector, connect};
use crate::grpc::Check;
use crate::http::{Exchange, Get};
use crate::outcome::{judge, outcome};

/// Carries probes and hooks out. Cheap to clone.
#[derive(Clone)]
pub struct Prober {
    connector: Connector,
}

impl std::fmt::Debug for Prober {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prober")
    }
}

impl Prober {
    /// A prober that looks names up as this host is told to.
    #[must_use]
    pub fn new() -> Self {
        Self::with_resolver(Resolver::new())
    }

    /// A prober that looks names up with `resolver`.
    #[must_use]
    pub fn with_resolver(resolver: Resolver) -> Self {
        Prober { connector: Connector::new(resolver) }
    }

    async fn tcp(&self, host: &str, port: u16, timeout: Duration) -> Result<(), String> {
        let until = Instant::now() + timeout;
        let places = match timeout_at(until, self.connector.resolver.places(host, port)).await {
            Ok(found) => found.map_err(|why| format!("dial tcp: {why}"))?,
            Err(_) => return Err(format!("dial tcp: lookup {host}: i/o timeout")),
        };
        let first = places[0];
        match timeout_at(until, connect(places)).await {
            Ok(connected) => connected.map(drop),
            Err(_) => Err(format!("dial tcp {first}: i/o timeout")),
        }
    }
}

impl Default for Prober {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl NetProber for Prober {
    async fn probe(&self, target: NetTarget, timeout: Duration) -> NetAttempt {
        match target {
            NetTarget::Http { tls, host, port, path, headers, host_header } => {
                let url = Url { tls, host, port: Some(port), path };
                judge(http::get(&self.connector, Get { url, headers, host_header }, timeout).await)
            }
            NetTarget::Tcp { host, port } => match self.tcp(&host, port, timeout).await {
                Ok(()) => outcome(ProbeOutcome::Success, ""),
                Err(why) => outcome(ProbeOutcome::Failure, why),
            },
            NetTarget::Grpc { host, port, service, user_agent } => {
                let check = Check { host: &host, port, service, user_agent: &user_agent };
                grpc::check(&self.connector, check, timeout).await
            }
        }
    }
}

/// How long a hook may take: its caller's grace ends it earlier.
const HOOK_TIMEOUT: Duration = Duration::from_secs(3600);

#[async_trait]
impl HookHttp for Prober {
    async fn get(&self, request: HookRequest) -> Result<(), String> {
        let (host_headers, mut headers): (Vec<_>, Vec<_>) =
            request.headers.into_iter().partition(|(n, _)| n.eq_ignore_ascii_case("host"));
        headers.retain(|(n, v)| !(n.eq_ignore_ascii_case("accept") && v.is_empty()));
        let get = Get {
            url: Url {
                tls: request.scheme.eq_ignore_ascii_case("https"),
                host: request.host,
                port: Some(request.port),
                path: if request.path.starts_with('/') { request.path } else { format!("/{}", request.path) },
            },
            headers,
            host_header: host_headers.into_iter().next().map(|(_, v)| v),
        };
        match http::get(&self.connector, get, HOOK_TIMEOUT).await {
            Exchange::Answer { .. } | Exchange::BodyFailed(_) => Ok(()),
            Exchange::Failed(why) | Exchange::BadRequest(why) => Err(why),
        }
    }
}

#[cfg(test)]
mod tests;
