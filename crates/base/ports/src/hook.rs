//! HTTP requests of lifecycle hooks.

use async_trait::async_trait;

/// Part of the error of an HTTPS request whose peer speaks plain HTTP.
pub const HTTP_TO_HTTPS: &str = "http: server gave HTTP response to HTTPS client";

/// One GET of a lifecycle hook (pod-lifecycle 5.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRequest {
    /// `http` or `https` (certificates are not verified).
    pub scheme: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path with query, as given.
    pub path: String,
    /// Headers as given; an empty `Accept` removes it.
    pub headers: Vec<(String, String)>,
}

/// Sends hook requests. Any HTTP status is a success: only transport errors fail.
#[async_trait]
pub trait HookHttp: Send + Sync + 'static {
    /// One GET, with redirects to the same host followed.
    ///
    /// # Errors
    /// The text of the transport error, in the words of Go's client. An answer without TLS to a request with it reads
    /// `http: server gave HTTP response to HTTPS client`.
    async fn get(&self, request: HookRequest) -> Result<(), String>;
}
