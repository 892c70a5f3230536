//! Content of the `/etc/hosts` that the node manages for a pod (node-and-resources 7.4).

use std::fmt::Write as _;
use std::net::IpAddr;

use model::core::Pod;
use model::pod;

use crate::hostname::HostName;

const POD_HEADER: &str = "# Kubernetes-managed hosts file.\n";
const HOST_HEADER: &str = "# Kubernetes-managed hosts file (host network).\n";
const ALIASES_HEADER: &str = "\n# Entries added by HostAliases.\n";
const LOCALHOST: [(&str, &str); 6] = [
    ("127.0.0.1", "localhost"),
    ("::1", "localhost ip6-localhost ip6-loopback"),
    ("fe00::0", "ip6-localnet"),
    ("fe00::0", "ip6-mcastprefix"),
    ("fe00::1", "ip6-allnodes"),
    ("fe00::2", "ip6-allrouters"),
];

/// Context of [`etc_hosts`].
#[derive(Clone, Copy, Debug)]
pub struct HostsInput<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Addresses of the pod, primary first.
    pub pod_ips: &'a [IpAddr],
    /// Its name and domain.
    pub host_name: &'a HostName,
    /// Content of the node's own `/etc/hosts`; used for pods of the host's network only.
    pub node_hosts: &'a str,
}

/// The file, complete. It is written anew before each container start, since the addresses change with the sandbox.
#[must_use]
pub fn etc_hosts(input: &HostsInput<'_>) -> String {
    let mut out = String::new();
    if pod::is_host_network(input.pod) {
        out.push_str(HOST_HEADER);
        out.push_str(input.node_hosts);
    } else {
        out.push_str(POD_HEADER);
        for (ip, names) in LOCALHOST {
            let _ = writeln!(out, "{ip}\t{names}");
        }
        let HostName { name, domain } = input.host_name;
        for ip in input.pod_ips {
            let _ = match domain.as_str() {
                "" => writeln!(out, "{ip}\t{name}"),
                domain => writeln!(out, "{ip}\t{name}.{domain}\t{name}"),
            };
        }
    }
    let aliases = input.pod.spec.as_ref().and_then(|s| s.host_aliases.as_deref()).unwrap_or_default();
    if !aliases.is_empty() {
        out.push_str(ALIASES_HEADER);
    }
    for alias in aliases {
        let _ = writeln!(out, "{}\t{}", alias.ip, alias.hostnames.as_deref().unwrap_or_default().join("\t"));
    }
    out
}

#[cfg(test)]
mod tests;
