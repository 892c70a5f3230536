//! What is written to a plugin and read from it (interfaces 8.6).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::docker_config::{Auth, AuthMap};
use crate::duration;

#[cfg(test)]
mod tests;

/// For how many images an answer holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheScope {
    /// The image that was asked for.
    Image,
    /// All of its registry.
    Registry,
    /// Everything.
    Global,
}

/// A plugin's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// For how many images it holds.
    pub scope: CacheScope,
    /// For how long; absent: the configured default.
    pub cache_duration: Option<Duration>,
    /// Credentials by pattern.
    pub auths: AuthMap,
}

/// Why an answer is none. Never quotes it, as it may hold passwords.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExchangeError {
    /// It speaks another version than it was configured for.
    #[error(
        "apiVersion from credential plugin response did not match expected apiVersion:{expected}, actual apiVersion:{actual}"
    )]
    Version {
        /// What was configured.
        expected: String,
        /// What came.
        actual: String,
    },
    /// No JSON of the right shape.
    #[error("error decoding credential provider plugin response from stdout")]
    Shape,
    /// A scope that does not exist.
    #[error("credential provider plugin did not return a valid cacheKeyType: {0:?}")]
    Scope(String),
}

/// What a plugin reads from its standard input.
#[must_use]
pub fn request(api_version: &str, image: &str, token: Option<&str>, annotations: &BTreeMap<String, String>) -> Vec<u8> {
    let mut request = json!({"kind": "CredentialProviderRequest", "apiVersion": api_version, "image": image});
    if let Some(token) = token {
        request["serviceAccountToken"] = json!(token);
    }
    if !annotations.is_empty() {
        request["serviceAccountAnnotations"] = json!(annotations);
    }
    let mut out = request.to_string().into_bytes();
    out.push(b'\n');
    out
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Raw {
    kind: String,
    #[allow(dead_code, reason = "looked at before, here so that it is a known field")]
    api_version: String,
    #[serde(default)]
    cache_key_type: String,
    cache_duration: Option<String>,
    auth: Option<BTreeMap<String, RawAuth>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAuth {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

/// Reads a plugin's standard output.
///
/// # Errors
/// See [`ExchangeError`].
pub fn answer(api_version: &str, stdout: &[u8]) -> Result<Answer, ExchangeError> {
    let value: Value = serde_json::from_slice(stdout).map_err(|_| ExchangeError::Shape)?;
    let actual = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if actual != api_version {
        return Err(ExchangeError::Version { expected: api_version.to_owned(), actual: actual.to_owned() });
    }
    let raw: Raw = serde_json::from_value(value).map_err(|_| ExchangeError::Shape)?;
    if raw.kind != "CredentialProviderResponse" {
        return Err(ExchangeError::Shape);
    }
    let scope = match raw.cache_key_type.as_str() {
        "Image" => CacheScope::Image,
        "Registry" => CacheScope::Registry,
        "Global" => CacheScope::Global,
        other => return Err(ExchangeError::Scope(other.to_owned())),
    };
    let cache_duration = match raw.cache_duration.as_deref().map(duration::parse) {
        None => None,
        Some(Ok(d)) => Some(d),
        // Over before it began.
        Some(Err(duration::DurationError::Negative)) => Some(Duration::ZERO),
        Some(Err(duration::DurationError::Form)) => return Err(ExchangeError::Shape),
    };
    let of = |a: RawAuth| Auth { username: a.username, password: a.password, ..Auth::default() };
    let auths = raw.auth.unwrap_or_default().into_iter().map(|(k, a)| (k, of(a))).collect();
    Ok(Answer { scope, cache_duration, auths })
}
