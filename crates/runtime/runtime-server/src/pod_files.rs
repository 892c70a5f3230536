//! Files that every container of a pod gets.

use std::fs;
use std::path::{Path, PathBuf};

use container_spec::PodFiles;
use cri_api::v1;
use rustix::mount::{MountFlags, mount};

use crate::error::{At, Done};
use crate::options::Options;
use crate::records::SandboxRecord;
use crate::users;

/// As Docker and containerd have it.
const SHM_OPTIONS: &str = "mode=1777,size=65536k";

/// Where a pod's `/dev/shm` is.
pub(crate) fn shm(options: &Options, pod: &str) -> PathBuf {
    options.pod_run(pod).join("shm")
}

/// Writes `hostname`, `hosts` and `resolv.conf` of a pod.
pub(crate) fn write(options: &Options, node: &str, sandbox: &SandboxRecord) -> Done<()> {
    let root = options.pod_root(&sandbox.id);
    let hostname = if sandbox.config.hostname.is_empty() { node } else { &sandbox.config.hostname };
    put(&root.join("hostname"), &format!("{hostname}\n"))?;
    put(&root.join("hosts"), &node_file("/etc/hosts")?)?;
    let resolv_conf = match &sandbox.config.dns_config {
        Some(dns) => resolv_conf(dns),
        None => node_file("/etc/resolv.conf")?,
    };
    put(&root.join("resolv.conf"), &resolv_conf)?;
    users::give(
        sandbox,
        &["hostname", "hosts", "resolv.conf"].map(|name| root.join(name)).each_ref().map(|p| p.as_path()),
    )
}

fn put(path: &Path, text: &str) -> Done<()> {
    fs::write(path, text).at("write", path)
}

/// A file of the node; one that it does not have is empty.
fn node_file(path: &str) -> Done<String> {
    match fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        other => other.at("read", Path::new(path)),
    }
}

/// `resolv.conf(5)` of what the CRI says.
fn resolv_conf(dns: &v1::DnsConfig) -> String {
    let mut text = String::new();
    if !dns.searches.is_empty() {
        text.push_str(&format!("search {}\n", dns.searches.join(" ")));
    }
    for server in &dns.servers {
        text.push_str(&format!("nameserver {server}\n"));
    }
    if !dns.options.is_empty() {
        text.push_str(&format!("options {}\n", dns.options.join(" ")));
    }
    text
}

/// Memory that the pod's containers share, mounted once.
pub(crate) fn mount_shm(options: &Options, pod: &str) -> Done<()> {
    let path = shm(options, pod);
    fs::create_dir(&path).at("mkdir", &path)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let data = std::ffi::CString::new(SHM_OPTIONS).ok();
    mount("shm", &path, "tmpfs", flags, data.as_deref()).at("mount", &path)
}

/// The files that a container of the pod gets.
pub(crate) fn pod_files(options: &Options, sandbox: &SandboxRecord) -> PodFiles {
    let root = options.pod_root(&sandbox.id);
    let shm = match sandbox.namespaces().ipc() {
        v1::NamespaceMode::Node => PathBuf::from("/dev/shm"),
        _ => shm(options, &sandbox.id),
    };
    PodFiles {
        hostname: Some(root.join("hostname")),
        hosts: Some(root.join("hosts")),
        resolv_conf: Some(root.join("resolv.conf")),
        shm: Some(shm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_written_as_resolvers_read_them() {
        let words = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let dns = v1::DnsConfig {
            servers: words(&["10.0.0.10", "fd00::a"]),
            searches: words(&["ns.svc.cluster.local", "svc.cluster.local"]),
            options: words(&["ndots:5"]),
        };
        let want = "search ns.svc.cluster.local svc.cluster.local\nnameserver 10.0.0.10\nnameserver fd00::a\noptions ndots:5\n";
        assert_eq!(resolv_conf(&dns), want);
        assert_eq!(resolv_conf(&v1::DnsConfig::default()), "");
    }
}
