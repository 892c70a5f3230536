//! The unified hierarchy, laid out as plain files.

use std::fs;
use std::path::{Path, PathBuf};

use cgroups_rs::fs::cpu::CpuController;
use cgroups_rs::fs::freezer::FreezerController;
use cgroups_rs::fs::hugetlb::HugeTlbController;
use cgroups_rs::fs::memory::MemController;
use cgroups_rs::fs::pid::PidController;
use cgroups_rs::fs::{Cgroup, Controller, Hierarchy, MaxValue, Resources, Subsystem};

/// A hierarchy in a folder: the library's own is always at `/sys/fs/cgroup`.
#[derive(Clone, Debug)]
struct Tree(PathBuf);

impl Hierarchy for Tree {
    fn subsystems(&self) -> Vec<Subsystem> {
        let (root, top) = (self.0.clone(), PathBuf::new());
        vec![
            Subsystem::Cpu(CpuController::new(root.clone(), top.clone(), true)),
            Subsystem::Mem(MemController::new(root.clone(), top.clone(), true)),
            Subsystem::Pid(PidController::new(root, top, true)),
        ]
    }

    fn root(&self) -> PathBuf {
        self.0.clone()
    }

    fn root_control_group(&self) -> Cgroup {
        Cgroup::load(Box::new(self.clone()), "")
    }

    fn parent_control_group(&self, path: &str) -> Cgroup {
        Cgroup::load(Box::new(self.clone()), Path::new(path).parent().unwrap())
    }

    fn v2(&self) -> bool {
        true
    }
}

fn tree() -> (tempfile::TempDir, Box<Tree>) {
    let dir = tempfile::tempdir().unwrap();
    let tree = Box::new(Tree(dir.path().to_owned()));
    (dir, tree)
}

fn read(dir: &Path, file: &str) -> String {
    fs::read_to_string(dir.join(file)).unwrap()
}

#[test]
fn can_write_one_limit_of_one_controller() {
    let (dir, _) = tree();
    let at = || (dir.path().to_owned(), PathBuf::new());
    let (memory, pids) = (MemController::new(at().0, at().1, true), PidController::new(at().0, at().1, true));
    let (pages, freezer) = (HugeTlbController::new(at().0, at().1, true), FreezerController::new(at().0, at().1, true));
    for (limit, text) in [(1 << 30, "1073741824"), (-1, "max")] {
        memory.set_limit(limit).unwrap();
        assert_eq!(read(dir.path(), "memory.max"), text);
    }
    for (limit, text) in [(MaxValue::Value(100), "100"), (MaxValue::Max, "max")] {
        pids.set_pid_max(limit).unwrap();
        assert_eq!(read(dir.path(), "pids.max"), text);
    }
    pages.set_limit_in_bytes("2MB", 0).unwrap();
    assert_eq!(read(dir.path(), "hugetlb.2MB.max"), "0");
    freezer.freeze().unwrap();
    assert_eq!(read(dir.path(), "cgroup.freeze"), "1");
}

#[test]
fn can_limit_cpu_when_the_caller_converts_the_shares_and_the_file_is_there_to_be_read() {
    let (dir, _) = tree();
    let cpu = CpuController::new(dir.path().to_owned(), PathBuf::new(), true);
    cpu.set_shares(1024).unwrap();
    assert_eq!(read(dir.path(), "cpu.weight"), "1024", "the weight of 1024 shares is 39");
    assert!(cpu.set_cfs_quota_and_period(Some(50_000), Some(100_000)).is_err(), "it reads before it writes");
    fs::write(dir.path().join("cpu.max"), "max 100000\n").unwrap();
    for (quota, text) in [(50_000, "50000 100000"), (-1, "max 100000")] {
        cpu.set_cfs_quota_and_period(Some(quota), None).unwrap();
        assert_eq!(read(dir.path(), "cpu.max"), text);
    }
}

#[test]
fn cannot_tell_that_no_controller_was_passed_on_to_a_new_cgroup() {
    let (dir, tree) = tree();
    fs::write(dir.path().join("cgroup.controllers"), "cpu memory pids").unwrap();
    // Whatever is written into it fails, as it does in a kernel whose parent does not have the controller.
    fs::create_dir(dir.path().join("cgroup.subtree_control")).unwrap();
    Cgroup::new(tree, "kubepods/pod").unwrap();
    assert!(dir.path().join("kubepods/pod").is_dir());
}

#[test]
fn cannot_tell_that_memory_was_not_limited() {
    let (dir, tree) = tree();
    let mut limits = Resources::default();
    limits.memory.memory_hard_limit = Some(1 << 30);
    Cgroup::load(tree, "gone").apply(&limits).unwrap();
    assert!(!dir.path().join("gone").exists());
}

#[test]
fn cannot_try_the_other_controllers_after_one_that_failed() {
    let (dir, tree) = tree();
    let pod = dir.path().join("pod");
    fs::create_dir(&pod).unwrap();
    let mut limits = Resources::default();
    limits.cpu.quota = Some(1000);
    limits.pid.maximum_number_of_processes = Some(MaxValue::Value(100));
    assert!(Cgroup::load(tree, "pod").apply(&limits).is_err());
    assert!(!pod.join("pids.max").exists());
}

#[test]
fn cannot_remove_a_branch_nor_what_is_gone_nor_say_what_it_could_not_remove() {
    let (dir, tree) = tree();
    fs::create_dir_all(dir.path().join("kubepods/pod")).unwrap();
    let failed = Cgroup::load(tree.clone(), "kubepods").delete().unwrap_err();
    assert!(!failed.to_string().contains("kubepods"), "{failed}");
    Cgroup::load(tree.clone(), "kubepods/pod").delete().unwrap();
    assert!(Cgroup::load(tree, "kubepods/pod").delete().is_err(), "absence is what was wanted");
}

#[test]
fn can_remove_a_branch_through_a_controller_as_version_1_does_it() {
    let (dir, _) = tree();
    fs::create_dir_all(dir.path().join("kubepods/pod/leaf")).unwrap();
    let cpu = CpuController::new(dir.path().join("kubepods"), PathBuf::new(), true);
    cpu.delete().unwrap();
    cpu.delete().unwrap();
    assert!(!dir.path().join("kubepods").exists());
}
