//! Host ports: one pod each per protocol and address.

use model::core::{Container, Pod};

/// Protocol, address and number of a port of the host.
type HostPort = (String, String, i32);

/// The address that stands for all.
const ANY: &str = "0.0.0.0";

fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let sidecars = model::pod::init_containers(pod).iter().filter(|c| model::pod::is_sidecar(c));
    let of = |c: &Container| -> Vec<HostPort> {
        let ports = c.ports.iter().flatten();
        let taken = ports.filter_map(|p| {
            let port = p.host_port.filter(|n| *n > 0)?;
            let ip = p.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| ANY.to_owned());
            Some((p.protocol.clone().unwrap_or_else(|| "TCP".to_owned()), ip, port))
        });
        taken.collect()
    };
    model::pod::regular_containers(pod).iter().chain(sidecars).flat_map(of).collect()
}

fn conflicts(a: &HostPort, b: &HostPort) -> bool {
    a.0 == b.0 && a.2 == b.2 && (a.1 == b.1 || a.1 == ANY || b.1 == ANY)
}

/// Whether no active pod holds a port that this one wants.
pub(crate) fn free<'a>(pod: &Pod, active: impl Iterator<Item = &'a Pod>) -> bool {
    let wanted = host_ports(pod);
    if wanted.is_empty() {
        return true;
    }
    let taken: Vec<HostPort> = active.flat_map(host_ports).collect();
    !wanted.iter().any(|w| taken.iter().any(|t| conflicts(w, t)))
}
