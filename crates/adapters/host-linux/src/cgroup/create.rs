//! Making cgroups.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use ports::host::{HostError, HostResult};

use crate::At;

/// What a pod cgroup must have on v2, as far as the root has it.
pub(super) const WANTED_V2: [&str; 5] = ["cpu", "cpuset", "hugetlb", "memory", "pids"];

/// Words of a file; none when it cannot be read.
pub(super) fn words(file: &Path) -> BTreeSet<String> {
    fs::read_to_string(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn make_dir(dir: &Path) -> HostResult<()> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(HostError::new("mkdir", dir, e)),
        _ => Ok(()),
    }
}

/// Makes a cgroup in one hierarchy, and what is above it.
pub(super) fn v1(mount: &Path, below: &Path) -> HostResult<()> {
    // What is above is there but for the first time.
    let dir = mount.join(below);
    fs::create_dir_all(&dir).at("mkdir", &dir)
}

/// As [`v1`] in the hierarchy of cpusets: a new one is empty, and no process can live in it.
pub(super) fn cpuset(mount: &Path, below: &Path) -> HostResult<()> {
    let mut dir = mount.to_owned();
    for part in below.components() {
        let parent = dir.clone();
        dir.push(part);
        make_dir(&dir)?;
        inherit(&parent, &dir, "cpuset.cpus")?;
        inherit(&parent, &dir, "cpuset.mems")?;
    }
    Ok(())
}

fn inherit(parent: &Path, dir: &Path, file: &str) -> HostResult<()> {
    let mine = dir.join(file);
    if !fs::read_to_string(&mine).at("read", &mine)?.trim().is_empty() {
        return Ok(());
    }
    let theirs = parent.join(file);
    let value = fs::read_to_string(&theirs).at("read", &theirs)?;
    fs::write(&mine, value.trim()).at("write", &mine)
}

/// Makes a cgroup, and what is above it with every controller passed on.
pub(super) fn v2(root: &Path, below: &Path) -> HostResult<()> {
    let mut dir = root.to_owned();
    for part in below.components() {
        enable_controllers(&dir)?;
        dir.push(part);
        make_dir(&dir)?;
    }
    Ok(())
}

/// Passes every controller of a cgroup on to its children. One at a time: one that is refused must not hold back the rest.
fn enable_controllers(dir: &Path) -> HostResult<()> {
    let file = dir.join("cgroup.subtree_control");
    let enabled = words(&file);
    let mut first_error = None;
    for controller in words(&dir.join("cgroup.controllers")).difference(&enabled) {
        let written = fs::OpenOptions::new()
            .append(true)
            .open(&file)
            .and_then(|mut f| io::Write::write_all(&mut f, format!("+{controller}").as_bytes()));
        if let Err(e) = written
            && WANTED_V2.contains(&controller.as_str())
        {
            first_error.get_or_insert(HostError::new("enable controllers", file.clone(), e));
        }
    }
    first_error.map_or(Ok(()), Err)
}
