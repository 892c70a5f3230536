//! Version 1: the real hierarchies of this machine, and a cpuset of plain files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cgroups_rs::fs::cpu::CpuController;
use cgroups_rs::fs::cpuset::CpuSetController;
use cgroups_rs::fs::freezer::FreezerController;
use cgroups_rs::fs::hierarchies::V1;
use cgroups_rs::fs::memory::MemController;
use cgroups_rs::fs::pid::PidController;
use cgroups_rs::fs::{Cgroup, Controller, Hierarchy, MaxValue, Resources};

/// A cgroup of our own in every hierarchy; removed at the end, whatever the library left.
struct Own(String);

impl Own {
    fn new(test: &str) -> Option<Self> {
        let usable = mounted() && fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !usable {
            eprintln!("skipped: needs root and cgroup v1");
        }
        usable.then(|| Self(format!("bosun-cgroups-rs-{}-{test}", std::process::id())))
    }

    fn cgroup(&self) -> Cgroup {
        Cgroup::new(Box::new(V1::new()), &self.0).unwrap()
    }

    /// Directories of it that are there.
    fn dirs(&self) -> Vec<PathBuf> {
        let all = V1::new().subsystems();
        all.iter().map(|s| s.to_controller().path().join(&self.0)).filter(|d| d.exists()).collect()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for dir in self.dirs() {
            let children = fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path()).filter(|p| p.is_dir());
            for dir in children.collect::<Vec<_>>().iter().chain([&dir]) {
                let _ = fs::remove_dir(dir);
            }
        }
    }
}

fn mounted() -> bool {
    let hierarchies = V1::new().subsystems();
    let has = |name: &str| hierarchies.iter().any(|s| s.controller_name() == name);
    ["cpu", "cpuset", "freezer", "memory", "pids"].into_iter().all(has)
}

fn read(dir: &Path, file: &str) -> String {
    fs::read_to_string(dir.join(file)).unwrap().trim().to_owned()
}

#[test]
fn can_make_limit_freeze_and_remove_an_empty_branch() {
    let Some(own) = Own::new("all") else { return };
    let cgroup = own.cgroup();
    let cpu: &CpuController = cgroup.controller_of().unwrap();
    cpu.set_shares(1024).unwrap();
    cpu.set_cfs_period(100_000).unwrap();
    cpu.set_cfs_quota(50_000).unwrap();
    let shown = ["cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us"].map(|f| read(cpu.path(), f));
    assert_eq!(shown, ["1024", "100000", "50000"]);
    let memory: &MemController = cgroup.controller_of().unwrap();
    memory.set_limit(1 << 30).unwrap();
    assert_eq!(read(memory.path(), "memory.limit_in_bytes"), "1073741824");
    let pids: &PidController = cgroup.controller_of().unwrap();
    pids.set_pid_max(MaxValue::Value(100)).unwrap();
    assert_eq!(read(pids.path(), "pids.max"), "100");
    let cpuset: &CpuSetController = cgroup.controller_of().unwrap();
    assert!(!read(cpuset.path(), "cpuset.cpus").is_empty(), "filled from its parent");
    let freezer: &FreezerController = cgroup.controller_of().unwrap();
    freezer.freeze().unwrap();
    assert_eq!(read(freezer.path(), "freezer.state"), "FROZEN");
    freezer.thaw().unwrap();
    fs::create_dir(cpu.path().join("below")).unwrap();
    cgroup.delete().unwrap();
    cgroup.delete().unwrap();
    assert!(own.dirs().is_empty());
}

#[test]
fn cannot_remove_what_a_process_runs_in_and_leaves_the_other_hierarchies_too() {
    let Some(own) = Own::new("busy") else { return };
    let cgroup = own.cgroup();
    let memory: &MemController = cgroup.controller_of().unwrap();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(memory.path().join("cgroup.procs"), child.id().to_string()).unwrap();
    let deleted = cgroup.delete();
    let (alive, left) = (child.try_wait().unwrap().is_none(), own.dirs());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(deleted.is_err() && alive);
    assert!(left.iter().any(|d| d.starts_with("/sys/fs/cgroup/pids")), "it ends at the first: {left:?}");
}

#[test]
fn cannot_tell_that_the_kernel_refused_a_limit_of_memory() {
    let Some(own) = Own::new("memory") else { return };
    let cgroup = own.cgroup();
    let memory: &MemController = cgroup.controller_of().unwrap();
    assert!(memory.set_limit(-5).is_err(), "the kernel takes no such number");
    let mut limits = Resources::default();
    limits.memory.memory_hard_limit = Some(-5);
    cgroup.apply(&limits).unwrap();
}

#[test]
fn cannot_set_shares_that_the_kernel_rounds() {
    let Some(own) = Own::new("shares") else { return };
    let mut limits = Resources::default();
    limits.cpu.shares = Some(1);
    let failed = own.cgroup().apply(&limits).unwrap_err();
    assert_eq!(failed.to_string(), "an unknown error", "the kernel made it 2, which is what was wanted");
}

#[test]
fn cannot_keep_a_path_below_the_mount_points() {
    if !mounted() {
        return eprintln!("skipped: needs cgroup v1");
    }
    let hierarchy = || Box::new(V1::new());
    for s in Cgroup::load(hierarchy(), "/kubepods").subsystems() {
        assert_eq!(s.to_controller().path(), Path::new("/kubepods"), "an absolute path is taken from the host's root");
    }
    for s in Cgroup::load(hierarchy(), "../../../etc").subsystems() {
        assert!(s.to_controller().path().ends_with("../../../etc"), "no component is refused");
    }
}

#[test]
fn cannot_tell_that_a_cpuset_stayed_empty() {
    let dir = tempfile::tempdir().unwrap();
    let pod = dir.path().join("pod");
    CpuSetController::new(pod.clone(), dir.path().to_owned(), false).create().unwrap();
    assert!(!pod.join("cpuset.cpus").exists(), "no process can live in it");
}
