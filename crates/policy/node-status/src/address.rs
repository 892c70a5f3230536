//! Which addresses a node goes by (interfaces 9.3).

use std::net::IpAddr;

/// What the host knows about addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAddresses {
    /// Addresses of all interfaces.
    pub interfaces: Vec<IpAddr>,
    /// What the resolver says of the node's name, in its order.
    pub resolved: Vec<IpAddr>,
    /// Address of the interface that the default route leaves by, per family.
    pub default_route: Vec<IpAddr>,
}

/// Addresses in order of preference: `--node-ip`; the name when it is an address; what it resolves to; the interface of the
/// default route. `0.0.0.0` and `::` only choose the family.
///
/// # Errors
/// An address that this machine does not have or that names no machine, or none to be found.
pub fn choose(node_ips: &[IpAddr], name: &str, host: &HostAddresses) -> Result<Vec<IpAddr>, String> {
    let given: Vec<IpAddr> = node_ips.iter().copied().filter(|ip| !ip.is_unspecified()).collect();
    for (i, ip) in given.iter().enumerate() {
        let which = if i == 0 { "nodeIP" } else { "secondaryNodeIP" };
        valid(*ip, host).map_err(|why| format!("failed to validate {which}: {why}"))?;
    }
    if !given.is_empty() {
        return Ok(given);
    }
    if let Ok(ip) = name.parse() {
        return Ok(vec![ip]);
    }
    let wants_v4 = node_ips.first().is_none_or(IpAddr::is_ipv4);
    let mut usable: Vec<IpAddr> = host.resolved.iter().copied().filter(|ip| valid(*ip, host).is_ok()).collect();
    usable.sort_by_key(|ip| ip.is_ipv4() != wants_v4);
    let route = host.default_route.iter().find(|ip| ip.is_ipv4() == wants_v4).or(host.default_route.first());
    let found = usable.first().or(route);
    found.map(|ip| vec![*ip]).ok_or_else(|| {
        format!("can't get ip address of node {name}. error: no default routes found in \"/proc/net/route\" or \"/proc/net/ipv6_route\"")
    })
}

fn valid(ip: IpAddr, host: &HostAddresses) -> Result<(), String> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let fault = match ip {
        _ if ip.is_loopback() => "can't be loopback address",
        _ if ip.is_multicast() => "can't be a multicast address",
        _ if link_local => "can't be a link-local unicast address",
        _ if ip.is_unspecified() => "can't be an all zeros address",
        _ if host.interfaces.contains(&ip) => return Ok(()),
        _ => return Err(format!("node IP: {:?} not found in the host's network interfaces", ip.to_string())),
    };
    Err(format!("nodeIP {fault}"))
}
