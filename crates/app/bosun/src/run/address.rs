//! The node's own address when no flag names one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The address that the host would use to reach others: the source of its default route. Nothing is sent. A host without
/// a route has none. `v6_first`: `--node-ip=::` asks for IPv6; the other family is taken where there is none.
pub(super) fn of_this_host(v6_first: bool) -> Vec<IpAddr> {
    // Documentation addresses (RFC 5737, RFC 3849): connecting a UDP socket only chooses the route.
    let v4 = || source((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into());
    let v6 = || source((Ipv6Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into());
    let found = if v6_first { v6().or_else(v4) } else { v4().or_else(v6) };
    found.into_iter().collect()
}

fn source(from: SocketAddr, to: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}
