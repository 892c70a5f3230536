//! The HTTPS server of the node (interfaces 3.1, 3.4) and its read-only sibling: listeners, TLS, who may ask, and what
//! nobody may take too much of.
//!
//! Every request, also one for a path that does not exist, passes authentication and authorization before the router sees it,
//! and the router sees the very path that was authorised. What strangers hold is bounded: connections (the oldest idle one of
//! the busiest address goes), bytes of heads, time of handshakes and heads, questions to the API server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use contract::certificates::CertificateView;
use contract::view::Published;
use node_access::Rules;
use ports::api::ApiServer;

mod accept;
mod access;
mod client_ca;
mod counts;
mod lookups;
mod places;
mod reviews;
mod service;
mod talk;
mod tls;
mod tracked;
mod wire;

#[cfg(test)]
mod tests;

pub use accept::Listening;
pub use counts::{Counted, Counts};
pub use node_access::User as Caller;

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
    pub certificates: Published<CertificateView>,
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
    fn rules(&self) -> Rules {
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

/// Why a server does not serve. All of them end the daemon.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nobody could ever be let in.
    #[error("no authentication method configured")]
    NoAuthentication,
    /// Webhook authentication in standalone mode.
    #[error("no client provided, cannot use webhook authentication")]
    NoClientForAuthentication,
    /// Webhook authorization in standalone mode.
    #[error("no client provided, cannot use webhook authorization")]
    NoClientForAuthorization,
    /// The bundle of client authorities cannot be used.
    #[error("client CA file {} (--client-ca-file) cannot be used: {reason}", path.display())]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// TLS cannot be set up as configured.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The port cannot be opened.
    #[error("cannot listen on {address} ({flag})")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The flag that names the port.
        flag: &'static str,
        /// Why.
        source: std::io::Error,
    },
}

/// Checks the settings and opens the port of the HTTPS server.
///
/// # Errors
/// The settings cannot work, or the port cannot be opened.
pub async fn open(front: Front) -> Result<Listening, ServeError> {
    if front.authn.client_ca_file.is_none() && !front.authn.webhook && !front.authn.anonymous {
        return Err(ServeError::NoAuthentication);
    }
    if front.authn.webhook && front.api.is_none() {
        return Err(ServeError::NoClientForAuthentication);
    }
    if matches!(front.authz, Authz::Webhook { .. }) && front.api.is_none() {
        return Err(ServeError::NoClientForAuthorization);
    }
    let ca = match &front.authn.client_ca_file {
        None => None,
        Some(path) => Some(Arc::new(client_ca::ClientCa::read(path, front.limits.look)?)),
    };
    let tls = tls::Side::new(&front.tls, front.certificates.clone(), ca.clone())?;
    let access = access::Access::new(&front, ca);
    let way = accept::Way::Secure { tls: Arc::new(tls), access: Arc::new(access) };
    accept::listen((front.address, front.port), "--port", way, front.limits)
}

/// Opens the read-only port.
///
/// # Errors
/// It cannot be opened.
pub async fn open_read_only(settings: ReadOnly) -> Result<Listening, ServeError> {
    accept::listen((settings.address, settings.port), "--read-only-port", accept::Way::Open, settings.limits)
}

/// Opens the port of the HTTPS server and serves on it until `stop` resolves, and then for [`Limits::grace`] what is under way.
///
/// # Errors
/// See [`open`].
pub async fn serve(front: Front, router: Router, stop: impl Future<Output = ()> + Send) -> Result<(), ServeError> {
    open(front).await?.serve(router, stop).await;
    Ok(())
}

/// As [`serve`], for the read-only port.
///
/// # Errors
/// See [`open_read_only`].
pub async fn serve_read_only(
    settings: ReadOnly,
    router: Router,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    open_read_only(settings).await?.serve(router, stop).await;
    Ok(())
}
