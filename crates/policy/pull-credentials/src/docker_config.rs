//! Files and secrets that hold registry passwords, as the docker client writes them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, PAD};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// One way to sign in.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Auth {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
    /// Only part of the hash of credentials.
    pub email: String,
    /// Token that stands for the user. A kubelet does not read it; used only where there is no user name.
    pub identity_token: String,
}

// Passwords stay out of logs.
impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Auth({:?}, <secret>)", self.username)
    }
}

/// Credentials by registry, with or without scheme and path.
pub type AuthMap = BTreeMap<String, Auth>;

/// Why a text holds no credentials. Never quotes the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// No JSON; the parser's words without any of the text.
    #[error("invalid JSON at line {0} column {1}")]
    Json(usize, usize),
    /// JSON of another shape; where.
    #[error("{0} must be an object of strings")]
    Shape(String),
    /// `auth` is no base64.
    #[error("auth of {0:?} is not base64")]
    Base64(String),
    /// `auth` has no colon.
    #[error("unable to parse auth field, must be formatted as base64(username:password)")]
    NoColon,
}

/// Credentials of a `config.json` or `.dockerconfigjson`: its `auths`.
///
/// # Errors
/// See [`CredentialError`].
pub fn parse_config_json(text: &[u8]) -> Result<AuthMap, CredentialError> {
    match json(text)? {
        Value::Object(mut fields) => match fields.remove("auths") {
            None | Some(Value::Null) => Ok(AuthMap::new()),
            Some(auths) => entries(auths, "auths"),
        },
        Value::Null => Ok(AuthMap::new()),
        _ => Err(CredentialError::Shape("the document".to_owned())),
    }
}

/// Credentials of a `.dockercfg`: the whole document.
///
/// # Errors
/// See [`CredentialError`].
pub fn parse_dockercfg(text: &[u8]) -> Result<AuthMap, CredentialError> {
    match json(text)? {
        Value::Null => Ok(AuthMap::new()),
        document => entries(document, "the document"),
    }
}

fn json(text: &[u8]) -> Result<Value, CredentialError> {
    serde_json::from_slice(text).map_err(|e| CredentialError::Json(e.line(), e.column()))
}

fn entries(value: Value, at: &str) -> Result<AuthMap, CredentialError> {
    let Value::Object(fields) = value else { return Err(CredentialError::Shape(at.to_owned())) };
    fields.into_iter().map(|(registry, entry)| Ok((registry.clone(), auth(&registry, &entry)?))).collect()
}

fn auth(registry: &str, entry: &Value) -> Result<Auth, CredentialError> {
    let shape = || CredentialError::Shape(format!("the entry {registry:?}"));
    let text = |key: &str| match entry.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(_) => Err(shape()),
    };
    if !entry.is_object() && !entry.is_null() {
        return Err(shape());
    }
    let mut out = Auth {
        username: text("username")?,
        password: text("password")?,
        email: text("email")?,
        identity_token: text("identitytoken")?,
    };
    let both = text("auth")?;
    if !both.is_empty() {
        let decoded = decoded(&both).map_err(|_| CredentialError::Base64(registry.to_owned()))?;
        let decoded = String::from_utf8_lossy(&decoded);
        let (username, password) = decoded.split_once(':').ok_or(CredentialError::NoColon)?;
        (out.username, out.password) = (username.to_owned(), password.to_owned());
    }
    Ok(out)
}

/// Standard base64 with all of its padding or none, as tolerant as Go: line breaks and bits behind the last byte are ignored.
fn decoded(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let text: String = text.trim().chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let padding = if text.ends_with('=') { PAD } else { NO_PAD };
    GeneralPurpose::new(&STANDARD, padding.with_decode_allow_trailing_bits(true)).decode(text)
}
