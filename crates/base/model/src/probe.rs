//! Words about probes: their kinds, how one attempt ends, what attempts add up to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProbeKind {
    /// Decides whether the container is up at all; gates the others.
    Startup,
    /// Decides whether the container takes traffic.
    Readiness,
    /// Decides whether the container must be restarted.
    Liveness,
}

impl ProbeKind {
    /// As events and metrics of a kubelet name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Readiness => "Readiness",
            ProbeKind::Liveness => "Liveness",
        }
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Standing verdict of one probe on one container instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum ProbeVerdict {
    /// Passed its success threshold.
    Success,
    /// Passed its failure threshold.
    Failure,
    /// No decided result yet.
    Unknown,
}
crate::tolerant!(ProbeVerdict, else ProbeVerdict::Unknown);

/// Where a probe goes that goes over the network.
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

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeOutcome {
    /// Good.
    Success,
    /// Good, with something to tell.
    Warning,
    /// Bad; a target that cannot be reached is bad too.
    Failure,
    /// The attempt says nothing about the target: counts as nothing.
    Error,
}
