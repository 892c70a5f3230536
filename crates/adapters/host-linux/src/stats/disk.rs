//! Disks that are mounted.

use std::collections::BTreeMap;
use std::fs;

use model::reading::{DiskTraffic, MountedDisk};
use ports::stats::StatsSource;

use super::{LinuxStats, parse};

/// Major and minor number.
type Numbers = (u32, u32);

/// Read-only images: full by nature.
const IMAGES: [&str; 3] = ["squashfs", "iso9660", "erofs"];

impl LinuxStats {
    pub(super) fn mounted_disks(&self) -> Vec<MountedDisk> {
        let traffic = fs::read_to_string(self.proc.join("diskstats")).unwrap_or_default();
        let traffic: BTreeMap<Numbers, (&str, DiskTraffic)> = traffic.lines().filter_map(traffic_line).collect();
        let table = fs::read_to_string(self.proc.join("self/mountinfo")).unwrap_or_default();
        let mut disks: BTreeMap<Numbers, MountedDisk> = BTreeMap::new();
        for (numbers, mount_point, fs_type) in table.lines().filter_map(mount_line) {
            let Some((name, traffic)) = traffic.get(&numbers) else { continue };
            if IMAGES.contains(&fs_type) || disks.contains_key(&numbers) {
                continue;
            }
            let Ok(fs) = self.fs(mount_point.as_ref()) else { continue };
            disks.insert(numbers, MountedDisk { device: format!("/dev/{name}"), fs, traffic: Some(*traffic) });
        }
        disks.into_values().collect()
    }
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`: device, mount point, type.
fn mount_line(line: &str) -> Option<(Numbers, String, &str)> {
    let (head, tail) = line.split_once(" - ")?;
    let mut words = head.split(' ').skip(2);
    let numbers = parse::device(words.next()?)?;
    let mount_point = words.nth(1)?;
    // Blanks and backslashes stand as octal numbers.
    let mount_point =
        mount_point.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
    Some((numbers, mount_point, tail.split(' ').next()?))
}

/// A line of diskstats: major, minor, name, then eleven numbers and, in newer kernels, more.
fn traffic_line(line: &str) -> Option<(Numbers, (&str, DiskTraffic))> {
    let mut words = line.split_whitespace();
    let numbers = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = words.next()?;
    let mut next = || words.next()?.parse().ok();
    let traffic = DiskTraffic {
        reads: next()?,
        reads_merged: next()?,
        sectors_read: next()?,
        read_ms: next()?,
        writes: next()?,
        writes_merged: next()?,
        sectors_written: next()?,
        write_ms: next()?,
        in_flight: next()?,
        io_ms: next()?,
        weighted_ms: next()?,
    };
    Some((numbers, (name, traffic)))
}
