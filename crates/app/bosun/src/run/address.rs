//! The node's own address when no flag names one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// The address that the host would use to reach others: the source of its default route. Nothing is sent. A host without
/// a route has none.
pub(super) fn of_this_host() -> Vec<IpAddr> {
    let probe = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // A documentation address (RFC 5737): connecting a UDP socket only chooses the route.
        socket.connect(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 9)))?;
        Ok(socket.local_addr()?.ip())
    };
    match probe() {
        Ok(ip) if !ip.is_loopback() && !ip.is_unspecified() => vec![ip],
        _ => Vec::new(),
    }
}
