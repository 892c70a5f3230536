//! A cgroup tree in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use model::cgroup::Process;
use model::resources::CgroupValues;
use ports::host::{CgroupFs, CgroupVersion, HostError, HostResult};

use super::lock;

/// A cgroup tree in memory. The root exists; a child needs no parent, as `mkdir -p` would have it.
#[derive(Debug, Default)]
pub struct FakeCgroups {
    tree: Mutex<Tree>,
    calm: Condvar,
}

#[derive(Debug, Default)]
struct Tree {
    groups: BTreeMap<String, CgroupValues>,
    no_root: bool,
    v2: bool,
    own_oom_score_adj: Option<i64>,
    joined: Option<String>,
    /// `operation path`, in order.
    calls: Vec<String>,
    failing: BTreeSet<(&'static str, String)>,
    usage: BTreeMap<String, u64>,
    ending: BTreeSet<String>,
    /// Processes by cgroup.
    processes: BTreeMap<String, Vec<Process>>,
    /// Those that cannot be moved.
    stuck: BTreeSet<i32>,
    /// So many processes fork before they are moved.
    forks: i32,
    hanging: Option<String>,
}

impl FakeCgroups {
    /// Paths of all cgroups below the root, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        lock(&self.tree).groups.keys().cloned().collect()
    }

    /// Values of one cgroup.
    #[must_use]
    pub fn values(&self, path: &str) -> Option<CgroupValues> {
        lock(&self.tree).groups.get(path).cloned()
    }

    /// Makes a cgroup, as somebody else on the machine.
    pub fn put(&self, path: &str) {
        lock(&self.tree).groups.entry(path.to_owned()).or_default();
    }

    /// Which hierarchy it is; v1 at first.
    pub fn set_version(&self, version: CgroupVersion) {
        lock(&self.tree).v2 = version == CgroupVersion::V2;
    }

    /// Whether the root is there.
    pub fn set_root(&self, there: bool) {
        lock(&self.tree).no_root = !there;
    }

    /// Where this process is, once it was put somewhere.
    #[must_use]
    pub fn joined(&self) -> Option<String> {
        lock(&self.tree).joined.clone()
    }

    /// `oom_score_adj` of this process, once it was set.
    #[must_use]
    pub fn own_oom_score_adj(&self) -> Option<i64> {
        lock(&self.tree).own_oom_score_adj
    }

    /// Calls so far, as `operation path`.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        lock(&self.tree).calls.clone()
    }

    /// A cgroup is listed once more, and is gone when somebody asks what it uses.
    pub fn end_while_read(&self, path: &str) {
        lock(&self.tree).ending.insert(path.to_owned());
    }

    /// From now on a cgroup uses this much memory.
    pub fn use_memory(&self, path: &str, bytes: u64) {
        lock(&self.tree).usage.insert(path.to_owned(), bytes);
    }

    /// A process begins in a cgroup.
    pub fn run_process(&self, path: &str, pid: i32, is_kernel: bool) {
        lock(&self.tree).processes.entry(path.to_owned()).or_default().push(Process { pid, is_kernel });
    }

    /// Numbers of the processes in a cgroup, sorted.
    #[must_use]
    pub fn pids(&self, path: &str) -> Vec<i32> {
        let mut pids: Vec<i32> = lock(&self.tree).processes.get(path).into_iter().flatten().map(|p| p.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// From now on a process cannot be moved.
    pub fn hold(&self, pid: i32) {
        lock(&self.tree).stuck.insert(pid);
    }

    /// The next processes that are moved have forked just before: each leaves one behind, with the next thousand to its number.
    pub fn fork_processes(&self, times: i32) {
        lock(&self.tree).forks = times;
    }

    /// From now on an operation (`controllers`, `exists`, `create`, `set`, `get`, `usage`, `remove`, `children`, `processes`, `move`, `join`, `oom_score_adj`) fails for paths
    /// with `part` in them, or does no longer.
    pub fn fail(&self, operation: &'static str, part: &str, on: bool) {
        let failing = &mut lock(&self.tree).failing;
        if on {
            failing.insert((operation, part.to_owned()))
        } else {
            failing.remove(&(operation, part.to_owned()))
        };
    }

    /// From now on creation of paths with `part` in them does not return; `None`: all return. Holds a thread: not for
    /// simulated time.
    pub fn hang(&self, part: Option<&str>) {
        lock(&self.tree).hanging = part.map(str::to_owned);
        self.calm.notify_all();
    }

    fn call(&self, operation: &'static str, path: &str) -> HostResult<MutexGuard<'_, Tree>> {
        let mut tree = lock(&self.tree);
        tree.calls.push(format!("{operation} {path}"));
        while operation == "create" && tree.hanging.as_ref().is_some_and(|part| path.contains(part.as_str())) {
            tree = self.calm.wait(tree).unwrap_or_else(PoisonError::into_inner);
        }
        if tree.failing.iter().any(|(o, part)| *o == operation && path.contains(part.as_str())) {
            return Err(HostError::new(operation, path, io::ErrorKind::PermissionDenied));
        }
        Ok(tree)
    }
}

impl CgroupFs for FakeCgroups {
    fn version(&self) -> CgroupVersion {
        if lock(&self.tree).v2 { CgroupVersion::V2 } else { CgroupVersion::V1 }
    }

    fn missing_controllers(&self) -> Vec<String> {
        if self.call("controllers", "").is_err() { vec!["memory".to_owned()] } else { Vec::new() }
    }

    fn has_swap_controller(&self) -> bool {
        false
    }

    fn exists(&self, path: &str) -> HostResult<bool> {
        let tree = self.call("exists", path)?;
        Ok(if path == "/" || path.is_empty() { !tree.no_root } else { tree.groups.contains_key(path) })
    }

    fn create(&self, path: &str) -> HostResult<()> {
        let mut tree = self.call("create", path)?;
        let mut at = String::new();
        for part in path.split('/').filter(|p| !p.is_empty()) {
            at.push('/');
            at.push_str(part);
            tree.groups.entry(at.clone()).or_default();
        }
        Ok(())
    }

    fn set(&self, path: &str, values: &CgroupValues) -> HostResult<()> {
        let mut tree = self.call("set", path)?;
        let used = tree.usage.get(path).copied().unwrap_or(0);
        if values.memory_limit_bytes.is_some_and(|limit| u64::try_from(limit).is_ok_and(|limit| limit < used)) {
            // As the kernel has it with v1.
            return Err(HostError::new("set", path, io::ErrorKind::ResourceBusy));
        }
        match tree.groups.get_mut(path) {
            Some(group) => {
                group.cpu_shares = values.cpu_shares.or(group.cpu_shares);
                group.cpu_quota_us = values.cpu_quota_us.or(group.cpu_quota_us);
                group.cpu_period_us = values.cpu_period_us.or(group.cpu_period_us);
                group.memory_limit_bytes = values.memory_limit_bytes.or(group.memory_limit_bytes);
                group.memory_min_bytes = values.memory_min_bytes.or(group.memory_min_bytes);
                group.memory_low_bytes = values.memory_low_bytes.or(group.memory_low_bytes);
                group.pids_max = values.pids_max.or(group.pids_max);
                group.hugetlb_bytes.extend(&values.hugetlb_bytes);
                Ok(())
            }
            None if path == "/" => Ok(()),
            None => Err(HostError::new("set", path, io::ErrorKind::NotFound)),
        }
    }

    fn get(&self, path: &str) -> HostResult<CgroupValues> {
        let group = self.call("get", path)?.groups.get(path).cloned();
        group.ok_or_else(|| HostError::new("get", path, io::ErrorKind::NotFound))
    }

    fn remove(&self, path: &str) -> HostResult<()> {
        let below = format!("{path}/");
        self.call("remove", path)?.groups.retain(|p, _| p != path && !p.starts_with(&below));
        Ok(())
    }

    fn children(&self, path: &str) -> HostResult<Vec<String>> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let tree = self.call("children", path)?;
        let below = tree.groups.keys().filter_map(|p| p.strip_prefix(&prefix));
        Ok(below.filter(|rest| !rest.contains('/')).map(str::to_owned).collect())
    }

    fn memory_usage_bytes(&self, path: &str) -> HostResult<u64> {
        let mut tree = self.call("usage", path)?;
        if tree.ending.remove(path) {
            tree.groups.remove(path);
        }
        if !tree.groups.contains_key(path) {
            return Err(HostError::new("usage", path, io::ErrorKind::NotFound));
        }
        Ok(tree.usage.get(path).copied().unwrap_or(0))
    }

    fn join(&self, path: &str) -> HostResult<()> {
        self.call("join", path)?.joined = Some(path.to_owned());
        self.create(path)
    }

    fn processes(&self, path: &str) -> HostResult<Vec<Process>> {
        Ok(self.call("processes", path)?.processes.get(path).cloned().unwrap_or_default())
    }

    fn move_processes(&self, path: &str, pids: &[i32]) -> HostResult<()> {
        self.create(path)?;
        let mut tree = self.call("move", path)?;
        let mut result = Ok(());
        for pid in pids {
            if tree.stuck.contains(pid) {
                result = result.and(Err(HostError::new("move", path, io::ErrorKind::PermissionDenied)));
                continue;
            }
            let forks = tree.forks > 0;
            for processes in tree.processes.values_mut() {
                let Some(at) = processes.iter().position(|p| p.pid == *pid) else { continue };
                processes.remove(at);
                if forks {
                    processes.push(Process { pid: pid + 1000, is_kernel: false });
                }
            }
            tree.forks -= i32::from(forks);
            tree.processes.entry(path.to_owned()).or_default().push(Process { pid: *pid, is_kernel: false });
        }
        result
    }

    fn set_own_oom_score_adj(&self, value: i64) -> HostResult<()> {
        self.call("oom_score_adj", "")?.own_oom_score_adj = Some(value);
        Ok(())
    }
}
