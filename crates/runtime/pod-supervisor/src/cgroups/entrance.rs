//! How a process gets into cgroups without a wait. Who is moved by another one waits until the kernel has waited for all processors: 5 to 15 ms where
//! nobody was moved just before. Not so a thread that moves itself within a hierarchy of version 1 (`tasks`), and who begins in a group of version 2.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::hierarchies::{Hierarchy, parts};
use crate::helper::at;

/// The threads of a group of version 1.
const TASKS: &str = "tasks";
/// A thread that writes it into a file of a cgroup means itself.
const MYSELF: &[u8] = b"0";

/// What a process of one thread does to be in some cgroups.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Entrance {
    /// It writes itself into these files.
    files: Vec<PathBuf>,
    /// And begins in this group.
    folder: Option<PathBuf>,
}

impl Entrance {
    /// To these groups, of either version.
    pub(crate) fn to<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut entrance = Self::default();
        for folder in folders {
            match folder.join(TASKS).exists() {
                true => entrance.add_version_1(folder),
                false => entrance.set_version_2(folder),
            }
        }
        entrance
    }

    /// To one more group of version 1.
    pub(super) fn add_version_1(&mut self, folder: &Path) {
        self.files.push(folder.join(TASKS));
    }

    /// To the group of version 2, of which each process has one.
    pub(super) fn set_version_2(&mut self, folder: &Path) {
        self.folder = Some(folder.to_owned());
    }

    /// Where it can begin. Not where the group's processors and memory nodes are others than this process's own: before Linux 6.3 who begins there
    /// may get this one's.
    pub(crate) fn begins_in(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|folder| has_our_processors(folder).unwrap_or(false))
    }

    /// The same for who begins elsewhere, and waits.
    pub(crate) fn begun_elsewhere(mut self) -> Self {
        self.files.extend(self.folder.take().map(|folder| folder.join("cgroup.procs")));
        self
    }

    /// Opens the files, for who will not see them any more when it is time.
    pub(crate) fn open(&self) -> io::Result<Opened> {
        let open = |path: &PathBuf| Ok((path.clone(), OpenOptions::new().write(true).open(path).map_err(at(path))?));
        self.files.iter().map(open).collect::<io::Result<_>>().map(Opened)
    }
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

/// Whether processors and memory nodes of a group are those of this process. A group without that controller has those of the next one above it that has.
fn has_our_processors(folder: &Path) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ours = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    for (file, name) in
        [("cpuset.cpus.effective", "Cpus_allowed_list:"), ("cpuset.mems.effective", "Mems_allowed_list:")]
    {
        // The top has no events; what it has is everybody's.
        let groups = folder.ancestors().take_while(|group| group.join("cgroup.events").exists());
        let Some(file) = groups.map(|group| group.join(file)).find(|file| file.exists()) else { continue };
        if Some(fs::read_to_string(file)?.trim()) != ours(name) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Files that a thread is about to write itself into.
#[derive(Debug)]
pub(crate) struct Opened(Vec<(PathBuf, File)>);

impl Opened {
    /// Is in the groups from here on.
    pub(crate) fn enter(self) -> io::Result<()> {
        self.0.into_iter().try_for_each(|(path, mut file)| file.write_all(MYSELF).map_err(at(&path)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::hierarchies::{has_all, hierarchies};
    use super::*;

    fn ours(name: &str) -> String {
        let status = fs::read_to_string("/proc/self/status").expect("status");
        status.lines().find_map(|line| line.strip_prefix(name)).expect("a line").trim().to_owned()
    }

    #[test]
    fn nobody_begins_where_other_processors_are() {
        let (cpus, mems) = (ours("Cpus_allowed_list:"), ours("Mems_allowed_list:"));
        for (their_cpus, their_mems, can) in [
            (None, None, true),
            (Some(&*cpus), Some(&*mems), true),
            (Some("4711"), Some(&*mems), false),
            (Some(&*cpus), Some("4711"), false),
        ] {
            let folder = tempfile::tempdir().expect("folder");
            for (file, value) in [("cpuset.cpus.effective", their_cpus), ("cpuset.mems.effective", their_mems)] {
                if let Some(value) = value {
                    fs::write(folder.path().join(file), format!("{value}\n")).expect("file");
                }
            }
            let below = folder.path().join("below");
            fs::create_dir(&below).expect("folder");
            for group in [folder.path(), &below] {
                fs::write(group.join("cgroup.events"), "").expect("file");
            }
            assert_eq!(Entrance::to([&*below]).begins_in().is_some(), can, "{their_cpus:?} {their_mems:?}");
            let entrance = Entrance::to([folder.path()]);
            assert_eq!(entrance.begins_in().is_some(), can, "{their_cpus:?} {their_mems:?}");
            assert_eq!(entrance.begun_elsewhere().files, [folder.path().join("cgroup.procs")]);
        }
    }

    #[test]
    fn a_group_that_is_gone_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        let gone = folder.path().join("gone");
        let why = Entrance::to([&*gone]).begun_elsewhere().open().expect_err("it is gone").to_string();
        assert!(why.contains("gone/cgroup.procs"), "{why}");
    }

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
