//! The parts of a host that a test cannot have for real: cgroups and mounts. Files are real, in a temporary folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::resources::CgroupValues;
use ports::host::{
    Addresses, CgroupFs, CgroupVersion, FsStat, HostError, HostResult, Identity, MemoryMount, MemoryUse, MountEntry,
    Mounter, NodeHost,
};

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cgroup tree in memory. The root exists; a child needs no parent, as `mkdir -p` would have it.
#[derive(Debug, Default)]
pub struct FakeCgroups {
    groups: Mutex<BTreeMap<String, CgroupValues>>,
}

impl FakeCgroups {
    /// Paths of all cgroups below the root, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        lock(&self.groups).keys().cloned().collect()
    }

    /// Values of one cgroup.
    #[must_use]
    pub fn values(&self, path: &str) -> Option<CgroupValues> {
        lock(&self.groups).get(path).cloned()
    }
}

impl CgroupFs for FakeCgroups {
    fn version(&self) -> CgroupVersion {
        CgroupVersion::V1
    }

    fn missing_controllers(&self) -> Vec<String> {
        Vec::new()
    }

    fn has_swap_controller(&self) -> bool {
        false
    }

    fn exists(&self, path: &str) -> HostResult<bool> {
        Ok(path == "/" || path.is_empty() || lock(&self.groups).contains_key(path))
    }

    fn create(&self, path: &str) -> HostResult<()> {
        let mut groups = lock(&self.groups);
        let mut at = String::new();
        for part in path.split('/').filter(|p| !p.is_empty()) {
            at.push('/');
            at.push_str(part);
            groups.entry(at.clone()).or_default();
        }
        Ok(())
    }

    fn set(&self, path: &str, values: &CgroupValues) -> HostResult<()> {
        match lock(&self.groups).get_mut(path) {
            Some(group) => {
                *group = values.clone();
                Ok(())
            }
            None if path == "/" => Ok(()),
            None => Err(HostError::new("set", path, io::ErrorKind::NotFound)),
        }
    }

    fn remove(&self, path: &str) -> HostResult<()> {
        let below = format!("{path}/");
        lock(&self.groups).retain(|p, _| p != path && !p.starts_with(&below));
        Ok(())
    }

    fn children(&self, path: &str) -> HostResult<Vec<String>> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let groups = lock(&self.groups);
        let below = groups.keys().filter_map(|p| p.strip_prefix(&prefix));
        Ok(below.filter(|rest| !rest.contains('/')).map(str::to_owned).collect())
    }

    fn memory_usage_bytes(&self, _path: &str) -> HostResult<u64> {
        Ok(0)
    }

    fn set_own_oom_score_adj(&self, _value: i64) -> HostResult<()> {
        Ok(())
    }
}

/// A mount table in memory. Nothing is mounted; binds only note their target.
#[derive(Debug, Default)]
pub struct FakeMounter {
    points: Mutex<BTreeSet<PathBuf>>,
}

impl Mounter for FakeMounter {
    fn mount_memory(&self, target: &Path, _what: &MemoryMount) -> HostResult<()> {
        lock(&self.points).insert(target.to_owned());
        Ok(())
    }

    fn bind_within(&self, _base: &Path, _relative: &Path, target: &Path) -> HostResult<()> {
        lock(&self.points).insert(target.to_owned());
        Ok(())
    }

    fn unmount(&self, target: &Path) -> HostResult<()> {
        lock(&self.points).remove(target);
        Ok(())
    }

    fn is_mount_point(&self, path: &Path) -> HostResult<bool> {
        Ok(lock(&self.points).contains(path))
    }

    fn mounts(&self) -> HostResult<Vec<MountEntry>> {
        let entry = |p: &PathBuf| MountEntry {
            mount_point: p.clone(),
            fs_type: "tmpfs".to_owned(),
            source: "tmpfs".to_owned(),
            root: PathBuf::from("/"),
        };
        Ok(lock(&self.points).iter().map(entry).collect())
    }
}

/// A machine with plenty of everything; [`FakeMachine::change`] takes it away.
#[derive(Clone, Debug)]
pub struct Machine {
    /// By what it is told apart.
    pub identity: Identity,
    /// Addresses, whatever name is looked up.
    pub addresses: Addresses,
    /// Memory; `None`: cannot be read.
    pub memory: Option<MemoryUse>,
    /// Every disk; `None`: cannot be read.
    pub disk: Option<FsStat>,
    /// Processes that there are, and the most there can be.
    pub processes: (u64, u64),
}

impl Default for Machine {
    fn default() -> Self {
        let gib = 1 << 30;
        let ip = std::net::IpAddr::from([10, 0, 0, 1]);
        let disk = FsStat {
            magic: 0xef53,
            total_bytes: 100 * gib,
            available_bytes: 90 * gib,
            total_inodes: 1_000_000,
            free_inodes: 900_000,
        };
        Self {
            identity: Identity {
                machine_id: "machine-1".to_owned(),
                system_uuid: "uuid-1".to_owned(),
                boot_id: "boot-1".to_owned(),
                kernel_version: "6.1.0".to_owned(),
                os_image: "Fake Linux".to_owned(),
            },
            addresses: Addresses { interfaces: vec![ip], resolved: vec![], default_route: vec![ip] },
            memory: Some(MemoryUse { total_bytes: 8 * gib, working_set_bytes: gib }),
            disk: Some(disk),
            processes: (100, 32_768),
        }
    }
}

/// What a Node object tells of a machine that is not there.
#[derive(Debug, Default)]
pub struct FakeMachine {
    machine: Mutex<Machine>,
}

impl FakeMachine {
    /// Changes the machine.
    pub fn change(&self, edit: impl FnOnce(&mut Machine)) {
        edit(&mut lock(&self.machine));
    }
}

impl NodeHost for FakeMachine {
    fn identity(&self) -> Identity {
        lock(&self.machine).identity.clone()
    }

    fn addresses(&self, _name: &str) -> Addresses {
        lock(&self.machine).addresses.clone()
    }

    fn memory_use(&self) -> HostResult<MemoryUse> {
        lock(&self.machine).memory.ok_or_else(|| HostError::new("read", "/proc/meminfo", io::ErrorKind::NotFound))
    }

    fn disk(&self, path: &Path) -> HostResult<FsStat> {
        lock(&self.machine).disk.ok_or_else(|| HostError::new("statfs", path, io::ErrorKind::NotFound))
    }

    fn processes(&self) -> HostResult<(u64, u64)> {
        Ok(lock(&self.machine).processes)
    }
}
