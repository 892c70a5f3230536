//! An element of `clusters`: where the server is, and how it is known to be the right one.

use hyper::Uri;
use model::k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::contents::Trust;
use super::fields::Field;
use super::files::{contents, data_or_file};
use super::problem::Problem;
use crate::pem;

type Problems = Vec<Problem>;

pub(super) fn server(cluster: &Field<'_>, trust: &Trust, problems: &mut Problems) -> Option<Uri> {
    let Some(text) = cluster.text("server", problems).filter(|s| !s.is_empty()) else {
        if problems.iter().all(|p| !p.path.ends_with(".server")) {
            problems.push(cluster.missing("server"));
        }
        return None;
    };
    let at = cluster.child("server");
    // Without a scheme, as the generic client: TLS when the cluster says anything about it.
    let scheme = if matches!(trust, Trust::System) { "http" } else { "https" };
    let full = if text.contains("://") { text.clone() } else { format!("{scheme}://{text}") };
    let problem = match full.parse::<Uri>() {
        Err(e) => at.problem(format!("is not a URL: {e}")),
        Ok(uri) if !matches!(uri.scheme_str(), Some("http" | "https")) => {
            at.problem("has an unknown scheme").allowed("https, http")
        }
        Ok(uri) if uri.host().is_none_or(str::is_empty) => at.problem("names no host"),
        Ok(uri) if uri.authority().is_some_and(|a| a.as_str().contains('@')) => {
            problems.push(at.problem("holds a name and password, which belong to users[].user"));
            return None;
        }
        Ok(uri) if uri.query().is_some() => at.problem("has a query"),
        Ok(uri) if has_bad_port(&uri) => at.problem("has a port that is none").allowed("1 to 65535"),
        Ok(uri) => return Some(uri),
    };
    problems.push(problem.value(text));
    None
}

fn has_bad_port(uri: &Uri) -> bool {
    let authority = uri.authority().map(|a| a.as_str()).unwrap_or_default();
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_host.contains(':') && uri.port_u16().is_none_or(|port| port == 0)
}

pub(super) fn proxy(at: &Field<'_>, text: &str, problems: &mut Problems) -> Option<Uri> {
    let problem = match text.parse::<Uri>() {
        Err(e) => at.problem(format!("is not a URL: {e}")),
        Ok(uri) if uri.scheme_str() != Some("http") => at.problem("has a scheme that is not spoken").allowed("http"),
        Ok(uri) if uri.host().is_none_or(str::is_empty) => at.problem("names no host"),
        Ok(uri) => return Some(uri),
    };
    problems.push(problem);
    None
}

pub(super) fn trust(cluster: &Field<'_>, problems: &mut Problems) -> Trust {
    let anyone = cluster.flag("insecure-skip-tls-verify", problems);
    let Some((pem, at)) = data_or_file(cluster, "certificate-authority", problems) else {
        return if anyone { Trust::Anyone } else { Trust::System };
    };
    if anyone {
        let at = cluster.child("insecure-skip-tls-verify");
        problems.push(at.problem("contradicts certificate-authority: either servers are verified or not"));
    }
    if let Err(error) = pem::authorities(&pem) {
        problems.push(at.because(&error));
    }
    Trust::Authorities(pem)
}

/// The cluster as an exec plugin sees it.
pub(super) fn for_exec(cluster: &Field<'_>) -> Value {
    let mut shown = json!({});
    for key in ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"] {
        if let Some(value) = cluster.value.get(key) {
            shown[key] = value.clone();
        }
    }
    let authority = cluster.value.get("certificate-authority").and_then(Value::as_str).filter(|f| !f.is_empty());
    if shown.get("certificate-authority-data").is_none()
        && let Some(Ok(pem)) = authority.map(|file| contents(&cluster.beside(file)))
    {
        shown["certificate-authority-data"] = serde_json::to_value(ByteString(pem)).unwrap_or_default();
    }
    let extensions = cluster.value.get("extensions").and_then(Value::as_array).into_iter().flatten();
    let config =
        extensions.filter(|e| e["name"] == "client.authentication.k8s.io/exec").map(|e| &e["extension"]).next();
    if let Some(config) = config {
        shown["config"] = config.clone();
    }
    shown
}
