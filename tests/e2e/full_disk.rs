//! The daemon's own folder on a file system that is full, and turned read-only: real ones, so that it is the kernel that
//! refuses. A tmpfs of a few MiB is mounted over `bosun/`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::{Bosun, BosunOptions, Options, TestBed};

use crate::node::{Node, identity, shell};

/// A tmpfs; unmounted when dropped, the daemon may still be on it.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Self {
        std::fs::create_dir_all(at).expect("a folder");
        let disk = Disk(at.to_owned());
        disk.run("mount", &["-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs"]);
        disk
    }

    fn run(&self, program: &str, args: &[&str]) {
        let status = Command::new(program).args(args).arg(&self.0).status().expect("starts");
        assert!(status.success(), "{program} {args:?}");
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).expect("made");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("removed");
    }

    fn files(&self) -> Vec<String> {
        let all = std::fs::read_dir(&self.0).expect("a folder").flatten();
        let mut names: Vec<_> = all.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|n| n.starts_with("journal"));
        names.sort();
        names
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _best_effort = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn put(node: &Node, name: &str) {
    node.put(
        name,
        &format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}", shell("main", "exec sleep 1000", "")),
    );
}

#[test]
fn a_disk_that_is_full_from_the_start_costs_no_pod_and_the_journal_comes_when_there_is_room() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let disk = Disk::mount(&bed.dir().join("node/bosun"));
    disk.fill();
    let bosun = Bosun::start(&mut bed, BosunOptions::default()).expect("starts on a full disk");
    let mut node = Node { bosun, bed };
    put(&node, "a");
    let a = identity(&node.wait_running("a"));
    disk.empty();
    put(&node, "b");
    let b = identity(&node.wait_running("b"));
    assert_eq!(disk.files(), ["journal.redb"], "{}", node.bosun.log());
    node.bosun.kill();
    disk.fill();
    node.bosun.start_again(&mut node.bed).expect("starts on a disk that is full again");
    assert_eq!((identity(&node.wait_running("a")), identity(&node.wait_running("b"))), (a, b));
    assert_eq!(disk.files(), ["journal.redb"], "an intact journal is not set aside: {}", node.bosun.log());
    node.bosun.kill();
    drop(disk);
}

#[test]
fn a_disk_that_turns_read_only_and_back_leaves_the_journal_working() {
    let mut bed = TestBed::start(Options::default()).expect("a bed");
    let disk = Disk::mount(&bed.dir().join("node/bosun"));
    let bosun = Bosun::start(&mut bed, BosunOptions::default()).expect("starts");
    let mut node = Node { bosun, bed };
    put(&node, "a");
    let a = identity(&node.wait_running("a"));
    disk.fill();
    put(&node, "b");
    node.wait_running("b");
    node.bosun.kill();
    disk.run("mount", &["-o", "remount,ro"]);
    node.bosun.start_again(&mut node.bed).expect("starts on a read-only disk");
    assert_eq!(identity(&node.wait_running("a")), a);
    disk.run("mount", &["-o", "remount,rw"]);
    disk.empty();
    put(&node, "c");
    node.wait_running("c");
    assert_eq!(disk.files(), ["journal.redb"], "{}", node.bosun.log());
    node.bosun.kill();
    drop(disk);
}
