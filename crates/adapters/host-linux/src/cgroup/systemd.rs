//! cgroups as systemd slices.
//!
//! systemd owns the units, the kernel's files stay the truth: each slice is started (or stopped) through systemd, and then
//! made complete (or checked for remains) as plain directories, the way OCI runtimes do it. Limits go to both, so that a
//! `daemon-reload` keeps them. Spoken to with `busctl`, which is part of systemd: a D-Bus library would cost a second
//! runtime and threads for two calls per pod.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

use model::resources::CgroupValues;
use ports::host::{CgroupFs, CgroupVersion, HostError, HostResult};

use super::{LinuxCgroups, kill};
use crate::At;

#[cfg(test)]
mod tests;

/// Patience with one call of systemd, in seconds.
const TIMEOUT: &str = "--timeout=30";

/// The cgroup tree of a host where systemd makes the cgroups. Paths end in `.slice`.
#[derive(Clone, Debug)]
pub struct SystemdCgroups {
    files: LinuxCgroups,
    systemd: Systemd,
}

/// The service manager, by its command line.
#[derive(Clone, Debug, Default)]
struct Systemd {
    /// Leads `busctl` and `systemctl` to another instance than the system's.
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl SystemdCgroups {
    /// Over the tree of this machine.
    #[must_use]
    pub fn new(files: LinuxCgroups) -> Self {
        Self { files, systemd: Systemd::default() }
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
        self.systemd.start_slice(unit, self.version())?;
        // systemd makes a cgroup in the controllers that it manages; the others are ours to complete.
        self.files.create(path)
    }

    fn set(&self, path: &str, values: &CgroupValues) -> HostResult<()> {
        let told = self.systemd.set_properties(unit(path)?, &properties(self.version(), values));
        let written = self.files.set(path, values);
        written.and(told)
    }

    fn remove(&self, path: &str) -> HostResult<()> {
        let unit = unit(path)?;
        kill::kill_all(&self.files.dirs(path)?)?;
        self.systemd.stop(unit)?;
        self.files.remove(path)
    }

    fn children(&self, path: &str) -> HostResult<Vec<String>> {
        self.files.children(path)
    }

    fn memory_usage_bytes(&self, path: &str) -> HostResult<u64> {
        self.files.memory_usage_bytes(path)
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

/// Properties with their D-Bus types and values.
fn properties(version: CgroupVersion, v: &CgroupValues) -> Vec<[String; 3]> {
    let mut out = Vec::new();
    let mut add = |name: &str, value: u64| out.push([name.to_owned(), "t".to_owned(), value.to_string()]);
    let unlimited = |n: i64| u64::try_from(n).unwrap_or(u64::MAX);
    if let Some(shares) = v.cpu_shares {
        match version {
            CgroupVersion::V1 => add("CPUShares", shares),
            CgroupVersion::V2 => add("CPUWeight", super::values::weight(shares)),
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
    if let Some(pids) = v.pids_max {
        add("TasksMax", unlimited(pids));
    }
    out
}

impl Systemd {
    /// Starts a transient slice. One that runs already is what was wanted.
    fn start_slice(&self, unit: &str, version: CgroupVersion) -> HostResult<()> {
        let io = if version == CgroupVersion::V1 { "BlockIOAccounting" } else { "IOAccounting" };
        let (description, wants) = (format!("bosun {unit}"), parent(unit));
        let mut call = vec!["StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "replace", "7"];
        call.extend(["Description", "s", description.as_str(), "Wants", "as", "1", wants.as_str()]);
        for accounting in ["CPUAccounting", "MemoryAccounting", "TasksAccounting", io] {
            call.extend([accounting, "b", "true"]);
        }
        call.extend(["DefaultDependencies", "b", "false", "0"]);
        match self.call(&call, unit) {
            Err(_) if self.is_active(unit) => Ok(()),
            other => other,
        }
    }

    fn set_properties(&self, unit: &str, properties: &[[String; 3]]) -> HostResult<()> {
        if properties.is_empty() {
            return Ok(());
        }
        let count = properties.len().to_string();
        let mut call = vec!["SetUnitProperties", "sba(sv)", unit, "true", count.as_str()];
        call.extend(properties.iter().flatten().map(String::as_str));
        self.call(&call, unit)
    }

    /// Stops a slice. One that does not run is what was wanted.
    fn stop(&self, unit: &str) -> HostResult<()> {
        match self.call(&["StopUnit", "ss", unit, "replace"], unit) {
            Err(_) if !self.is_active(unit) => Ok(()),
            other => other,
        }
    }

    fn is_active(&self, unit: &str) -> bool {
        let asked = self.command("systemctl").args(["is-active", "--quiet", unit]).output();
        asked.is_ok_and(|o| o.status.success())
    }

    fn call(&self, method: &[&str], unit: &str) -> HostResult<()> {
        const MANAGER: [&str; 4] =
            ["call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
        let op = "systemd";
        let output = self.command("busctl").arg(TIMEOUT).args(MANAGER).args(method).output().at(op, Path::new(unit))?;
        if output.status.success() { Ok(()) } else { Err(HostError::new(op, unit, io::Error::other(words(&output)))) }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command
    }
}

fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if text.is_empty() { format!("ended with {}", output.status) } else { text }
}
