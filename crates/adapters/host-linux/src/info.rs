//! Facts about the machine.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ports::host::{HostError, HostInfo, HostResult};

use crate::At;

mod node;
#[cfg(test)]
pub(crate) mod tests;

/// Reads `/proc` and `/sys`.
#[derive(Clone, Debug)]
pub struct LinuxInfo {
    proc: PathBuf,
    sys: PathBuf,
    root: PathBuf,
}

impl Default for LinuxInfo {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), root: "/".into() }
    }
}

impl LinuxInfo {
    /// This machine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A machine made of files, for tests.
    pub(crate) fn at(root: &Path) -> Self {
        Self { proc: root.join("proc"), sys: root.join("sys"), root: root.into() }
    }

    /// Memory of the machine, in bytes.
    pub(crate) fn meminfo(&self) -> HostResult<procfs::Meminfo> {
        crate::parsed(&self.proc.join("meminfo"))
    }

    fn cpus(&self, which: &str) -> Vec<u32> {
        fs::read_to_string(self.sys.join("devices/system/cpu").join(which)).map(|t| cpu_list(&t)).unwrap_or_default()
    }

    fn text_if_there(&self, path: &str) -> HostResult<Option<String>> {
        let file = self.root.join(path);
        match fs::read_to_string(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.at("read", &file).map(Some),
        }
    }

    fn number(&self, below_proc: &str) -> HostResult<u64> {
        let file = self.proc.join(below_proc);
        let text = fs::read_to_string(&file).at("read", &file)?;
        text.trim().parse().map_err(|_| HostError::new("parse", file, io::ErrorKind::InvalidData))
    }
}

impl HostInfo for LinuxInfo {
    fn cpu_count(&self) -> u32 {
        let online = u32::try_from(self.cpus("online").len()).unwrap_or(0);
        online.max(1)
    }

    fn memory_total_bytes(&self) -> HostResult<u64> {
        Ok(self.meminfo()?.mem_total)
    }

    fn swap_total_bytes(&self) -> HostResult<u64> {
        Ok(self.meminfo()?.swap_total)
    }

    fn page_bytes(&self) -> u64 {
        procfs::page_size()
    }

    fn huge_pages(&self) -> HostResult<BTreeMap<u64, u64>> {
        let dir = self.sys.join("kernel/mm/hugepages");
        let entries = match fs::read_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            other => other.at("readdir", &dir)?,
        };
        let mut pages = BTreeMap::new();
        for entry in entries {
            let entry = entry.at("readdir", &dir)?;
            let name = entry.file_name();
            let size =
                name.to_str().and_then(|n| n.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok());
            let Some(kib) = size else { continue };
            let count = fs::read_to_string(entry.path().join("nr_hugepages")).unwrap_or_default();
            pages.insert(kib * 1024, count.trim().parse().unwrap_or(0));
        }
        Ok(pages)
    }

    fn pid_capacity(&self) -> HostResult<u64> {
        Ok(self.number("sys/kernel/pid_max")?.min(self.number("sys/kernel/threads-max")?))
    }

    fn boot_id(&self) -> HostResult<String> {
        let file = self.proc.join("sys/kernel/random/boot_id");
        Ok(fs::read_to_string(&file).at("read", &file)?.trim().to_owned())
    }

    fn kernel_version(&self) -> String {
        rustix::system::uname().release().to_string_lossy().into_owned()
    }

    fn hostname(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn selinux_contexts(&self) -> HostResult<Option<String>> {
        if !self.sys.join("fs/selinux/enforce").exists() {
            return Ok(None);
        }
        if let Some(text) = self.text_if_there("usr/share/containers/selinux/contexts")? {
            return Ok(Some(text));
        }
        let config = self.text_if_there("etc/selinux/config")?.unwrap_or_default();
        let policy = config.lines().find_map(|line| line.trim().strip_prefix("SELINUXTYPE=")).unwrap_or("targeted");
        let text = self.text_if_there(&format!("etc/selinux/{}/contexts/lxc_contexts", policy.trim()))?;
        Ok(Some(text.unwrap_or_default()))
    }

    fn thermal_throttle_paths(&self) -> Vec<PathBuf> {
        let of = |n: &u32| Path::new(&self.sys).join(format!("devices/system/cpu/cpu{n}/thermal_throttle"));
        self.cpus("possible").iter().map(of).filter(|p| p.is_dir()).collect()
    }
}

/// `0-3,8` as numbers; what does not parse is left out.
fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(from), Ok(to)) = (from.trim().parse::<u32>(), to.trim().parse::<u32>()) {
            cpus.extend(from..=to);
        }
    }
    cpus
}
