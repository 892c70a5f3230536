//! Host ports: one pod each per protocol and address.

use model::core::{Container, Pod};

use crate::Rejection;

/// A port of the host that a pod takes.
type HostPort = (String, String, i32);

fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let sidecars = model::pod::init_containers(pod).iter().filter(|c| model::pod::is_sidecar(c));
    let of = |c: &Container| -> Vec<HostPort> {
        let ports = c.ports.iter().flatten();
        let taken = ports.filter_map(|p| {
            let port = p.host_port.filter(|n| *n > 0)?;
            let ip = p.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned());
            Some((p.protocol.clone().unwrap_or_else(|| "TCP".to_owned()), ip, port))
        });
        taken.collect()
    };
    model::pod::regular_containers(pod).iter().chain(sidecars).flat_map(of).collect()
}

fn conflicts(a: &HostPort, b: &HostPort) -> bool {
    let any = |ip: &str| ip == "0.0.0.0" || ip == "::";
    a.0 == b.0 && a.2 == b.2 && (a.1 == b.1 || any(&a.1) || any(&b.1))
}

pub(crate) fn check<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod>) -> Result<(), Rejection> {
    let wanted = host_ports(pod);
    let taken: Vec<HostPort> = if wanted.is_empty() { Vec::new() } else { active.flat_map(host_ports).collect() };
    if wanted.iter().any(|w| taken.iter().any(|t| conflicts(w, t))) {
        let text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        return Err(Rejection::new("NodePorts", text));
    }
    Ok(())
}
