//! The server on `port`: what it offers and to whom (interfaces 1.3, 3).

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// What the server offers and to whom. [`Default`] gives the defaults of a configuration file; bare flags have others
/// (interfaces 1.1): anonymous callers, no webhooks, everything allowed, and a read-only port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// `address`: where the server listens.
    pub address: IpAddr,
    /// `port`: port of the server, published in the node's status.
    pub port: u16,
    /// `enableServer`: listen on `port` at all; health and the local socket are served anyway.
    pub enable_server: bool,
    /// `readOnlyPort`: the harmless part without TLS, to everybody; `None` (0): not served.
    pub read_only_port: Option<u16>,
    /// TLS of the server on `port`.
    pub tls: ServerTls,
    /// `authentication`.
    pub authentication: Authentication,
    /// `authorization`.
    pub authorization: Authorization,
    /// `enableDebuggingHandlers`: exec, logs, port forwarding and their like.
    pub enable_debugging_handlers: bool,
    /// `enableSystemLogHandler`: `/logs/`, the files of `/var/log`.
    pub enable_system_log_handler: bool,
    /// `enableSystemLogQuery`: `/logs/?query=`, the journal.
    pub enable_system_log_query: bool,
    /// `enableProfilingHandler`: `/debug/pprof/`.
    pub enable_profiling_handler: bool,
    /// `enableDebugFlagsHandler`: `/debug/flags/v`.
    pub enable_debug_flags_handler: bool,
    /// `streamingConnectionIdleTimeout`: a stream without a byte for so long ends.
    pub streaming_connection_idle_timeout: Duration,
}

/// Least version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TlsVersion {
    Tls10,
    Tls11,
    Tls12,
    Tls13,
}

impl TlsVersion {
    /// As configurations name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls10 => "VersionTLS10",
            Self::Tls11 => "VersionTLS11",
            Self::Tls12 => "VersionTLS12",
            Self::Tls13 => "VersionTLS13",
        }
    }
}

/// TLS of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerTls {
    /// `serverTLSBootstrap`: the serving certificate comes from the cluster (CSR).
    pub bootstrap: bool,
    /// `tlsCertFile`: serving certificate; `None`: `<cert-dir>/kubelet.crt`, made when absent.
    pub cert_file: Option<PathBuf>,
    /// `tlsPrivateKeyFile`: its key.
    pub private_key_file: Option<PathBuf>,
    /// `tlsCipherSuites`: names as IANA has them, for TLS 1.2 and below; empty: the defaults.
    pub cipher_suites: Vec<String>,
    /// `tlsCurvePreferences`: groups of key exchange by number, as Go and IANA count them; empty: the library's.
    pub curve_preferences: Vec<i32>,
    /// `tlsMinVersion`.
    pub min_version: TlsVersion,
}

impl Default for ServerTls {
    fn default() -> Self {
        Self {
            bootstrap: false,
            cert_file: None,
            private_key_file: None,
            cipher_suites: Vec::new(),
            curve_preferences: Vec::new(),
            min_version: TlsVersion::Tls12,
        }
    }
}

/// Who callers are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authentication {
    /// `x509.clientCAFile`: CA of callers with certificates; `None`: certificates say nothing.
    pub client_ca_file: Option<PathBuf>,
    /// `webhook.enabled`: the API server tells who a token belongs to.
    pub webhook: bool,
    /// `webhook.cacheTTL`: how long it is believed, whatever it said.
    pub webhook_cache_ttl: Duration,
    /// `anonymous.enabled`: callers without any credential come in as `system:anonymous`.
    pub anonymous: bool,
}

/// Who decides about callers (`authorization.mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthorizationMode {
    /// Nobody: everything is allowed.
    AlwaysAllow,
    /// The API server.
    Webhook,
}

/// What callers may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authorization {
    /// `mode`.
    pub mode: AuthorizationMode,
    /// `webhook.cacheAuthorizedTTL`: how long a yes is believed.
    pub cache_authorized_ttl: Duration,
    /// `webhook.cacheUnauthorizedTTL`: how long a no is believed.
    pub cache_unauthorized_ttl: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: 10250,
            enable_server: true,
            read_only_port: None,
            tls: ServerTls::default(),
            authentication: Authentication {
                client_ca_file: None,
                webhook: true,
                webhook_cache_ttl: Duration::from_secs(120),
                anonymous: false,
            },
            authorization: Authorization {
                mode: AuthorizationMode::Webhook,
                cache_authorized_ttl: Duration::from_secs(300),
                cache_unauthorized_ttl: Duration::from_secs(30),
            },
            enable_debugging_handlers: true,
            enable_system_log_handler: true,
            enable_system_log_query: false,
            enable_profiling_handler: true,
            enable_debug_flags_handler: true,
            streaming_connection_idle_timeout: Duration::from_secs(4 * 3600),
        }
    }
}

/// The health endpoint for this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Healthz {
    /// `healthzBindAddress`: where `/healthz` is served.
    pub bind_address: IpAddr,
    /// `healthzPort`; `None` (0): not served.
    pub port: Option<u16>,
}

impl Default for Healthz {
    fn default() -> Self {
        Self { bind_address: Ipv4Addr::LOCALHOST.into(), port: Some(10248) }
    }
}
