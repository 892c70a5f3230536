//! Counters of the kernel, read straight from its files.
//!
//! A cgroup is read with one open directory per hierarchy and one small read per file: a hundred pods are measured in some
//! milliseconds. Nothing is written, and no answer of the kernel makes this panic or grow without bound.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::reading::{CgroupReading, Depth, DiskUse, FsReading, InterfaceReading, MachineReading, MountedDisk};
use ports::host::{HostResult, NodeHost};
use ports::stats::StatsSource;

use crate::LinuxInfo;
use crate::cgroup::{Hierarchy, LinuxCgroups};

mod dir;
mod disk;
mod machine;
mod net;
mod parse;
mod roots;
mod tasks;
mod tree;
mod v1;
mod v2;

#[cfg(test)]
mod tests;

use roots::Roots;

/// How runtimes name a container's cgroup: before and after its id.
const LEAVES: [(&str, &str); 4] = [("", ""), ("cri-containerd-", ".scope"), ("crio-", ".scope"), ("docker-", ".scope")];

/// The counters of this machine.
#[derive(Clone, Debug)]
pub struct LinuxStats {
    roots: Roots,
    info: LinuxInfo,
    sys: PathBuf,
    /// The form of [`LEAVES`] that fitted last: a node has one runtime.
    leaf: Arc<AtomicUsize>,
    /// Names of block devices by number.
    devices: Arc<Mutex<BTreeMap<(u32, u32), String>>>,
    /// Fixed time of readings in tests; 0: the clock's.
    frozen: Arc<AtomicI64>,
}

impl LinuxStats {
    /// Over the tree of this machine.
    #[must_use]
    pub fn new(cgroups: &LinuxCgroups) -> Self {
        Self::over(cgroups.hierarchy().clone(), LinuxInfo::new(), "/proc".into(), "/sys".into())
    }

    /// Over a tree of files laid out as a unified hierarchy (`cgroup`) beside `proc` and `sys`: for tests and benchmarks.
    #[must_use]
    pub fn v2_in(root: &Path) -> Self {
        Self::in_folder(root, Hierarchy::V2(root.join("cgroup")))
    }

    /// Over a tree of files with one folder per controller in `cgroup`: for tests and benchmarks.
    #[must_use]
    pub fn v1_in(root: &Path) -> Self {
        let mounts = ["cpu", "cpuacct", "memory", "pids", "blkio"].map(|c| (c.to_owned(), root.join("cgroup").join(c)));
        Self::in_folder(root, Hierarchy::V1(mounts.into_iter().collect()))
    }

    fn in_folder(root: &Path, hierarchy: Hierarchy) -> Self {
        Self::over(hierarchy, LinuxInfo::at(root), root.join("proc"), root.join("sys"))
    }

    fn over(hierarchy: Hierarchy, info: LinuxInfo, proc: PathBuf, sys: PathBuf) -> Self {
        let roots = Roots { hierarchy, proc };
        Self { roots, info, sys, leaf: Arc::default(), devices: Arc::default(), frozen: Arc::default() }
    }

    /// Lets every reading carry this time: for tests, whose files have no clock.
    pub fn freeze(&self, at: Timestamp) {
        self.frozen.store(at.0, Ordering::Relaxed);
    }

    fn now(&self) -> Timestamp {
        match self.frozen.load(Ordering::Relaxed) {
            0 => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
            }
            fixed => Timestamp(fixed),
        }
    }
}

impl StatsSource for LinuxStats {
    fn cgroup(&self, path: &str, depth: Depth) -> Option<CgroupReading> {
        let mut reading = match self.roots.hierarchy {
            Hierarchy::V1(_) => v1::read(&self.roots, path, depth, self.now())?,
            Hierarchy::V2(_) => v2::read(&self.roots, path, depth, self.now())?,
        };
        if crate::cgroup::checked(path).is_ok_and(|p| p.as_os_str().is_empty()) {
            machine::complete_root(&self.info, &self.roots.proc, depth, &mut reading);
        }
        if depth == Depth::Full {
            for disk in &mut reading.disks {
                disk.device = self.device_name(disk.major, disk.minor);
            }
        }
        Some(reading)
    }

    fn container_cgroup(&self, pod_cgroup: &str, container_id: &str) -> Option<String> {
        if container_id.is_empty() || container_id.contains('/') {
            return None;
        }
        let pod = self.roots.path("memory", pod_cgroup)?;
        let first = self.leaf.load(Ordering::Relaxed);
        for form in (0..LEAVES.len()).map(|n| (first + n) % LEAVES.len()) {
            let (before, after) = LEAVES[form];
            let name = format!("{before}{container_id}{after}");
            if dir::is_dir(&pod.join(&name)) {
                self.leaf.store(form, Ordering::Relaxed);
                return Some(format!("{}/{name}", pod_cgroup.trim_end_matches('/')));
            }
        }
        None
    }

    fn any_process(&self, path: &str) -> Option<u32> {
        let controller = if matches!(self.roots.hierarchy, Hierarchy::V1(_)) { "cpuacct" } else { "" };
        self.roots.dir(controller, path)?.any_process(2)
    }

    fn own_cgroup(&self) -> Option<String> {
        machine::own_cgroup(&self.roots.proc, matches!(self.roots.hierarchy, Hierarchy::V2(_)))
    }

    fn network(&self, process: Option<u32>) -> Option<Vec<InterfaceReading>> {
        let of = process.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        let namespace = |of: &str| std::fs::read_link(self.roots.proc.join(of).join("ns/net")).ok();
        // Who holds a pod may stand on the node's network itself, and says nothing of the pod's.
        if process.is_some() && namespace(&of).is_some_and(|its| namespace("self") == Some(its)) {
            return None;
        }
        net::read(&self.roots.proc.join(of).join("net/dev"))
    }

    fn fs(&self, path: &Path) -> HostResult<FsReading> {
        disk::room(path)
    }

    fn device_size(&self, path: &Path) -> HostResult<u64> {
        disk::device_size(path, &self.sys)
    }

    fn files_in(&self, dir: &Path) -> Option<DiskUse> {
        tree::files_in(dir)
    }

    fn file(&self, path: &Path) -> Option<DiskUse> {
        tree::file(path)
    }

    fn tree(&self, dir: &Path, max_entries: u64) -> Option<DiskUse> {
        tree::tree(dir, max_entries)
    }

    fn disks(&self) -> Vec<MountedDisk> {
        disk::mounted(&self.roots.proc)
    }

    fn processes(&self) -> HostResult<(u64, u64)> {
        self.info.processes()
    }

    fn machine(&self) -> HostResult<MachineReading> {
        machine::read(&self.info, &self.roots.proc, &self.sys)
    }
}

impl LinuxStats {
    /// `/dev/vda`; empty when the kernel does not name it.
    fn device_name(&self, major: u32, minor: u32) -> String {
        let mut known = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let name = known.entry((major, minor)).or_insert_with(|| {
            let link = std::fs::read_link(self.sys.join(format!("dev/block/{major}:{minor}")));
            let name = link.ok().and_then(|l| Some(l.file_name()?.to_str()?.to_owned()));
            name.map(|n| format!("/dev/{n}")).unwrap_or_default()
        });
        name.clone()
    }
}
