//! How a process gets into cgroups without a wait. Who is moved by another one waits until the kernel has waited for all processors: 5 to 15 ms where
//! nobody was moved just before. Not so a thread that moves itself within a hierarchy of version 1 (`tasks`), and who begins in a group of version 2.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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

/// Whether processors and memory nodes of a group are those of this process. A group without that controller has its parent's.
fn has_our_processors(folder: &Path) -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ours = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    for (file, name) in [("cpuset.cpus.effective", "Cpus_allowed_list:"), ("cpuset.mems.effective", "Mems_allowed_list:")] {
        match fs::read_to_string(folder.join(file)) {
            Ok(theirs) if Some(theirs.trim()) == ours(name) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => return other.map(|_| false),
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
}
