//! Tokens in headers.

#[cfg(test)]
mod tests;

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
                let bytes = base64url(encoded).ok_or(BadCredential::Undecodable)?;
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

/// Decodes base64url without padding.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    // One character alone holds no byte.
    (held < 6).then_some(out)
}
