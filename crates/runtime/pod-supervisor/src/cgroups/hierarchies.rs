//! Hierarchies of cgroups, as the node has them mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entrance::Entrance;

/// A hierarchy, where it is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    /// Which of its groups is seen at the top.
    root: PathBuf,
    pub(super) at: PathBuf,
    /// Options of the file system: its controllers, or its name. `None`: version 2.
    pub(super) controllers: Option<Vec<String>>,
}

/// All hierarchies in the node's `/proc/self/mountinfo`. That has a line for each mount of each pod, so it is not read for each container.
pub(super) fn hierarchies(mountinfo: &str) -> Vec<Hierarchy> {
    mountinfo.lines().filter_map(Hierarchy::of).collect()
}

/// Those of this node.
///
/// # Errors
/// Its mounts cannot be read.
pub fn hierarchies_here() -> io::Result<Vec<Hierarchy>> {
    Ok(hierarchies(&fs::read_to_string("/proc/self/mountinfo")?))
}

/// How a process gets into the cgroups in `/proc/PID/cgroup`. Not into one of a hierarchy that is mounted nowhere: nobody could have put the container
/// into a group of it.
///
/// # Errors
/// A hierarchy is mounted, and this group of it is not to be seen: a command outside of it would have what the container must not.
pub(crate) fn entrance(cgroup: &str, hierarchies: &[Hierarchy]) -> io::Result<Entrance> {
    let mut entrance = Entrance::default();
    for line in cgroup.lines() {
        let Some((controllers, path)) = parts(line) else { continue };
        let mut theirs = hierarchies.iter().filter(|h| h.has(controllers)).peekable();
        if theirs.peek().is_none() {
            continue;
        }
        let found = theirs.find_map(|h| Some(h.at.join(Path::new(path).strip_prefix(&h.root).ok()?)));
        let group = found.ok_or_else(|| io::Error::other(format!("cgroup {line} is mounted nowhere")))?;
        match controllers {
            "" => entrance.set_version_2(&group),
            _ => entrance.add_version_1(&group),
        }
    }
    Ok(entrance)
}

/// Whether each group in `/proc/PID/cgroup`, but for the top of a hierarchy, is one of a hierarchy that is known.
pub(crate) fn has_all(cgroup: &str, hierarchies: &[Hierarchy]) -> bool {
    let mut groups = cgroup.lines().filter_map(parts);
    groups.all(|(controllers, path)| path == "/" || hierarchies.iter().any(|h| h.has(controllers)))
}

/// Controllers and path of a line of `/proc/PID/cgroup`.
fn parts(line: &str) -> Option<(&str, &str)> {
    line.split_once(':')?.1.split_once(':')
}

impl Hierarchy {
    /// Whether it is mounted there.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        self.at == path
    }

    fn of(line: &str) -> Option<Self> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (mount.next()?.into(), mount.next()?.into());
        let mut kind = kind.split(' ');
        let controllers = match kind.next()? {
            "cgroup" => Some(kind.nth(1)?.split(',').map(str::to_owned).collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Self { root, at, controllers })
    }

    /// `controllers` as `/proc/PID/cgroup` has them: empty for version 2.
    fn has(&self, controllers: &str) -> bool {
        match &self.controllers {
            None => controllers.is_empty(),
            Some(ours) => !controllers.is_empty() && controllers.split(',').all(|c| ours.iter().any(|own| own == c)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hierarchy_has_its_group() {
        let mounts = "25 20 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n\
            26 25 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
            27 25 0:24 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
            28 25 0:25 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            29 25 0:26 /docker/x /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
            30 25 0:27 /other /mnt/cpuset rw - cgroup cgroup rw,cpuset\n\
            31 25 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let groups = "9:pids:/docker/x/pod/c\n8:cpu,cpuacct:/pod/c\n5:rdma:/\n3:cpuset:/pod/c\n1:name=systemd:/a.slice\n0::/pod/c\n";
        let mut want = Entrance::default();
        for group in ["pids/pod/c", "cpu,cpuacct/pod/c", "cpuset/pod/c", "systemd/a.slice"] {
            want.add_version_1(&Path::new("/sys/fs/cgroup").join(group));
        }
        want.set_version_2(Path::new("/sys/fs/cgroup/unified/pod/c"));
        let here = hierarchies(mounts);
        assert_eq!(entrance(groups, &here).expect("all"), want);
        assert!(has_all(groups, &here) && !has_all("4:net_cls:/pod/c\n0::/pod/c\n", &here) && !has_all(groups, &[]));
    }

    #[test]
    fn a_group_that_cannot_be_entered_is_not_left_out() {
        let mounts = hierarchies("29 25 0:26 /a/b /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
        assert!(entrance("9:pids:/a/bc/d\n", &mounts).unwrap_err().to_string().contains("9:pids:/a/bc/d"));
        assert!(entrance("9:pids:/x\n", &mounts).is_err());
        let mut top = Entrance::default();
        top.add_version_1(Path::new("/sys/fs/cgroup/pids"));
        assert_eq!(entrance("9:pids:/a/b\n", &mounts).expect("its top"), top);
    }

    #[test]
    fn the_top_of_version_2_is_a_group_like_others() {
        let mounts = hierarchies("26 25 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let one = |group: &str| entrance(group, &mounts).expect("mounted").begun_elsewhere();
        let to = |folder: &str| {
            let mut want = Entrance::default();
            want.set_version_2(Path::new(folder));
            want.begun_elsewhere()
        };
        assert_eq!(one("0::/\n"), to("/sys/fs/cgroup/"));
        assert_eq!(one("0::/a:b/c\n"), to("/sys/fs/cgroup/a:b/c"));
        assert_eq!(one(""), Entrance::default());
    }
}
