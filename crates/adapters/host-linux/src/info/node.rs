//! What the Node object tells of the machine.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;

use ports::host::{Addresses, FsStat, HostFs, HostInfo, HostResult, Identity, MemoryUse, NodeHost};

use super::LinuxInfo;
use crate::LinuxFs;

impl LinuxInfo {
    /// First of the files below the root that has content, trimmed; empty when none has.
    fn first_of(&self, files: &[&str]) -> String {
        let read = |f: &&str| fs::read_to_string(self.root.join(f)).ok();
        let texts = files.iter().filter_map(read).map(|t| t.trim_matches(['\0', ' ', '\n']).to_owned());
        texts.into_iter().find(|t| !t.is_empty()).unwrap_or_default()
    }

    fn local_addresses(&self) -> Vec<IpAddr> {
        let read = |f: &str| fs::read_to_string(self.proc.join(f)).unwrap_or_default();
        let mut all: Vec<IpAddr> = fib_locals(&read("net/fib_trie")).into_iter().map(IpAddr::V4).collect();
        all.extend(read("net/if_inet6").lines().filter_map(inet6).map(IpAddr::V6));
        all.sort();
        all.dedup();
        all
    }
}

impl NodeHost for LinuxInfo {
    fn identity(&self) -> Identity {
        let machine_id = self.first_of(&["etc/machine-id", "var/lib/dbus/machine-id"]);
        let firmware = ["sys/class/dmi/id/product_uuid", "proc/device-tree/system-id", "proc/device-tree/vm,uuid"];
        let system_uuid = self.first_of(&firmware);
        Identity {
            system_uuid: if system_uuid.is_empty() { machine_id.clone() } else { system_uuid },
            machine_id,
            boot_id: self.boot_id().unwrap_or_default(),
            kernel_version: self.kernel_version(),
            os_image: pretty_name(&self.first_of(&["etc/os-release", "usr/lib/os-release"])),
        }
    }

    fn addresses(&self, name: &str) -> Addresses {
        let looked_up = if name.is_empty() { None } else { (name, 0).to_socket_addrs().ok() };
        let mut resolved: Vec<IpAddr> = looked_up.into_iter().flatten().map(|a| a.ip()).collect();
        resolved.dedup();
        Addresses {
            interfaces: self.local_addresses(),
            resolved,
            default_route: [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
                .into_iter()
                .filter_map(leaves_by_default_route)
                .collect(),
        }
    }

    fn memory_use(&self) -> HostResult<MemoryUse> {
        let m = self.meminfo()?;
        let used = m.mem_total.saturating_sub(m.mem_free);
        let working_set_bytes = used.saturating_sub(m.inactive_file.unwrap_or(0));
        Ok(MemoryUse { total_bytes: m.mem_total, working_set_bytes })
    }

    fn disk(&self, path: &Path) -> HostResult<FsStat> {
        LinuxFs.stat_fs(path)
    }

    fn processes(&self) -> HostResult<(u64, u64)> {
        let load: procfs::LoadAverage = crate::parsed(&self.proc.join("loadavg"))?;
        Ok((load.max.into(), self.pid_capacity()?))
    }
}

/// `PRETTY_NAME` of an os-release, without quotes.
fn pretty_name(text: &str) -> String {
    let value = text.lines().find_map(|l| l.trim().strip_prefix("PRETTY_NAME="));
    value.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
}

/// Own addresses in the routing table: a leaf that is followed by a line of kind LOCAL.
fn fib_locals(text: &str) -> Vec<Ipv4Addr> {
    let mut leaf: Option<Ipv4Addr> = None;
    let mut all = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line.starts_with("/32 ") && line.ends_with("LOCAL") {
            all.extend(leaf);
        }
    }
    all
}

/// `fe80000000000000...  02 40 20 80 eth0`: 32 hexadecimal digits first.
fn inet6(line: &str) -> Option<Ipv6Addr> {
    let digits = line.split_whitespace().next().filter(|d| d.len() == 32)?;
    u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from)
}

/// The source address of a packet to the wide world. Connecting a datagram socket sends nothing; the target is one of the
/// addresses that are set aside for documentation (RFC 5737, RFC 3849).
fn leaves_by_default_route(any: IpAddr) -> Option<IpAddr> {
    let target: IpAddr = match any {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(target, 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    let link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    (!ip.is_loopback() && !ip.is_unspecified() && !link_local).then_some(ip)
}
