//! Port mappings of a sandbox (node-and-resources 7.5).

use std::collections::BTreeSet;

use cri_api::v1::{PortMapping, Protocol};
use model::core::{ContainerPort, Pod};
use model::pod;

/// Protocol in CRI terms; anything unknown counts as TCP, the API's default.
fn protocol(port: &ContainerPort) -> Protocol {
    match port.protocol.as_deref() {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    }
}

/// What tells two ports of one container apart: the name, or family, protocol, address and numbers.
fn key(port: &ContainerPort) -> String {
    if let Some(name) = port.name.as_deref().filter(|n| !n.is_empty()) {
        return name.to_owned();
    }
    let host_ip = port.host_ip.as_deref().unwrap_or_default();
    let family = match host_ip {
        "" => "any",
        ip if ip.contains(':') => "v6",
        _ => "v4",
    };
    format!(
        "{family}-{}-{host_ip}:{}:{}",
        port.protocol.as_deref().unwrap_or_default(),
        port.container_port,
        port.host_port.unwrap_or_default()
    )
}

/// Mappings of all regular containers in order; those without a host port too (the runtime passes over them). A repeated
/// port of the same container is dropped. Init containers and sidecars have none, even in 1.36.
#[must_use]
pub fn port_mappings(pod: &Pod) -> Vec<PortMapping> {
    let mut out = Vec::new();
    for container in pod::regular_containers(pod) {
        let mut seen = BTreeSet::new();
        for port in container.ports.iter().flatten() {
            if seen.insert(key(port)) {
                out.push(PortMapping {
                    protocol: protocol(port).into(),
                    container_port: port.container_port,
                    host_port: port.host_port.unwrap_or_default(),
                    host_ip: port.host_ip.clone().unwrap_or_default(),
                });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
