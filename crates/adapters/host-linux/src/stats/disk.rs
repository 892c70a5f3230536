//! Disks that are mounted.

use std::collections::BTreeMap;

use model::reading::{DiskTraffic, MountedDisk};
use ports::stats::StatsSource;
use procfs::{DiskStat, DiskStats};

use super::{LinuxStats, parse};
use crate::mounts::mount_table;

/// Read-only images: full by nature.
const IMAGES: [&str; 3] = ["squashfs", "iso9660", "erofs"];

impl LinuxStats {
    pub(super) fn mounted_disks(&self) -> Vec<MountedDisk> {
        let all: Vec<DiskStat> =
            crate::parsed(&self.proc.join("diskstats")).map(|DiskStats(all)| all).unwrap_or_default();
        let numbers = |d: &DiskStat| Some((u32::try_from(d.major).ok()?, u32::try_from(d.minor).ok()?));
        let by_numbers: BTreeMap<(u32, u32), &DiskStat> = all.iter().filter_map(|d| Some((numbers(d)?, d))).collect();
        let mut disks = BTreeMap::new();
        for mount in mount_table(&self.proc).unwrap_or_default() {
            let Some(numbers) = parse::device(&mount.majmin) else { continue };
            let Some(disk) = by_numbers.get(&numbers) else { continue };
            if IMAGES.contains(&mount.fs_type.as_str()) || disks.contains_key(&numbers) {
                continue;
            }
            let Ok(fs) = self.fs(&mount.mount_point) else { continue };
            let device = format!("/dev/{}", disk.name);
            disks.insert(numbers, MountedDisk { device, fs, traffic: Some(traffic(disk)) });
        }
        disks.into_values().collect()
    }
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
