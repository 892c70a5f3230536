//! Files of one container about to be created, made on one way to the disk.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use container_config::{HostsInput, NodeSettings, etc_hosts, host_name};
use model::core::Pod;
use ports::host::{HostFs, HostResult};

use crate::job::text;

/// Longest hosts file that is read.
const HOSTS_MAX: u64 = 10 << 20;

/// What is to be made.
pub(crate) struct ContainerFiles {
    /// The pod's hosts file, when this container mounts it: pod, node, addresses.
    pub(crate) hosts: Option<(Arc<Pod>, NodeSettings, Vec<IpAddr>)>,
    pub(crate) log_dir: PathBuf,
    /// Restart count of the container, where it is known.
    pub(crate) attempt: Option<u32>,
    /// Folder and name of a fresh file for the termination message.
    pub(crate) termination_log: Option<(PathBuf, String)>,
}

/// What came of it.
pub(crate) struct Written {
    pub(crate) restart_count: u32,
    pub(crate) termination_log: Option<String>,
}

impl ContainerFiles {
    pub(crate) fn write(self, fs: &dyn HostFs) -> HostResult<Written> {
        if let Some((pod, node, ips)) = &self.hosts {
            write_hosts(fs, pod, node, ips)?;
        }
        // Before the folder is made: its absence is no error.
        let restart_count = self.attempt.unwrap_or_else(|| restart_count(fs, &self.log_dir));
        fs.create_dir(&self.log_dir, 0o755)?;
        let termination_log = self.termination_log.as_ref().and_then(|(dir, name)| termination_log(fs, dir, name));
        Ok(Written { restart_count, termination_log })
    }
}

fn write_hosts(fs: &dyn HostFs, pod: &Pod, node: &NodeSettings, pod_ips: &[IpAddr]) -> HostResult<()> {
    let node_hosts = match model::pod::is_host_network(pod) {
        true => fs.read_file(Path::new("/etc/hosts"), HOSTS_MAX)?,
        false => Vec::new(),
    };
    // A host name that cannot be made has already failed the sandbox.
    let Ok(host_name) = host_name(pod, &node.cluster_domain) else { return Ok(()) };
    let content = etc_hosts(&HostsInput {
        pod,
        pod_ips,
        host_name: &host_name,
        node_hosts: &String::from_utf8_lossy(&node_hosts),
    });
    let path = PathBuf::from(container_config::mounts::etc_hosts_path(&node.root_dir, pod));
    fs.write_file(&path, content.as_bytes(), 0o644)
}

fn restart_count(fs: &dyn HostFs, log_dir: &Path) -> u32 {
    match fs.list_dir(log_dir) {
        Ok(entries) => {
            pod_plan::logs::next_restart_count(entries.iter().filter(|e| !e.is_dir).map(|e| e.name.as_str()))
        }
        Err(e) if e.is_not_found() => 0,
        Err(e) => {
            let (dir, error) = (log_dir.display(), actor::chain(&e));
            tracing::warn!(%dir, error, "log folder is not readable, counting from 0");
            0
        }
    }
}

/// A host that cannot make one costs only the message.
fn termination_log(fs: &dyn HostFs, dir: &Path, name: &str) -> Option<String> {
    let file = dir.join(name);
    match fs.create_dir(dir, 0o750).and_then(|()| fs.create_file(&file, 0o666)) {
        Ok(()) => Some(text(&file)),
        Err(e) => {
            tracing::warn!(file = %file.display(), error = actor::chain(&e), "no termination log");
            None
        }
    }
}
