//! The HTTPS server of the node (interfaces 3.1, 3.4) and its read-only sibling: listeners, TLS, who may ask, and what
//! nobody may take too much of.
//!
//! Every request, also one for a path that does not exist, passes authentication and authorization before the router sees it,
//! and the router sees the very path that was authorised. What strangers hold is bounded: connections (the oldest idle one of
//! the busiest address goes), bytes of heads, time of handshakes and heads, questions to the API server.

use std::sync::Arc;

use axum::Router;

mod accept;
mod access;
mod client_ca;
mod connection_state;
mod counts;
mod error;
mod lookups;
mod places;
mod response_body;
mod reviews;
mod serve;
mod service;
mod settings;
mod tls;
mod traced;
mod wire;

#[cfg(test)]
mod tests;

pub use accept::Listening;
pub use counts::{Counted, Counts};
pub use error::ServeError;
pub use node_access::User as Caller;
pub use settings::{Authn, Authz, Front, Limits, ReadOnly, Tls};

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
    let tls = tls::ServerTls::new(&front.tls, front.certificates.clone(), ca.clone())?;
    let access = access::Access::new(&front, ca);
    let transport = serve::Transport::Tls { tls: Arc::new(tls), access: Arc::new(access) };
    accept::listen((front.address, front.port), "--port", transport, front.limits, front.accepting)
}

/// Opens the read-only port.
///
/// # Errors
/// It cannot be opened.
pub async fn open_read_only(settings: ReadOnly) -> Result<Listening, ServeError> {
    let at = (settings.address, settings.port);
    accept::listen(at, "--read-only-port", serve::Transport::Plain, settings.limits, settings.accepting)
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
