//! Why a server does not serve.

use std::net::SocketAddr;
use std::path::PathBuf;

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
