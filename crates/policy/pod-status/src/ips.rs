//! Addresses of pod and host in the status (9.1, items 1 and 10).

use std::net::IpAddr;

use model::core::{HostIP, PodIP, PodStatus};
use model::pod;

use crate::input::StatusInput;

#[cfg(test)]
mod tests;

/// At most one address per family, the node's primary family first.
fn ordered(ips: &[IpAddr], v4_first: bool) -> Vec<IpAddr> {
    let first = |v4: bool| ips.iter().copied().find(move |ip| ip.is_ipv4() == v4);
    first(v4_first).into_iter().chain(first(!v4_first)).collect()
}

/// Writes podIP(s) and hostIP(s).
pub(crate) fn apply(input: &StatusInput<'_>, base: &PodStatus, status: &mut PodStatus) {
    let mut ips = ordered(&input.observed.ips, input.host_ips.first().is_none_or(IpAddr::is_ipv4));
    if ips.is_empty() && !input.observed.sandboxes.iter().any(|s| s.ready) {
        // A completed pod keeps the address that it had.
        ips = listed(base);
    }
    if pod::is_host_network(input.pod) {
        if ips.is_empty() {
            ips = listed(base);
        }
        let missing = |have: &[IpAddr], ip: &IpAddr| have.iter().all(|h| h.is_ipv4() != ip.is_ipv4());
        for ip in input.host_ips.iter().take(2) {
            if missing(&ips, ip) {
                ips.push(*ip);
            }
        }
    }
    let ips: Vec<PodIP> = ips.iter().map(|ip| PodIP { ip: ip.to_string() }).collect();
    status.pod_ip = ips.first().map(|first| first.ip.clone());
    status.pod_ips = (!ips.is_empty()).then_some(ips);
    if input.host_ips.is_empty() {
        status.host_ip.clone_from(&base.host_ip);
        status.host_ips.clone_from(&base.host_ips);
    } else {
        let ips: Vec<HostIP> = input.host_ips.iter().take(2).map(|ip| HostIP { ip: ip.to_string() }).collect();
        status.host_ip = ips.first().map(|first| first.ip.clone());
        status.host_ips = Some(ips);
    }
}

fn listed(status: &PodStatus) -> Vec<IpAddr> {
    let many = status.pod_ips.iter().flatten().map(|p| p.ip.as_str());
    let mut ips: Vec<IpAddr> = many.filter_map(|ip| ip.parse().ok()).collect();
    if ips.is_empty() {
        ips.extend(status.pod_ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok()));
    }
    ips
}
