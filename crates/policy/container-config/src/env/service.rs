//! Variables that describe services (the form that Docker links had).

use std::collections::BTreeMap;

use model::core::{Service, ServicePort};

use super::variables::Environment;

fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

fn add_port(env: &mut Environment, prefix: &str, ip: &str, port: &ServicePort, first: bool) {
    let protocol = port.protocol.as_deref().filter(|p| !p.is_empty()).unwrap_or("TCP");
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    let url = format!("{}://{host}:{}", protocol.to_lowercase(), port.port);
    if first {
        env.set(&format!("{prefix}_PORT"), url.as_str());
    }
    let prefix = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
    env.set(&prefix, url);
    env.set(&format!("{prefix}_PROTO"), protocol.to_lowercase());
    env.set(&format!("{prefix}_PORT"), port.port.to_string());
    env.set(&format!("{prefix}_ADDR"), ip);
}

fn add_service(env: &mut Environment, name: &str, ip: &str, ports: &[ServicePort]) {
    let prefix = variable(name);
    env.set(&format!("{prefix}_SERVICE_HOST"), ip);
    if let Some(first) = ports.first() {
        env.set(&format!("{prefix}_SERVICE_PORT"), first.port.to_string());
    }
    for port in ports {
        if let Some(name) = port.name.as_deref().filter(|n| !n.is_empty()) {
            env.set(&format!("{prefix}_SERVICE_PORT_{}", variable(name)), port.port.to_string());
        }
    }
    for (i, port) in ports.iter().enumerate() {
        add_port(env, &prefix, ip, port, i == 0);
    }
}

/// Variables of all services that a pod of `namespace` sees: `kubernetes` of namespace `default` always, those of its own
/// namespace with `links` (they win over a name they share). Services without a cluster address have none.
#[must_use]
pub fn service_environment(services: &[Service], namespace: &str, links: bool) -> Environment {
    let mut chosen: BTreeMap<&str, (&str, &[ServicePort])> = BTreeMap::new();
    for service in services {
        let spec = service.spec.as_ref();
        let ip = match spec.and_then(|s| s.cluster_ip.as_deref()) {
            None | Some("" | "None") => continue,
            Some(ip) => ip,
        };
        let found = (ip, spec.and_then(|s| s.ports.as_deref()).unwrap_or_default());
        let name = service.metadata.name.as_deref().unwrap_or_default();
        let of = service.metadata.namespace.as_deref().unwrap_or_default();
        if of == "default" && name == "kubernetes" {
            chosen.entry(name).or_insert(found);
        } else if of == namespace && links {
            chosen.insert(name, found);
        }
    }
    let mut env = Environment::default();
    for (name, (ip, ports)) in chosen {
        add_service(&mut env, name, ip, ports);
    }
    env
}

#[cfg(test)]
mod tests;
