//! Tokens in headers.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

#[cfg(test)]
mod tests;

/// As tolerant as Go: bits behind the last byte are ignored.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// A credential that was shown and cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCredential {
    /// Two tokens among the sub-protocols.
    #[error("more than one bearer token among the websocket subprotocols")]
    TwoTokens,
    /// Not base64url without padding, or not text.
    #[error("the bearer token among the websocket subprotocols cannot be decoded")]
    Undecodable,
    /// The token was the only sub-protocol.
    #[error("no websocket subprotocol besides the bearer token")]
    Alone,
}

/// Websocket sub-protocols with a token among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// The token.
    pub token: String,
    /// What is left for the endpoint, as the header's new value.
    pub rest: String,
}

/// Token of an `Authorization` header; other schemes and an empty token are none.
#[must_use]
pub fn bearer(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Token among the values of `Sec-WebSocket-Protocol` headers; `None`: there is none.
///
/// # Errors
/// There is one that cannot be used.
pub fn websocket<'a>(headers: impl Iterator<Item = &'a str>) -> Result<Option<Protocols>, BadCredential> {
    let mut token = None;
    let mut rest = Vec::new();
    for protocol in headers.flat_map(|h| h.split(',')).map(str::trim).filter(|p| !p.is_empty()) {
        match protocol.strip_prefix(PREFIX) {
            None => rest.push(protocol),
            Some(_) if token.is_some() => return Err(BadCredential::TwoTokens),
            Some(encoded) => {
                let bytes = BASE64URL.decode(encoded).map_err(|_| BadCredential::Undecodable)?;
                token = Some(String::from_utf8(bytes).map_err(|_| BadCredential::Undecodable)?);
            }
        }
    }
    match token {
        None => Ok(None),
        Some(_) if rest.is_empty() => Err(BadCredential::Alone),
        Some(token) => Ok(Some(Protocols { token, rest: rest.join(",") })),
    }
}
