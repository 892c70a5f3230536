//! Which sysctls a pod may set (node-and-resources 5.3).

use model::core::Pod;

use crate::Rejection;

const SAFE: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

fn of_ipc(name: &str) -> bool {
    name.starts_with("kernel.shm")
        || name.starts_with("kernel.msg")
        || name == "kernel.sem"
        || name.starts_with("fs.mqueue.")
}

fn allowed(name: &str, extra: &[String]) -> bool {
    let fits = |pattern: &String| pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix));
    SAFE.contains(&name) || extra.iter().any(fits)
}

pub(crate) fn check(pod: &Pod, extra: &[String]) -> Result<(), Rejection> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    for sysctl in spec.security_context.iter().flat_map(|c| c.sysctls.iter().flatten()) {
        let name = sysctl.name.replace('/', ".");
        let refuse = |why: &str| Err(Rejection::new("SysctlForbidden", format!("forbidden sysctl: {name:?} {why}")));
        if of_ipc(&name) && spec.host_ipc == Some(true) {
            return refuse("not allowed with host ipc enabled");
        }
        if name.starts_with("net.") && spec.host_network == Some(true) {
            return refuse("not allowed with host net enabled");
        }
        if !allowed(&name, extra) {
            return refuse("not allowlisted");
        }
    }
    Ok(())
}
