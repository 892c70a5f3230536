//! cgroups as systemd slices.
//!
//! systemd owns the units, the kernel's files stay the truth: each slice is started (or stopped) through systemd, and then
//! made complete (or checked for remains) as plain directories, the way OCI runtimes do it. Limits go to both, so that a
//! `daemon-reload` keeps them. Spoken to over D-Bus, with one connection (`docs/decisions/0018-host-libraries.md`).

use std::io;
use std::sync::Arc;

use model::cgroup::{Process, cpu_weight};
use model::resources::CgroupValues;
use ports::host::{CgroupFs, CgroupVersion, HostError, HostResult};

use super::{LinuxCgroups, kill};
use crate::At;

mod bus;
#[cfg(test)]
mod tests;

use bus::{Bus, Property};

/// The cgroup tree of a host where systemd makes the cgroups. Paths end in `.slice`.
#[derive(Clone, Debug)]
pub struct SystemdCgroups {
    files: LinuxCgroups,
    bus: Arc<Bus>,
}

impl SystemdCgroups {
    /// Over the tree of this machine. Calls block a thread, which may be none that `runtime` runs tasks on; the connection to the
    /// system's bus lives on `runtime`, and is made by the first call.
    #[must_use]
    pub fn new(files: LinuxCgroups, runtime: tokio::runtime::Handle) -> Self {
        Self { files, bus: Arc::new(Bus::new(runtime, None)) }
    }
}

/// Scopes: cgroups of processes that others have started, made by systemd.
#[derive(Clone, Debug)]
pub struct SystemdScopes {
    bus: Arc<Bus>,
}

impl SystemdScopes {
    /// As [`SystemdCgroups::new`].
    #[must_use]
    pub fn new(runtime: tokio::runtime::Handle) -> Self {
        Self { bus: Arc::new(Bus::new(runtime, None)) }
    }

    /// Moves a process, with all that it starts from then on, into a new scope in a slice, and waits until it is there. Into a scope of that name that is there
    /// already it is moved as well.
    ///
    /// # Errors
    /// systemd does not answer, or refuses.
    pub fn start(&self, slice: &str, scope: &str, pid: u32) -> HostResult<()> {
        self.bus.start_scope(scope, &of_a_new_scope(slice, scope, pid), pid).at("systemd", scope)
    }
}

impl CgroupFs for SystemdCgroups {
    fn version(&self) -> CgroupVersion {
        self.files.version()
    }

    fn missing_controllers(&self) -> Vec<String> {
        self.files.missing_controllers()
    }

    fn has_swap_controller(&self) -> bool {
        self.files.has_swap_controller()
    }

    fn exists(&self, path: &str) -> HostResult<bool> {
        self.files.exists(path)
    }

    fn create(&self, path: &str) -> HostResult<()> {
        let unit = unit(path)?;
        self.bus.start(unit, &of_a_new(unit, self.version())).at("systemd", unit)?;
        // systemd makes a cgroup in the controllers that it manages; the others are ours to complete.
        self.files.create(path)
    }

    fn set(&self, path: &str, values: &CgroupValues) -> HostResult<()> {
        let (unit, properties) = (unit(path)?, properties(self.version(), values));
        let told = if properties.is_empty() { Ok(()) } else { self.bus.set(unit, &properties).at("systemd", unit) };
        let written = self.files.set(path, values);
        written.and(told)
    }

    fn remove(&self, path: &str) -> HostResult<()> {
        let unit = unit(path)?;
        kill::kill_all(&self.files.dirs(path)?)?;
        self.bus.stop(unit).at("systemd", unit)?;
        self.files.remove(path)
    }

    fn children(&self, path: &str) -> HostResult<Vec<String>> {
        self.files.children(path)
    }

    fn get(&self, path: &str) -> HostResult<CgroupValues> {
        self.files.get(path)
    }

    fn memory_usage_bytes(&self, path: &str) -> HostResult<u64> {
        self.files.memory_usage_bytes(path)
    }

    fn join(&self, path: &str) -> HostResult<()> {
        self.files.join(path)
    }

    fn processes(&self, path: &str) -> HostResult<Vec<Process>> {
        self.files.processes(path)
    }

    fn move_processes(&self, path: &str, pids: &[i32]) -> HostResult<()> {
        self.files.move_processes(path, pids)
    }

    fn set_own_oom_score_adj(&self, value: i64) -> HostResult<()> {
        self.files.set_own_oom_score_adj(value)
    }
}

/// The unit that a path stands for: its last component.
fn unit(path: &str) -> HostResult<&str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let fits = name.ends_with(".slice") && !name.starts_with(['-', '.']) && !name.contains(char::is_whitespace);
    if fits { Ok(name) } else { Err(HostError::new("systemd unit", path, io::ErrorKind::InvalidInput)) }
}

/// The slice that a slice is in, by its name: `a-b-c.slice` is in `a-b.slice`.
fn parent(unit: &str) -> String {
    let stem = unit.strip_suffix(".slice").unwrap_or(unit);
    stem.rsplit_once('-').map_or("-.slice".to_owned(), |(above, _)| format!("{above}.slice"))
}

/// What a slice of ours begins with.
fn of_a_new(unit: &str, version: CgroupVersion) -> Vec<Property> {
    let io = if version == CgroupVersion::V1 { "BlockIOAccounting" } else { "IOAccounting" };
    let mut all: Vec<Property> =
        vec![("Description", format!("bosun {unit}").into()), ("Wants", vec![parent(unit)].into())];
    all.extend(["CPUAccounting", "MemoryAccounting", "TasksAccounting", io].map(|name| (name, true.into())));
    all.push(("DefaultDependencies", false.into()));
    all
}

/// What a scope of ours begins with. What is below it is its owner's.
fn of_a_new_scope(slice: &str, scope: &str, pid: u32) -> Vec<Property> {
    vec![
        ("Description", format!("bosun {scope}").into()),
        ("Slice", slice.to_owned().into()),
        ("Delegate", true.into()),
        ("DefaultDependencies", false.into()),
        // One whose start failed is not to be found among failed units for ever.
        ("CollectMode", "inactive-or-failed".into()),
        ("PIDs", vec![pid].into()),
    ]
}

/// Limits in systemd's words.
fn properties(version: CgroupVersion, v: &CgroupValues) -> Vec<Property> {
    let mut out: Vec<Property> = Vec::new();
    let mut add = |name: &'static str, value: u64| out.push((name, value.into()));
    let unlimited = |n: i64| u64::try_from(n).unwrap_or(u64::MAX);
    if let Some(shares) = v.cpu_shares {
        match version {
            CgroupVersion::V1 => add("CPUShares", shares),
            CgroupVersion::V2 => add("CPUWeight", cpu_weight(shares)),
        }
    }
    if let Some(quota) = v.cpu_quota_us {
        let period = v.cpu_period_us.unwrap_or(100_000).max(1);
        // systemd counts in steps of 10 ms per second and would round down.
        let per_second = u64::try_from(quota).map(|q| (q.saturating_mul(1_000_000) / period).div_ceil(10_000) * 10_000);
        add("CPUQuotaPerSecUSec", per_second.unwrap_or(u64::MAX));
        if version == CgroupVersion::V2 {
            add("CPUQuotaPeriodUSec", period);
        }
    }
    if let Some(bytes) = v.memory_limit_bytes {
        add(if version == CgroupVersion::V1 { "MemoryLimit" } else { "MemoryMax" }, unlimited(bytes));
    }
    // The unified hierarchy alone has these.
    let kept = [("MemoryMin", v.memory_min_bytes), ("MemoryLow", v.memory_low_bytes)];
    for (name, bytes) in kept.into_iter().filter(|_| version == CgroupVersion::V2) {
        if let Some(bytes) = bytes {
            add(name, unlimited(bytes));
        }
    }
    if let Some(pids) = v.pids_max {
        add("TasksMax", unlimited(pids));
    }
    out
}
