//! The `Authorization` header: fixed, from a file, or from a program.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use jiff::Timestamp;
use model::k8s_openapi::ByteString;
use ports::api::{ApiError, ApiResult};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::kubeconfig::{Auth, ExecPlugin};
use crate::pem::Identity;
use crate::tls::Shown;

/// A token file is read again when it was read so long ago.
const FILE_LIFE: Duration = Duration::from_secs(60);
/// How long a program may take.
const EXEC_LIMIT: Duration = Duration::from_secs(60);

/// What a request carries, and whether the client certificate is another one now.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) header: Option<HeaderValue>,
    pub(crate) certificate_changed: bool,
}

#[derive(Debug, Default)]
struct Cached {
    header: Option<HeaderValue>,
    read: Option<Instant>,
    /// `None`: good until refused.
    expires: Option<Timestamp>,
}

/// Where the header comes from.
#[derive(Debug)]
pub(crate) struct Credentials {
    auth: Auth,
    shown: Arc<Shown>,
    cached: Mutex<Cached>,
}

impl Credentials {
    pub(crate) fn new(auth: Auth, shown: Arc<Shown>) -> Self {
        Self { auth, shown, cached: Mutex::new(Cached::default()) }
    }

    /// For the next request.
    pub(crate) async fn carried(&self) -> ApiResult<Carried> {
        let mut cached = self.cached.lock().await;
        let fresh = |header| Ok(Carried { header, certificate_changed: false });
        match &self.auth {
            Auth::None => fresh(None),
            Auth::Token(token) => fresh(Some(bearer(token)?)),
            Auth::Basic(name, password) => fresh(Some(basic(name, password)?)),
            Auth::TokenFile(path) => {
                if cached.read.is_none_or(|at| at.elapsed() >= FILE_LIFE) {
                    match tokio::fs::read_to_string(path).await {
                        Ok(text) if !text.trim().is_empty() => cached.header = Some(bearer(text.trim())?),
                        // The old token may still do; it is tried until the file is back.
                        Ok(_) | Err(_) if cached.header.is_some() => {}
                        Ok(_) => return Err(not_ready(format!("{} is empty", path.display()))),
                        Err(e) => return Err(not_ready(format!("cannot read {}: {e}", path.display()))),
                    }
                    cached.read = Some(Instant::now());
                }
                fresh(cached.header.clone())
            }
            Auth::Exec(plugin) => {
                let good = cached.read.is_some() && cached.expires.is_none_or(|at| Timestamp::now() < at);
                if good {
                    return fresh(cached.header.clone());
                }
                let status = run(plugin).await?;
                let header = status.token.as_deref().map(bearer).transpose()?;
                let identity = status.identity(plugin)?;
                let certificate_changed = identity.is_some();
                if let Some(identity) = identity {
                    self.shown.set(Some(identity.key));
                }
                *cached = Cached {
                    header: header.clone(),
                    read: Some(Instant::now()),
                    expires: status.expiration_timestamp.as_deref().and_then(|t| t.parse().ok()),
                };
                Ok(Carried { header, certificate_changed })
            }
        }
    }

    /// The server answered 401: the next request asks anew.
    pub(crate) async fn refused(&self) {
        let mut cached = self.cached.lock().await;
        cached.read = None;
    }
}

fn not_ready(message: String) -> ApiError {
    ApiError::NotReady { message }
}

fn bearer(token: &str) -> ApiResult<HeaderValue> {
    secret(format!("Bearer {token}"))
}

fn basic(name: &str, password: &str) -> ApiResult<HeaderValue> {
    let pair = ByteString(format!("{name}:{password}").into_bytes());
    let encoded = serde_json::to_value(pair).unwrap_or_default();
    secret(format!("Basic {}", encoded.as_str().unwrap_or_default()))
}

fn secret(text: String) -> ApiResult<HeaderValue> {
    let mut header = HeaderValue::try_from(text)
        .map_err(|_| not_ready("the credentials hold characters that cannot be sent".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}

/// `ExecCredential.status`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecStatus {
    token: Option<String>,
    expiration_timestamp: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    kind: String,
    status: Option<ExecStatus>,
}

impl ExecStatus {
    fn identity(&self, plugin: &ExecPlugin) -> ApiResult<Option<Identity>> {
        let (Some(certificate), Some(key)) = (&self.client_certificate_data, &self.client_key_data) else {
            return Ok(None);
        };
        Identity::from_pem(certificate.as_bytes(), key.as_bytes()).map(Some).map_err(|e| says(plugin, &e.to_string()))
    }
}

fn says(plugin: &ExecPlugin, what: &str) -> ApiError {
    not_ready(format!("credential program {}: {what}", plugin.command.display()))
}

async fn run(plugin: &ExecPlugin) -> ApiResult<ExecStatus> {
    let mut question = json!({
        "apiVersion": plugin.version.as_str(), "kind": "ExecCredential", "spec": { "interactive": false },
    });
    if let Some(cluster) = &plugin.cluster {
        question["spec"]["cluster"] = cluster.clone();
    }
    let mut command = tokio::process::Command::new(&plugin.command);
    command.args(&plugin.args).envs(plugin.env.iter().map(|(k, v)| (k, v)));
    command.env("KUBERNETES_EXEC_INFO", question.to_string());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(EXEC_LIMIT, command.output()).await;
    let output = output.map_err(|_| says(plugin, "did not end within a minute"))?.map_err(|e| {
        let hint = if plugin.install_hint.is_empty() { String::new() } else { format!(" ({})", plugin.install_hint) };
        says(plugin, &format!("cannot be run: {e}{hint}"))
    })?;
    if !output.status.success() {
        return Err(says(plugin, &format!("failed with {}", output.status)));
    }
    let answer: ExecCredential = serde_json::from_slice(&output.stdout)
        .map_err(|e| says(plugin, &format!("answered no ExecCredential: {e}")))?;
    if answer.kind != "ExecCredential" || answer.api_version != plugin.version.as_str() {
        return Err(says(plugin, &format!("answered {} {}", answer.api_version, answer.kind)));
    }
    let status = answer.status.ok_or_else(|| says(plugin, "answered without a status"))?;
    let whole = status.client_certificate_data.is_some() == status.client_key_data.is_some();
    if !whole || (status.token.is_none() && status.client_certificate_data.is_none()) {
        return Err(says(plugin, "answered with neither a token nor a certificate and its key"));
    }
    Ok(status)
}
