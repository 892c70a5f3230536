//! Kernel parameters of a pod: only those of namespaces that it has of its own, as runc has it (`libcontainer/configs/validate`). The
//! others are the node's.

use container_spec::pod_namespace_options;
use cri_api::v1;

use crate::error::{Done, RuntimeError};

/// Of IPC namespaces, besides `fs.mqueue.`.
const IPC: [&str; 8] = [
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
];

/// In the form with dots between parts: where the first separator is a slash, dots are within parts (sysctl(8)).
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

/// Refuses what would change the node.
pub(crate) fn check(config: &v1::PodSandboxConfig) -> Done<()> {
    let Some(linux) = &config.linux else { return Ok(()) };
    let options = pod_namespace_options(config).cloned().unwrap_or_default();
    let own = |mode: v1::NamespaceMode| mode == v1::NamespaceMode::Pod;
    let (network, ipc) = (own(options.network()), own(options.ipc()));
    for name in linux.sysctls.keys() {
        let dotted = dotted(name);
        let (allowed, namespace) = match dotted.as_str() {
            of_ipc if IPC.contains(&of_ipc) || of_ipc.starts_with("fs.mqueue.") => (ipc, "an IPC namespace"),
            of_network if of_network.starts_with("net.") => (network, "a network namespace"),
            // Its host name goes with its network.
            "kernel.domainname" => (network, "a UTS namespace"),
            _ => return Err(RuntimeError::Refused(format!("sysctl {name:?} is not in a separate kernel namespace"))),
        };
        if !allowed {
            let text = format!("sysctl {name:?} is not allowed, as the pod has not {namespace} of its own");
            return Err(RuntimeError::Refused(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_of_own_namespaces_are_set() {
        let (pod, node) = (v1::NamespaceMode::Pod, v1::NamespaceMode::Node);
        for (name, with_both, with_network, with_ipc) in [
            ("net.ipv4.ip_forward", true, true, false),
            ("net/ipv4/conf/eth0.1/forwarding", true, true, false),
            ("net", false, false, false),
            ("kernel.shmmax", true, false, true),
            ("kernel/shm_rmid_forced", true, false, true),
            ("kernel.msgmax", true, false, true),
            ("kernel.sem", true, false, true),
            ("fs.mqueue.msg_max", true, false, true),
            ("kernel.domainname", true, true, false),
            ("kernel.hostname", false, false, false),
            ("kernel.shmem", false, false, false),
            ("kernel.core_pattern", false, false, false),
            ("kernel/core_pattern", false, false, false),
            ("vm.overcommit_memory", false, false, false),
            ("fs.mqueue", false, false, false),
            ("", false, false, false),
        ] {
            let allowed = [(pod, pod), (pod, node), (node, pod), (node, node)].map(|(network, ipc)| {
                let options =
                    v1::NamespaceOption { network: network.into(), ipc: ipc.into(), ..v1::NamespaceOption::default() };
                let context = v1::LinuxSandboxSecurityContext {
                    namespace_options: Some(options),
                    ..v1::LinuxSandboxSecurityContext::default()
                };
                let linux = v1::LinuxPodSandboxConfig {
                    sysctls: [(name.to_owned(), "1".to_owned())].into(),
                    security_context: Some(context),
                    ..v1::LinuxPodSandboxConfig::default()
                };
                check(&v1::PodSandboxConfig { linux: Some(linux), ..v1::PodSandboxConfig::default() }).is_ok()
            });
            assert_eq!(allowed, [with_both, with_network, with_ipc, false], "{name}");
        }
    }
}
