//! Brings the loopback interface of a new network namespace up.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Interface 1 of every network namespace (the kernel makes it first).
const LOOPBACK: i32 = 1;
/// rtnetlink.h, netlink.h, if.h.
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_ACK: u16 = 1 | 4;
const NLMSG_ERROR: u16 = 2;
const IFF_UP: u32 = 1;
const LENGTH: u32 = 32;

/// One message of netlink: header (16 bytes) and `ifinfomsg` (16 bytes), in the machine's own byte order.
fn message() -> Vec<u8> {
    let mut m = Vec::with_capacity(LENGTH as usize);
    m.extend(LENGTH.to_ne_bytes());
    m.extend(RTM_NEWLINK.to_ne_bytes());
    m.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    m.extend(1_u32.to_ne_bytes()); // sequence
    m.extend(0_u32.to_ne_bytes()); // port
    m.extend([0; 4]); // family, padding, type
    m.extend(LOOPBACK.to_ne_bytes());
    m.extend(IFF_UP.to_ne_bytes()); // flags
    m.extend(IFF_UP.to_ne_bytes()); // which of them
    m
}

/// Brings `lo` of this thread's network namespace up.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn up() -> io::Result<()> {
    // No protocol is number 0, NETLINK_ROUTE.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::sendto(&socket, &message(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 1024];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let kind = answer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    let code = answer.get(16..20).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    match (length >= 20, kind, code) {
        (true, Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (true, Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::Error::other("an answer of netlink that is none")),
    }
}
