//! Host name and domain of a pod (node-and-resources 7.3).

use model::core::Pod;
use model::pod;

/// Longest host name that is sent, in bytes.
const HOST_NAME_MAX: usize = 63;
/// Longest name that the kernel takes, in bytes.
const FQDN_MAX: usize = 64;
/// Longest DNS subdomain, in bytes.
const SUBDOMAIN_MAX: usize = 253;

/// A pod whose host name cannot be made; it stays in ContainerCreating.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostNameError {
    /// `spec.hostname` is no DNS label.
    #[error("pod Hostname {0:?} is not a valid DNS label")]
    HostName(String),
    /// `spec.subdomain` is no DNS label.
    #[error("pod Subdomain {0:?} is not a valid DNS label")]
    Subdomain(String),
    /// `spec.hostnameOverride` is no DNS subdomain.
    #[error("pod HostnameOverride {0:?} is not a valid DNS subdomain")]
    Override(String),
    /// Nothing is left of the name after cutting.
    #[error("hostname for pod {pod:?} was invalid: {name:?}")]
    Empty {
        /// Name of the pod.
        pod: String,
        /// Name before cutting.
        name: String,
    },
    /// `setHostnameAsFQDN` with a name that the kernel would not take.
    #[error(
        "failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long ({FQDN_MAX} characters is the max, {} characters requested)",
        fqdn.len()
    )]
    FqdnTooLong {
        /// The name asked for.
        fqdn: String,
    },
}

/// Name and domain of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// Short name, at most 63 bytes.
    pub name: String,
    /// `<subdomain>.<namespace>.svc.<cluster domain>`; empty without a subdomain.
    pub domain: String,
}

fn is_label(s: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = s.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&a), Some(&z)) if inner(a) && inner(z))
        && bytes.len() <= HOST_NAME_MAX
        && bytes.iter().all(|&b| inner(b) || b == b'-')
}

fn is_subdomain(s: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    s.len() <= SUBDOMAIN_MAX
        && s.split('.').all(|part| {
            let bytes = part.as_bytes();
            matches!((bytes.first(), bytes.last()), (Some(&a), Some(&z)) if inner(a) && inner(z))
                && bytes.iter().all(|&b| inner(b) || b == b'-')
        })
}

fn cut(pod: &Pod, name: &str) -> Result<String, HostNameError> {
    if name.len() <= HOST_NAME_MAX {
        return Ok(name.to_owned());
    }
    let mut end = HOST_NAME_MAX;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let short = name[..end].trim_end_matches(['-', '.']);
    if short.is_empty() {
        return Err(HostNameError::Empty { pod: pod::name(pod).to_owned(), name: name.to_owned() });
    }
    Ok(short.to_owned())
}

fn non_empty(s: Option<&String>) -> Option<&str> {
    s.map(String::as_str).filter(|s| !s.is_empty())
}

/// Host name and domain of a pod: `hostnameOverride` verbatim and without domain, else `spec.hostname`, else the pod's
/// name, cut to 63 bytes.
///
/// # Errors
/// When a name in the specification is not a DNS name.
pub fn host_name(pod: &Pod, cluster_domain: &str) -> Result<HostName, HostNameError> {
    let spec = pod.spec.as_ref();
    if let Some(name) = spec.and_then(|s| s.hostname_override.as_deref()) {
        if !is_subdomain(name) {
            return Err(HostNameError::Override(name.to_owned()));
        }
        return Ok(HostName { name: cut(pod, name)?, domain: String::new() });
    }
    let name = match non_empty(spec.and_then(|s| s.hostname.as_ref())) {
        Some(name) if !is_label(name) => return Err(HostNameError::HostName(name.to_owned())),
        Some(name) => name,
        None => pod::name(pod),
    };
    let domain = match non_empty(spec.and_then(|s| s.subdomain.as_ref())) {
        Some(sub) if !is_label(sub) => return Err(HostNameError::Subdomain(sub.to_owned())),
        Some(sub) => format!("{sub}.{}.svc.{cluster_domain}", pod::namespace(pod)),
        None => String::new(),
    };
    Ok(HostName { name: cut(pod, name)?, domain })
}

/// Name that the kernel of the sandbox shows: the short one, or the whole one under `setHostnameAsFQDN`. Empty for a pod
/// of the host's network without an override: such a pod keeps the node's name.
///
/// # Errors
/// As [`host_name`], and when the whole name is longer than 64 bytes.
pub fn kernel_host_name(pod: &Pod, cluster_domain: &str) -> Result<String, HostNameError> {
    let spec = pod.spec.as_ref();
    if pod::is_host_network(pod) && spec.is_none_or(|s| s.hostname_override.is_none()) {
        return Ok(String::new());
    }
    let HostName { name, domain } = host_name(pod, cluster_domain)?;
    if domain.is_empty() || spec.and_then(|s| s.set_hostname_as_fqdn) != Some(true) {
        return Ok(name);
    }
    let fqdn = format!("{name}.{domain}");
    if fqdn.len() > FQDN_MAX {
        return Err(HostNameError::FqdnTooLong { fqdn });
    }
    Ok(fqdn)
}

#[cfg(test)]
mod tests;
