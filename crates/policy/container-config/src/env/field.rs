//! Fields of the downward API, for variables and for files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use model::core::{ObjectFieldSelector, Pod};
use model::pod;

use crate::gotext;

/// A field that the downward API does not have here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The selector speaks another version of the API.
    #[error("unsupported pod version: {0}")]
    Version(String),
    /// No such field, or not as one.
    #[error("unsupported fieldPath: {0}")]
    Unsupported(String),
    /// Only labels and annotations have keys.
    #[error("fieldPath {0:?} does not support subscript")]
    Subscript(String),
    /// The node does not know its own address.
    #[error("no host IP is known")]
    NoHostIp,
}

/// Context of [`env_field`].
#[derive(Clone, Copy, Debug)]
pub struct FieldInput<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Addresses of the node, primary first.
    pub host_ips: &'a [IpAddr],
    /// Addresses of the pod, primary first.
    pub pod_ips: &'a [IpAddr],
}

fn join(ips: &[IpAddr]) -> String {
    ips.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

/// Labels or annotations as a file holds them: a line `key="value"` for each, sorted, with Go's escapes.
#[must_use]
pub fn format_map(map: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for (i, (key, value)) in map.iter().enumerate() {
        let _ = write!(out, "{}{key}={}", if i == 0 { "" } else { "\n" }, gotext::quote(value));
    }
    out
}

/// Field of the pod's metadata: `metadata.{name,namespace,uid,labels,annotations}` and `metadata.labels['key']`. A key
/// that the pod does not have is the empty string.
///
/// # Errors
/// Another path.
pub fn object_field(path: &str, pod: &Pod) -> Result<String, FieldError> {
    let labels = || pod.metadata.labels.as_ref();
    let annotations = || pod.metadata.annotations.as_ref();
    if let Some((path, key)) = path.strip_suffix("']").and_then(|p| p.split_once("['")) {
        let map = match path {
            "metadata.labels" => labels(),
            "metadata.annotations" => annotations(),
            _ => return Err(FieldError::Subscript(path.to_owned())),
        };
        return Ok(map.and_then(|m| m.get(key)).cloned().unwrap_or_default());
    }
    match path {
        "metadata.name" => Ok(pod::name(pod).to_owned()),
        "metadata.namespace" => Ok(pod::namespace(pod).to_owned()),
        "metadata.uid" => Ok(pod.metadata.uid.clone().unwrap_or_default()),
        "metadata.labels" => Ok(labels().map(format_map).unwrap_or_default()),
        "metadata.annotations" => Ok(annotations().map(format_map).unwrap_or_default()),
        _ => Err(FieldError::Unsupported(path.to_owned())),
    }
}

/// Field for a variable: those of [`object_field`], and what is known only when the container starts.
///
/// # Errors
/// Another path, another API version, or an unknown host address.
pub fn env_field(selector: &ObjectFieldSelector, input: &FieldInput<'_>) -> Result<String, FieldError> {
    match selector.api_version.as_deref() {
        None | Some("" | "v1") => {}
        Some(version) => return Err(FieldError::Version(version.to_owned())),
    }
    let spec = input.pod.spec.as_ref();
    match selector.field_path.as_str() {
        "spec.nodeName" | "spec.host" => Ok(spec.and_then(|s| s.node_name.clone()).unwrap_or_default()),
        "spec.serviceAccountName" => Ok(spec.and_then(|s| s.service_account_name.clone()).unwrap_or_default()),
        "status.hostIP" => input.host_ips.first().map(IpAddr::to_string).ok_or(FieldError::NoHostIp),
        "status.hostIPs" if input.host_ips.is_empty() => Err(FieldError::NoHostIp),
        "status.hostIPs" => Ok(join(input.host_ips)),
        "status.podIP" => Ok(input.pod_ips.first().map(IpAddr::to_string).unwrap_or_default()),
        "status.podIPs" => Ok(join(input.pod_ips)),
        path => object_field(path, input.pod),
    }
}

#[cfg(test)]
mod tests;
