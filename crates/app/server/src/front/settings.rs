//! What the servers are told.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contract::board::ValueReader;
use contract::certificates::CertificateView;
use node_access::Rules;
use ports::api::ApiServer;

use crate::listener::Accepting;

/// Settings of the HTTPS server.
#[derive(Clone)]
pub struct Front {
    /// `address`. `0.0.0.0` means both families, as with other node daemons.
    pub address: IpAddr,
    /// `port`; 0: any that is free (tests).
    pub port: u16,
    /// Name of the node, as the authorizer is asked about it.
    pub node_name: String,
    /// TLS.
    pub tls: Tls,
    /// Where the serving certificate stands; the next handshake takes what stands there then.
    pub certificates: ValueReader<CertificateView>,
    /// Who is who.
    pub authn: Authn,
    /// Who may what.
    pub authz: Authz,
    /// Feature gate `KubeletFineGrainedAuthz`.
    pub fine_grained: bool,
    /// The API server that webhooks ask; `None`: standalone.
    pub api: Option<Arc<dyn ApiServer>>,
    /// Limits.
    pub limits: Limits,
    /// Where it shows that the port takes nobody.
    pub accepting: Accepting,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front")
            .field("address", &self.address)
            .field("port", &self.port)
            .field("authn", &self.authn)
            .field("authz", &self.authz)
            .finish_non_exhaustive()
    }
}

impl Front {
    pub(super) fn rules(&self) -> Rules {
        if self.fine_grained { Rules::FineGrained } else { Rules::Legacy }
    }
}

/// Settings of TLS.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// `tlsMinVersion`: `VersionTLS10` to `VersionTLS13`; empty: 1.2. Older ones than 1.2 are not spoken.
    pub min_version: String,
    /// `tlsCipherSuites`; empty: all that are safe. Holds for TLS 1.2.
    pub cipher_suites: Vec<String>,
    /// `tlsCurvePreferences`: numbers of groups; empty: all.
    pub curves: Vec<i32>,
}

/// Settings of authentication.
#[derive(Clone, Debug)]
pub struct Authn {
    /// `authentication.x509.clientCAFile`.
    pub client_ca_file: Option<PathBuf>,
    /// `authentication.webhook.enabled`.
    pub webhook: bool,
    /// `authentication.webhook.cacheTTL`.
    pub cache_ttl: Duration,
    /// `authentication.anonymous.enabled`.
    pub anonymous: bool,
}

/// Settings of authorization.
#[derive(Clone, Debug)]
pub enum Authz {
    /// `authorization.mode: AlwaysAllow`.
    AlwaysAllow,
    /// `authorization.mode: Webhook`.
    Webhook {
        /// `authorization.webhook.cacheAuthorizedTTL`.
        allowed_ttl: Duration,
        /// `authorization.webhook.cacheUnauthorizedTTL`.
        denied_ttl: Duration,
    },
}

/// Settings of the read-only server: plain HTTP, everybody may ask.
#[derive(Clone, Debug)]
pub struct ReadOnly {
    /// `address`.
    pub address: IpAddr,
    /// `readOnlyPort`.
    pub port: u16,
    /// Limits.
    pub limits: Limits,
    /// As [`Front::accepting`].
    pub accepting: Accepting,
}

/// What nobody may take more of. The defaults are a kubelet's where it has any (interfaces 3.1).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Of these, connections of callers who have not yet been authorised and show no good certificate.
    pub strangers: usize,
    /// Time for a TLS handshake.
    pub handshake: Duration,
    /// Time for a request's head, from its first byte on.
    pub head: Duration,
    /// Life of a connection without requests.
    pub idle: Duration,
    /// Time for one request and its answer; streams after an upgrade are free of it.
    pub request: Duration,
    /// Largest head, bytes.
    pub head_bytes: usize,
    /// Largest head of a caller who shows no good certificate, bytes.
    pub stranger_head_bytes: usize,
    /// Largest body of a request, bytes.
    pub body_bytes: usize,
    /// Time that requests and streams get to end when the server stops.
    pub grace: Duration,
    /// How often the file of client authorities is looked at, at most.
    pub look: Duration,
    /// Time for one review, its tries included.
    pub review: Duration,
    /// Reviews under way at a time, and 8 times as many requests that wait for one.
    pub reviews: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            strangers: 256,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            request: Duration::from_secs(4 * 3600),
            head_bytes: 1 << 20,
            stranger_head_bytes: 32 << 10,
            body_bytes: 3 << 20,
            grace: Duration::from_secs(5),
            look: Duration::from_secs(1),
            review: Duration::from_secs(10),
            reviews: 16,
        }
    }
}
