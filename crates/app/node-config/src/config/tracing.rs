//! Spans of this daemon.

use std::path::PathBuf;

/// Where spans go, and how many of them (`tracing`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tracing {
    /// `tracing.endpoint`: the collector, OTLP over gRPC without TLS.
    pub endpoint: TracingEndpoint,
    /// `tracing.samplingRatePerMillion`: of a million traces that begin here so many are recorded. Others are when their
    /// parent is.
    pub sampling_rate_per_million: u32,
}

/// A name that gRPC knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TracingEndpoint {
    /// Host or address, and port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
    /// A socket without a file, and its name.
    Abstract(String),
}

impl Default for TracingEndpoint {
    fn default() -> Self {
        Self::Tcp("localhost".to_owned(), 4317)
    }
}

impl std::fmt::Display for TracingEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix-abstract:{name}"),
        }
    }
}
