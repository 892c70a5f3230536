//! Who asks, and whether they may (interfaces 3.4).

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use axum::http::{HeaderMap, HeaderValue};
use node_access::{Attributes, Rules, User};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::client_ca::ClientCa;
use super::lookups::Failed;
use super::reviews::{Accesses, Tokens};
use super::settings::{Authz, Front};

/// Why a request does not get through.
#[derive(Debug)]
pub(super) enum Denied {
    /// Nobody, or a credential that is bad.
    Unauthorized,
    /// Too many wait for the API server.
    Busy,
    /// Somebody who may not; the body.
    Forbidden(String),
    /// The authorizer failed; the body.
    Failed(String),
}

/// The certificates that a client showed.
pub(super) type Shown = Arc<[CertificateDer<'static>]>;

/// Authentication and authorization of one server.
pub(super) struct Access {
    ca: Option<Arc<ClientCa>>,
    tokens: Option<Arc<Tokens>>,
    anonymous: bool,
    /// `None`: everybody who is somebody may everything.
    accesses: Option<Arc<Accesses>>,
    rules: Rules,
}

impl Access {
    pub(super) fn new(front: &Front, ca: Option<Arc<ClientCa>>) -> Self {
        let api = front.api.as_ref().filter(|_| front.authn.webhook);
        let tokens = api.map(|api| Tokens::new(api.clone(), front.authn.cache_ttl, &front.limits));
        let accesses = match (&front.authz, &front.api) {
            (Authz::Webhook { allowed_ttl, denied_ttl }, Some(api)) => {
                Some(Accesses::new(api.clone(), &front.node_name, (*allowed_ttl, *denied_ttl), &front.limits))
            }
            // `open` refuses a webhook without an API server.
            _ => None,
        };
        Self { ca, tokens, anonymous: front.authn.anonymous, accesses, rules: front.rules() }
    }

    /// Whether somebody shows a certificate that is good now.
    pub(super) fn is_known(&self, shown: &Shown) -> bool {
        self.certificate(shown).is_some_and(|user| user.is_ok())
    }

    /// `None`: nothing was shown, or nobody is asked for certificates.
    fn certificate(&self, shown: &Shown) -> Option<Result<User, String>> {
        let ca = self.ca.as_ref()?;
        let leaf = shown.first()?;
        let verified = ca.current().verify(shown);
        Some(verified.and_then(|()| User::of_certificate(leaf).map_err(|e| e.to_string())))
    }

    /// Who asks. Credentials that were used are taken out of the headers: nobody behind us needs them.
    pub(super) async fn user(&self, shown: &Shown, origin: IpAddr, headers: &mut HeaderMap) -> Result<User, Denied> {
        let mut bad = false;
        match self.certificate(shown) {
            Some(Ok(user)) => return Ok(user.authenticated()),
            Some(Err(error)) => {
                tracing::debug!(error, "a client certificate was not accepted");
                bad = true;
            }
            None => {}
        }
        if let Some(tokens) = &self.tokens {
            match headers.get(AUTHORIZATION).map(|h| h.to_str().map(node_access::bearer)) {
                // Bytes that are no text are no token.
                Some(Err(_)) => bad = true,
                Some(Ok(Some(token))) => {
                    let token = token.to_owned();
                    if let Some(user) = ask(tokens, &token, origin).await? {
                        headers.remove(AUTHORIZATION);
                        return Ok(user.authenticated());
                    }
                    bad = true;
                }
                Some(Ok(None)) | None => {}
            }
            match protocols(headers) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    if let Some(user) = ask(tokens, &found.token, origin).await? {
                        headers.remove(SEC_WEBSOCKET_PROTOCOL);
                        let rest = HeaderValue::try_from(found.rest).map_err(|_| Denied::Unauthorized)?;
                        headers.insert(SEC_WEBSOCKET_PROTOCOL, rest);
                        return Ok(user.authenticated());
                    }
                    bad = true;
                }
                Err(error) => {
                    tracing::debug!(%error, "a websocket token was not accepted");
                    bad = true;
                }
            }
        }
        // Who shows something bad is not taken for nobody.
        if self.anonymous && !bad { Ok(User::anonymous()) } else { Err(Denied::Unauthorized) }
    }

    /// Whether a user may send a request; `first` is the first segment of its path.
    pub(super) async fn check(&self, user: &User, method: &str, first: &str) -> Result<(), Denied> {
        let Some(accesses) = &self.accesses else { return Ok(()) };
        let wants = Attributes::of(method, first, self.rules);
        for subresource in wants.subresources {
            match accesses.allowed(user, wants.verb, subresource).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Failed::Busy) => return Err(Denied::Busy),
                Err(Failed::Error(error)) => {
                    tracing::warn!(user = user.name, verb = wants.verb, subresource, error, "authorization failed");
                    return Err(Denied::Failed(node_access::authorization_error(&user.name, wants.verb, subresource)));
                }
            }
        }
        Err(Denied::Forbidden(node_access::forbidden(&user.name, &wants, self.rules)))
    }
}

async fn ask(tokens: &Arc<Tokens>, token: &str, origin: IpAddr) -> Result<Option<User>, Denied> {
    match tokens.user(token, origin).await {
        Ok(user) => Ok(user.map(|u| (*u).clone())),
        Err(Failed::Busy) => Err(Denied::Busy),
        Err(Failed::Error(error)) => {
            tracing::warn!(error, "a token could not be reviewed");
            Ok(None)
        }
    }
}

/// The token among the sub-protocols of a websocket request.
fn protocols(headers: &HeaderMap) -> Result<Option<node_access::Protocols>, node_access::BadCredential> {
    let says = |name, wanted: &str| {
        let values = headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
        values.flat_map(|v| v.split(',')).any(|v| v.trim().eq_ignore_ascii_case(wanted))
    };
    if !says(CONNECTION, "upgrade") || !says(UPGRADE, "websocket") {
        return Ok(None);
    }
    node_access::websocket(headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|v| v.to_str().ok()))
}
