//! The cgroup of a container in all hierarchies: found, made, joined, removed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::entrance::Entrance;
use super::hierarchies::Hierarchy;
use crate::helper::at;

/// Where hierarchies are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The cgroup of one container in all hierarchies.
#[derive(Debug)]
pub struct Groups(Vec<Group>);

/// And in one of them.
#[derive(Debug)]
pub(crate) struct Group {
    /// Controllers of version 1, or the name; none: version 2.
    controllers: Vec<String>,
    /// Where the hierarchy is mounted.
    pub(crate) mount: PathBuf,
    /// The folder.
    pub(crate) folder: PathBuf,
}

impl Groups {
    /// Those of a path (`cgroupsPath` of a spec).
    ///
    /// # Errors
    /// The path is none of a container below another group.
    pub fn of(path: &str, hierarchies: &[Hierarchy]) -> io::Result<Self> {
        let below = path
            .strip_prefix('/')
            .filter(|p| p.contains('/') && p.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
        let below = below.ok_or_else(|| io::Error::other(format!("{path:?} is no cgroup of a container")))?;
        Ok(Self(groups(below, hierarchies)))
    }

    /// The folder in version 2, where there is nothing else.
    pub(crate) fn in_version_2(&self) -> Option<&Path> {
        match &self.0[..] {
            [one] if one.controllers.is_empty() => Some(&one.folder),
            _ => None,
        }
    }

    /// Makes them, each with those above it.
    pub(crate) fn make(&self) -> io::Result<()> {
        if let Some(folder) = self.in_version_2() {
            // One without rules for devices would let it have all.
            return fs::metadata(folder).map(drop).map_err(at(folder));
        }
        for group in &self.0 {
            fs::create_dir_all(&group.folder).map_err(at(&group.folder))?;
        }
        self.0.iter().filter(|g| g.has("cpuset")).try_for_each(|g| inherit_cpuset(&g.mount, &g.folder))
    }

    /// How a process gets into them.
    pub(crate) fn entrance(&self) -> Entrance {
        let mut entrance = Entrance::default();
        for group in &self.0 {
            match group.controllers.is_empty() {
                true => entrance.set_version_2(&group.folder),
                false => entrance.add_version_1(&group.folder),
            }
        }
        entrance
    }

    /// Removes them, with what a container has made below. What is in them is killed: the start may have failed after its process had begun.
    ///
    /// # Errors
    /// A process is in one of them yet: the others are gone.
    pub(crate) fn remove(&self) -> io::Result<()> {
        // One that was just entering them may be in some.
        for group in &self.0 {
            kill(&group.folder);
        }
        self.0.iter().map(|g| remove(&g.folder).map_err(at(&g.folder))).fold(Ok(()), Result::and)
    }

    /// The folder of a controller of version 1.
    pub(crate) fn of_controller(&self, name: &str) -> Option<&Path> {
        self.0.iter().find(|g| g.has(name)).map(|g| g.folder.as_path())
    }

    /// A number in a file of a controller of version 1.
    pub(super) fn now(&self, controller: &str, file: &str) -> Option<u64> {
        fs::read_to_string(self.of_controller(controller)?.join(file)).ok()?.trim().parse().ok()
    }

    /// Writes a file of a controller of version 1.
    pub(super) fn set(&self, controller: &str, file: &str, value: &str) -> io::Result<()> {
        let missing =
            || io::Error::other(format!("{file} cannot be set to {value}: no cgroup controller {controller}"));
        let path = self.of_controller(controller).ok_or_else(missing)?.join(file);
        write(&path, value).map_err(|e| io::Error::new(e.kind(), format!("{}: {value}: {e}", path.display())))
    }

    /// Those of version 1.
    pub(crate) fn of_version_1(&self) -> impl Iterator<Item = &Group> {
        self.0.iter().filter(|g| !g.controllers.is_empty())
    }
}

impl Group {
    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|c| c == controller)
    }
}

/// Each hierarchy once, though it be mounted more often.
fn groups(below: &str, hierarchies: &[Hierarchy]) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for found in hierarchies.iter().filter(|h| h.at.starts_with(MOUNT)) {
        let (controllers, mount) = (found.controllers.clone().unwrap_or_default(), found.at.clone());
        if !all.iter().any(|g| g.controllers == controllers || g.mount == mount) {
            all.push(Group { controllers, folder: mount.join(below), mount });
        }
    }
    all
}

/// Writes a file of a cgroup, which is there or is not: to make one is refused with other words.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Moves a process into a group, by its `cgroup.procs`.
///
/// # Errors
/// There is no such group, or it takes nobody.
pub fn put_into(procs: &Path, pid: u32) -> io::Result<()> {
    write(procs, &pid.to_string()).map_err(at(procs))
}

/// Kills what is in a group, and in those below it. Who comes to its number meanwhile is not in it.
fn kill(folder: &Path) {
    let inside = || fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in inside().lines().filter_map(|line| line.parse().ok().and_then(Pid::from_raw)) {
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if inside().lines().any(|line| line == pid.as_raw_nonzero().to_string()) {
            // An error means that it ended just now.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
    for below in fs::read_dir(folder).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            kill(&below.path());
        }
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// A new group of `cpuset` has no processors and no memory until it is given some; those above it may be new, too.
fn inherit_cpuset(mount: &Path, folder: &Path) -> io::Result<()> {
    let Some(above) = folder.parent().filter(|_| folder != mount) else { return Ok(()) };
    inherit_cpuset(mount, above)?;
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let path = folder.join(file);
        if fs::read_to_string(&path).map_err(at(&path))?.trim().is_empty() {
            let theirs = fs::read(above.join(file)).map_err(at(&above.join(file)))?;
            fs::write(&path, theirs).map_err(at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::hierarchies::hierarchies;

    #[test]
    fn a_container_has_one_group_in_each_hierarchy() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
            34 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            35 31 0:29 / /mnt/other rw - cgroup cgroup rw,cpu,cpuacct\n\
            36 31 0:29 /x /sys/fs/cgroup/again rw - cgroup cgroup rw,cpu,cpuacct\n";
        let all = groups("pods/p/c", &hierarchies(mounts));
        let folders: Vec<_> = all.iter().map(|g| g.folder.to_string_lossy().into_owned()).collect();
        let want = ["cpu,cpuacct", "systemd", "unified"].map(|m| format!("/sys/fs/cgroup/{m}/pods/p/c"));
        assert_eq!(folders, want);
        let all = Groups(all);
        assert!(all.of_controller("cpuacct").is_some() && all.of_controller("memory").is_none());
        assert_eq!(all.of_version_1().count(), 2);
        let two = groups("a/b", &hierarchies("30 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"));
        assert_eq!((two.len(), two[0].folder.as_path()), (1, Path::new("/sys/fs/cgroup/a/b")));
    }

    #[test]
    fn no_other_groups_are_taken_for_a_containers() {
        for path in ["", "/", "/a", "a/b", "/a/", "/a//b", "/a/../b", "/../a", "/a/./b"] {
            assert!(Groups::of(path, &[]).is_err(), "{path:?}");
        }
        assert!(Groups::of("/a/b", &[]).is_ok());
    }

    #[test]
    fn groups_go_with_those_below_them() {
        let dir = tempfile::tempdir().expect("folder");
        let folder = dir.path().join("a");
        fs::create_dir_all(folder.join("b/c")).expect("folders");
        remove(&folder).expect("gone");
        remove(&folder).expect("nothing is there");
        assert!(!folder.exists());
    }

    #[test]
    fn processors_are_those_of_the_next_group_that_has_some() {
        let dir = tempfile::tempdir().expect("folder");
        let folder = dir.path().join("pods/pod");
        fs::create_dir_all(&folder).expect("folders");
        for (at, cpus) in [(dir.path(), "0-1\n"), (&dir.path().join("pods"), "\n"), (&folder, "")] {
            fs::write(at.join("cpuset.cpus"), cpus).expect("file");
            fs::write(at.join("cpuset.mems"), "0\n").expect("file");
        }
        inherit_cpuset(dir.path(), &folder).expect("inherited");
        assert_eq!(fs::read_to_string(folder.join("cpuset.cpus")).expect("file"), "0-1\n");
    }
}
