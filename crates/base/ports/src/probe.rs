//! Probes that go over the network.

use std::time::Duration;

use async_trait::async_trait;
use model::probe::ProbeOutcome;

/// Where a probe goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetTarget {
    /// GET a URL; redirects on the same host are followed.
    Http {
        /// `https` instead of `http`; certificates are not verified.
        tls: bool,
        /// Host name or address to connect to.
        host: String,
        /// Port.
        port: u16,
        /// Path with query; begins with `/`.
        path: String,
        /// Headers in order, `Host` left out. A name may stand more than once.
        headers: Vec<(String, String)>,
        /// Value of the `Host` header when it is not that of the URL.
        host_header: Option<String>,
    },
    /// Open a connection and close it.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// `grpc.health.v1.Health/Check`, in plain text.
    Grpc {
        /// Address.
        host: String,
        /// Port.
        port: u16,
        /// Service name, may be empty.
        service: String,
        /// `User-Agent` to send.
        user_agent: String,
    },
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetAttempt {
    /// How it ended.
    pub outcome: ProbeOutcome,
    /// Text for the event.
    pub output: String,
}

/// Carries network probes out.
#[async_trait]
pub trait NetProber: Send + Sync + 'static {
    /// One attempt; ends within `timeout`, which covers the whole exchange. Dropping the future cancels it.
    async fn probe(&self, target: NetTarget, timeout: Duration) -> NetAttempt;
}
