//! cgroups as plain directories, v1 and v2.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::cgroup::Process;
use model::resources::CgroupValues;
use ports::host::{CgroupFs, CgroupVersion, HostError, HostResult};

use crate::At;

mod create;
mod devices;
mod kill;
mod processes;
mod systemd;
mod values;

#[cfg(test)]
mod tests;

pub use devices::{DeviceKind, DeviceRule, allow_devices};
pub use systemd::{SystemdCgroups, SystemdScopes};

const MOUNT: &str = "/sys/fs/cgroup";
const CGROUP2_MAGIC: i64 = 0x6367_7270;
/// Without these a v1 node cannot limit pods at all.
const REQUIRED: [&str; 4] = ["cpu", "cpuacct", "cpuset", "memory"];

/// The host's cgroup tree.
#[derive(Clone, Debug)]
pub struct LinuxCgroups {
    hierarchy: Hierarchy,
    /// Version 2 where it is mounted beside version 1, without controllers: OCI runtimes make cgroups there too, below those of pods.
    beside: Option<PathBuf>,
    proc: PathBuf,
}

#[derive(Clone, Debug)]
pub(crate) enum Hierarchy {
    /// Mount point by controller; controllers that are mounted together share one.
    V1(BTreeMap<String, PathBuf>),
    V2(PathBuf),
}

impl LinuxCgroups {
    /// The tree of this machine.
    pub fn detect() -> HostResult<Self> {
        let root = Path::new(MOUNT);
        let magic = rustix::fs::statfs(root).at("statfs", root)?.f_type;
        let (hierarchy, beside) = if i128::from(magic) == i128::from(CGROUP2_MAGIC) {
            (Hierarchy::V2(root.to_owned()), None)
        } else {
            let (mounts, beside) = v1_mounts()?;
            (Hierarchy::V1(mounts), beside)
        };
        Ok(Self { hierarchy, beside, proc: PathBuf::from("/proc") })
    }

    #[cfg(test)]
    fn v2_at(root: &Path, proc: &Path) -> Self {
        Self { hierarchy: Hierarchy::V2(root.to_owned()), beside: None, proc: proc.to_owned() }
    }

    #[cfg(test)]
    fn v1_at(mounts: &[(&str, &Path)], proc: &Path) -> Self {
        let mounts = mounts.iter().map(|(c, p)| ((*c).to_owned(), p.to_path_buf())).collect();
        Self { hierarchy: Hierarchy::V1(mounts), beside: None, proc: proc.to_owned() }
    }

    pub(crate) fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Each mount point once.
    fn mounts(&self) -> BTreeSet<&Path> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.values().map(PathBuf::as_path).collect(),
            Hierarchy::V2(root) => BTreeSet::from([root.as_path()]),
        }
    }

    /// Directories of one cgroup, one per mount point.
    fn dirs(&self, path: &str) -> HostResult<Vec<PathBuf>> {
        let below = checked(path)?;
        Ok(self.mounts().into_iter().map(|m| m.join(&below)).collect())
    }

    /// Where a controller's files of a cgroup are; `None` when the host does not have the controller.
    fn dir_of(&self, controller: &str, path: &str) -> HostResult<Option<PathBuf>> {
        let below = checked(path)?;
        Ok(match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.get(controller).map(|m| m.join(below)),
            Hierarchy::V2(root) => Some(root.join(below)),
        })
    }

    /// Whether the host has a controller.
    fn has(&self, controller: &str) -> bool {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.contains_key(controller),
            Hierarchy::V2(root) => create::words(&root.join("cgroup.controllers")).contains(controller),
        }
    }

    /// Path of this process in the tree that limits memory.
    fn own_memory_path(&self) -> Option<String> {
        let own: procfs::ProcessCGroups = crate::parsed(&self.proc.join("self/cgroup")).ok()?;
        let controller = if matches!(self.hierarchy, Hierarchy::V1(_)) { "memory" } else { "" };
        path_of(&own, controller).map(str::to_owned)
    }
}

/// Path of a process in the tree of a v1 controller, or (no name) in the unified one.
pub(crate) fn path_of<'a>(own: &'a procfs::ProcessCGroups, controller: &str) -> Option<&'a str> {
    let has = |c: &[String]| if controller.is_empty() { c.is_empty() } else { c.iter().any(|c| c == controller) };
    own.into_iter().find(|tree| has(&tree.controllers)).map(|tree| tree.pathname.as_str())
}

impl CgroupFs for LinuxCgroups {
    fn version(&self) -> CgroupVersion {
        match self.hierarchy {
            Hierarchy::V1(_) => CgroupVersion::V1,
            Hierarchy::V2(_) => CgroupVersion::V2,
        }
    }

    fn missing_controllers(&self) -> Vec<String> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => {
                REQUIRED.iter().filter(|c| !mounts.contains_key(**c)).map(|c| (*c).to_owned()).collect()
            }
            Hierarchy::V2(_) => Vec::new(),
        }
    }

    fn has_swap_controller(&self) -> bool {
        let file = match self.hierarchy {
            Hierarchy::V1(_) => "memory.memsw.limit_in_bytes",
            Hierarchy::V2(_) => "memory.swap.max",
        };
        let own = self.own_memory_path().unwrap_or_default();
        matches!(self.dir_of("memory", &own), Ok(Some(dir)) if dir.join(file).exists())
    }

    fn exists(&self, path: &str) -> HostResult<bool> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => {
                let below = checked(path)?;
                let needed = |c: &&String| REQUIRED.contains(&c.as_str()) || *c == "pids" || *c == "hugetlb";
                Ok(mounts.iter().filter(|(c, _)| needed(c)).all(|(_, m)| m.join(&below).is_dir()))
            }
            Hierarchy::V2(root) => {
                let dir = root.join(checked(path)?);
                if !dir.is_dir() {
                    return Ok(false);
                }
                let (all, here) =
                    (create::words(&root.join("cgroup.controllers")), create::words(&dir.join("cgroup.controllers")));
                Ok(create::WANTED_V2.iter().all(|c| !all.contains(*c) || here.contains(*c)))
            }
        }
    }

    fn create(&self, path: &str) -> HostResult<()> {
        let below = checked(path)?;
        match &self.hierarchy {
            Hierarchy::V1(mounts) => {
                let cpusets = mounts.get("cpuset").map(PathBuf::as_path);
                for mount in self.mounts() {
                    let make = if cpusets == Some(mount) { create::cpuset } else { create::v1 };
                    make(mount, &below)?;
                }
                Ok(())
            }
            Hierarchy::V2(root) => create::v2(root, &below),
        }
    }

    fn set(&self, path: &str, values: &CgroupValues) -> HostResult<()> {
        let mut first_error = None;
        for (controller, writes) in values::writes(self.version(), values) {
            let Some(dir) = self.dir_of(controller, path)? else { continue };
            for (file, text) in writes {
                let file = dir.join(file);
                // The page size is not of this machine: nothing to limit.
                if controller == "hugetlb" && !file.exists() {
                    continue;
                }
                // Every kernel has the file that has the controller.
                if controller == "pids" && !self.has(controller) {
                    continue;
                }
                if let Err(e) = fs::write(&file, text).at("write", &file) {
                    first_error.get_or_insert(e);
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn remove(&self, path: &str) -> HostResult<()> {
        let below = checked(path)?;
        if below.as_os_str().is_empty() {
            return Err(refused(path));
        }
        let beside = self.beside.as_ref().map(|mount| mount.join(below));
        remove_all(self.dirs(path)?)?;
        // It limits nothing: nobody waits for it.
        if let Some(dir) = beside
            && let Err(e) = remove_all(vec![dir])
        {
            tracing::warn!(error = %e, "what is beside a cgroup that is gone stays");
        }
        Ok(())
    }

    fn children(&self, path: &str) -> HostResult<Vec<String>> {
        let mut names = BTreeSet::new();
        for dir in self.dirs(path)? {
            names.extend(kill::child_names(&dir)?);
        }
        Ok(names.into_iter().collect())
    }

    fn get(&self, path: &str) -> HostResult<CgroupValues> {
        let read = |controller: &str, file: &str| -> HostResult<Option<String>> {
            let Some(dir) = self.dir_of(controller, path)? else { return Ok(None) };
            let file = dir.join(file);
            match fs::read_to_string(&file) {
                Ok(text) => Ok(Some(text)),
                // The cgroup is there without this controller.
                Err(e) if e.kind() == io::ErrorKind::NotFound && dir.exists() => Ok(None),
                Err(e) => Err(HostError::new("read", file, e)),
            }
        };
        values::parse(self.version(), read)
    }

    fn memory_usage_bytes(&self, path: &str) -> HostResult<u64> {
        let file = match self.hierarchy {
            Hierarchy::V1(_) => "memory.usage_in_bytes",
            Hierarchy::V2(_) => "memory.current",
        };
        let Some(dir) = self.dir_of("memory", path)? else {
            return Err(HostError::new("read", path, io::ErrorKind::NotFound));
        };
        let file = dir.join(file);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if kill::is_gone(&e) && !dir.exists() => {
                return Err(HostError::new("read", file, io::ErrorKind::NotFound));
            }
            // The cgroup is there without what would tell.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(HostError::new("read", file, io::ErrorKind::Unsupported));
            }
            Err(e) => return Err(HostError::new("read", file, e)),
        };
        text.trim().parse().map_err(|_| HostError::new("parse", file, io::ErrorKind::InvalidData))
    }

    fn join(&self, path: &str) -> HostResult<()> {
        self.move_processes(path, &[rustix::process::getpid().as_raw_nonzero().get()])
    }

    fn processes(&self, path: &str) -> HostResult<Vec<Process>> {
        // On v1 what a kubelet looks at: every process is somewhere in this tree, and systemd uses it for few.
        let dir = self.dir_of("devices", path)?;
        let dir = dir.ok_or_else(|| HostError::new("read", path, io::ErrorKind::NotFound))?;
        processes::list(&dir, &self.proc)
    }

    fn move_processes(&self, path: &str, pids: &[i32]) -> HostResult<()> {
        self.create(path)?;
        let below = checked(path)?;
        let dirs: BTreeSet<PathBuf> = match &self.hierarchy {
            Hierarchy::V1(mounts) => {
                mounts.iter().filter(|(name, _)| *name != SYSTEMD).map(|(_, mount)| mount.join(&below)).collect()
            }
            Hierarchy::V2(root) => BTreeSet::from([root.join(&below)]),
        };
        let files: Vec<PathBuf> = dirs.iter().map(|dir| dir.join("cgroup.procs")).collect();
        let moves = pids.iter().flat_map(|pid| files.iter().map(move |file| (pid, file)));
        let moved = moves.map(|(pid, file)| fs::write(file, pid.to_string()).at("write", file));
        moved.fold(Ok(()), Result::and)
    }

    fn set_own_oom_score_adj(&self, value: i64) -> HostResult<()> {
        let file = self.proc.join("self/oom_score_adj");
        fs::write(&file, value.to_string()).at("write", &file)
    }
}

/// Kills what runs in folders of cgroups, and removes them.
fn remove_all(mut dirs: Vec<PathBuf>) -> HostResult<()> {
    // Most are empty by now. The rest says why it is not.
    dirs.retain(|dir| !kill::is_removed(dir));
    kill::kill_all(&dirs)?;
    let mut first_error = None;
    for dir in dirs {
        if let Err(e) = kill::remove_dirs(&dir) {
            first_error.get_or_insert(e);
        }
    }
    first_error.map_or(Ok(()), Err)
}

/// The hierarchy in which systemd keeps its units.
const SYSTEMD: &str = "systemd";

/// Mount points of the v1 hierarchies by controller; a named one counts by its name. And that of version 2 among them.
fn v1_mounts() -> HostResult<(BTreeMap<String, PathBuf>, Option<PathBuf>)> {
    let (mut mounts, mut beside) = (BTreeMap::new(), None);
    for m in crate::mounts::mount_table(Path::new("/proc"))? {
        if m.fs_type == "cgroup2" && m.mount_point.starts_with(MOUNT) {
            beside = Some(m.mount_point.clone());
        }
        if m.fs_type != "cgroup" {
            continue;
        }
        for option in m.super_options.keys() {
            if is_v1_controller(option) {
                mounts.entry(option.clone()).or_insert_with(|| m.mount_point.clone());
            }
        }
        if let Some(Some(name)) = m.super_options.get("name") {
            mounts.entry(name.clone()).or_insert_with(|| m.mount_point.clone());
        }
    }
    Ok((mounts, beside))
}

fn is_v1_controller(option: &str) -> bool {
    const KNOWN: [&str; 14] = [
        "blkio",
        "cpu",
        "cpuacct",
        "cpuset",
        "debug",
        "devices",
        "freezer",
        "hugetlb",
        "memory",
        "misc",
        "net_cls",
        "net_prio",
        "perf_event",
        "pids",
    ];
    KNOWN.contains(&option) || option == "rdma"
}

/// The path relative to a mount point. Components that could lead elsewhere are refused.
pub(crate) fn checked(path: &str) -> HostResult<PathBuf> {
    let rest = path.strip_prefix('/').ok_or_else(|| refused(path))?;
    let mut out = PathBuf::new();
    for part in rest.split('/').filter(|p| !p.is_empty()) {
        if part == "." || part == ".." || part.contains('\0') {
            return Err(refused(path));
        }
        out.push(part);
    }
    Ok(out)
}

fn refused(path: &str) -> HostError {
    HostError::new("cgroup", path, io::ErrorKind::InvalidInput)
}
