//! Disks that are mounted.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use model::reading::{DiskTraffic, FsReading, MountedDisk};
use ports::host::{HostError, HostResult};
use procfs::{DiskStat, DiskStats};

use super::parse;
use crate::At;
use crate::mounts::mount_table;

/// Read-only images: full by nature.
const IMAGES: [&str; 3] = ["squashfs", "iso9660", "erofs"];

/// The unit of `/sys/dev/block/*/size`, whatever the disk's own is.
const SECTOR: u64 = 512;

/// Block devices that are mounted, each once.
pub(super) fn mounted(proc: &Path) -> Vec<MountedDisk> {
    let all: Vec<DiskStat> = crate::parsed(&proc.join("diskstats")).map(|DiskStats(all)| all).unwrap_or_default();
    let numbers = |d: &DiskStat| Some((u32::try_from(d.major).ok()?, u32::try_from(d.minor).ok()?));
    let by_numbers: BTreeMap<(u32, u32), &DiskStat> = all.iter().filter_map(|d| Some((numbers(d)?, d))).collect();
    let mut disks = BTreeMap::new();
    for mount in mount_table(proc).unwrap_or_default() {
        let Some(numbers) = parse::device(&mount.majmin) else { continue };
        let Some(disk) = by_numbers.get(&numbers) else { continue };
        if IMAGES.contains(&mount.fs_type.as_str()) || disks.contains_key(&numbers) {
            continue;
        }
        let Ok(fs) = room(&mount.mount_point) else { continue };
        let device = format!("/dev/{}", disk.name);
        disks.insert(numbers, MountedDisk { device, fs, traffic: Some(traffic(disk)) });
    }
    disks.into_values().collect()
}

/// Room on the file system that a path is on.
pub(super) fn room(path: &Path) -> HostResult<FsReading> {
    let s = rustix::fs::statfs(path).at("statfs", path)?;
    let unit = u64::try_from(s.f_bsize).unwrap_or(0);
    #[allow(clippy::useless_conversion, reason = "the width of these fields differs between machines")]
    Ok(FsReading {
        total_bytes: unit.saturating_mul(s.f_blocks.into()),
        free_bytes: unit.saturating_mul(s.f_bfree.into()),
        available_bytes: unit.saturating_mul(s.f_bavail.into()),
        inodes: s.f_files.into(),
        inodes_free: s.f_ffree.into(),
    })
}

/// Bytes of a block device, as the kernel shows them: to open a device may wait for the disk.
pub(super) fn device_size(path: &Path, sys: &Path) -> HostResult<u64> {
    let stat = rustix::fs::stat(path).at("stat", path)?;
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_block_device() {
        return Err(HostError::new("stat", path, io::Error::other("is no block device")));
    }
    let number = format!("{}:{}", rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let file = sys.join("dev/block").join(number).join("size");
    let text = std::fs::read_to_string(&file).at("read", &file)?;
    let sectors: u64 = text.trim().parse().map_err(|e| HostError::new("read", &file, io::Error::other(e)))?;
    Ok(sectors.saturating_mul(SECTOR))
}

fn traffic(d: &DiskStat) -> DiskTraffic {
    DiskTraffic {
        reads: d.reads,
        reads_merged: d.merged,
        sectors_read: d.sectors_read,
        read_ms: d.time_reading,
        writes: d.writes,
        writes_merged: d.writes_merged,
        sectors_written: d.sectors_written,
        write_ms: d.time_writing,
        in_flight: d.in_progress,
        io_ms: d.time_in_progress,
        weighted_ms: d.weighted_time_in_progress,
    }
}
