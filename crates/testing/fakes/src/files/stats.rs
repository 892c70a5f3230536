//! What files take, and of the rest of a host's counters nothing, or just that there are some.

use std::io;
use std::path::Path;

use model::reading::{CgroupReading, Depth, DiskUse, FsReading, InterfaceReading, MachineReading, MountedDisk};
use ports::host::{FileKind, FileStat, HostError, HostFs, HostResult};
use ports::stats::StatsSource;

use super::MemFs;

const BLOCK: u64 = 4096;

fn use_of(stat: FileStat) -> DiskUse {
    DiskUse { bytes: stat.size.next_multiple_of(BLOCK), inodes: 1 }
}

impl MemFs {
    fn below(&self, dir: &Path, left: &mut u64) -> Option<DiskUse> {
        let mut sum = use_of(self.stat_link(dir).ok()??);
        for entry in self.list_dir(dir).ok()? {
            *left = left.checked_sub(1)?;
            let path = dir.join(&entry.name);
            sum = sum.plus(if entry.is_dir { self.below(&path, left)? } else { self.file(&path)? });
        }
        Some(sum)
    }
}

impl StatsSource for MemFs {
    fn cgroup(&self, path: &str, _depth: Depth) -> Option<CgroupReading> {
        let at = self.state().counted_at.filter(|_| path == "/")?;
        Some(CgroupReading { at, ..CgroupReading::default() })
    }

    fn container_cgroup(&self, _pod_cgroup: &str, _container_id: &str) -> Option<String> {
        None
    }

    fn any_process(&self, _path: &str) -> Option<u32> {
        None
    }

    fn own_cgroup(&self) -> Option<String> {
        None
    }

    fn network(&self, _process: Option<u32>) -> Option<Vec<InterfaceReading>> {
        None
    }

    fn fs(&self, path: &Path) -> HostResult<FsReading> {
        let s = self.stat_fs(path)?;
        Ok(FsReading {
            total_bytes: s.total_bytes,
            free_bytes: s.available_bytes,
            available_bytes: s.available_bytes,
            inodes: s.total_inodes,
            inodes_free: s.free_inodes,
        })
    }

    fn device_size(&self, path: &Path) -> HostResult<u64> {
        let found = self.stat(path)?.filter(|stat| stat.kind == FileKind::BlockDevice);
        found.map(|stat| stat.size).ok_or_else(|| HostError::new("stat", path, io::ErrorKind::NotFound))
    }

    fn files_in(&self, dir: &Path) -> Option<DiskUse> {
        let entries = self.list_dir(dir).ok()?;
        let stats = entries.iter().filter_map(|e| self.stat_link(&dir.join(&e.name)).ok().flatten());
        let files = stats.filter(|s| s.kind == FileKind::File);
        Some(files.fold(DiskUse::default(), |sum, stat| sum.plus(use_of(stat))))
    }

    fn file(&self, path: &Path) -> Option<DiskUse> {
        Some(use_of(self.stat_link(path).ok()??))
    }

    fn tree(&self, dir: &Path, max_entries: u64) -> Option<DiskUse> {
        let mut left = max_entries;
        self.below(dir, &mut left)
    }

    fn disks(&self) -> Vec<MountedDisk> {
        Vec::new()
    }

    fn processes(&self) -> HostResult<(u64, u64)> {
        Ok((100, 32_768))
    }

    fn machine(&self) -> HostResult<MachineReading> {
        if self.state().counted_at.is_some() {
            return Ok(MachineReading { memory_bytes: 8 << 30, cpus: 4, ..MachineReading::default() });
        }
        Err(HostError::new("open", "/proc/stat", io::ErrorKind::NotFound))
    }
}
