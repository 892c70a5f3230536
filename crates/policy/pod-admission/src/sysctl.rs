//! Which sysctls a pod may set (node-and-resources 5.3).

use model::core::Pod;

use crate::facts::NodeFacts;
use crate::rejection::Rejection;

/// Safe names with the kernel from which on each is namespaced.
const SAFE: &[(&str, (u32, u32))] = &[
    ("kernel.shm_rmid_forced", (0, 0)),
    ("net.ipv4.ip_local_port_range", (0, 0)),
    ("net.ipv4.tcp_syncookies", (0, 0)),
    ("net.ipv4.ping_group_range", (0, 0)),
    ("net.ipv4.ip_unprivileged_port_start", (0, 0)),
    ("net.ipv4.ip_local_reserved_ports", (3, 16)),
    ("net.ipv4.tcp_keepalive_time", (4, 5)),
    ("net.ipv4.tcp_fin_timeout", (4, 6)),
    ("net.ipv4.tcp_keepalive_intvl", (4, 5)),
    ("net.ipv4.tcp_keepalive_probes", (4, 5)),
    ("net.ipv4.tcp_rmem", (4, 15)),
    ("net.ipv4.tcp_wmem", (4, 15)),
];

fn of_ipc(name: &str) -> bool {
    name.starts_with("kernel.shm")
        || name.starts_with("kernel.msg")
        || name == "kernel.sem"
        || name.starts_with("fs.mqueue.")
}

fn allowed(name: &str, node: &NodeFacts) -> bool {
    let fits = |pattern: &String| pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix));
    let safe = SAFE.iter().any(|(safe, since)| *safe == name && node.kernel.is_none_or(|k| k >= *since));
    safe || node.unsafe_sysctls.iter().any(fits)
}

/// The dotted form. In the form with slashes a dot is part of a name (`eth0.100`) and becomes a slash.
fn dotted(name: &str) -> String {
    let swap = |c| match c {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    match name.find(['.', '/']) {
        Some(first) if name[first..].starts_with('/') => name.chars().map(swap).collect(),
        _ => name.to_owned(),
    }
}

pub(crate) fn check(pod: &Pod, node: &NodeFacts) -> Result<(), Rejection> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    for sysctl in spec.security_context.iter().flat_map(|c| c.sysctls.iter().flatten()) {
        let name = dotted(&sysctl.name);
        let refuse = |why: &str| Err(Rejection::new("SysctlForbidden", format!("forbidden sysctl: {name:?} {why}")));
        if !allowed(&name, node) {
            return refuse("not allowlisted");
        }
        if of_ipc(&name) && spec.host_ipc == Some(true) {
            return refuse("not allowed with host ipc enabled");
        }
        if name.starts_with("net.") && spec.host_network == Some(true) {
            return refuse("not allowed with host net enabled");
        }
    }
    Ok(())
}
