//! Families about disks: those of the machine in the row of the root, traffic of cgroups in theirs.

use model::reading::{DiskReading, DiskTraffic, FsReading};

use super::families::{Emit, Family, counter, float, gauge};
use super::row::Labelled;
use crate::text::labels;

/// Room on each disk of the machine.
fn room(l: &Labelled<'_>, e: &mut Emit<'_>, value: fn(&FsReading) -> u64) {
    for disk in l.disks {
        e(&labels(&[("device", &disk.device)]), float(value(&disk.fs)));
    }
}

/// Traffic of each disk of the machine; times come in milliseconds.
fn traffic(l: &Labelled<'_>, e: &mut Emit<'_>, value: fn(&DiskTraffic) -> f64) {
    for disk in l.disks {
        if let Some(traffic) = &disk.traffic {
            e(&labels(&[("device", &disk.device)]), value(traffic));
        }
    }
}

/// Traffic of a cgroup; disks that the kernel names.
fn own(l: &Labelled<'_>, e: &mut Emit<'_>, value: fn(&DiskReading) -> Option<u64>) {
    for disk in l.row.reading.disks.iter().filter(|d| !d.device.is_empty()) {
        if let Some(n) = value(disk) {
            e(&labels(&[("device", &disk.device)]), float(n));
        }
    }
}

/// Operations: the machine's own count for the root, else the cgroup's.
fn operations(
    l: &Labelled<'_>,
    e: &mut Emit<'_>,
    machine: fn(&DiskTraffic) -> f64,
    value: fn(&DiskReading) -> Option<u64>,
) {
    if l.disks.is_empty() { own(l, e, value) } else { traffic(l, e, machine) }
}

fn by_operation(l: &Labelled<'_>, e: &mut Emit<'_>) {
    for d in &l.row.reading.disks {
        for (operation, value) in [("Read", d.read_bytes), ("Write", d.write_bytes)] {
            let Some(n) = value else { continue };
            let (major, minor) = (d.major.to_string(), d.minor.to_string());
            let own = [("device", d.device.as_str()), ("major", &major), ("minor", &minor), ("operation", operation)];
            e(&labels(&own), float(n));
        }
    }
}

fn secs(milliseconds: u64) -> f64 {
    float(milliseconds) / 1e3
}

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    counter("container_blkio_device_usage_total", "Bytes to and from each disk", by_operation),
    gauge("container_fs_inodes_free", "Free inodes", |l, e| room(l, e, |f| f.inodes_free)),
    gauge("container_fs_inodes_total", "Inodes", |l, e| room(l, e, |f| f.inodes)),
    gauge("container_fs_io_current", "I/O under way", |l, e| traffic(l, e, |t| float(t.in_flight))),
    counter("container_fs_io_time_seconds_total", "Time with I/O under way", |l, e| traffic(l, e, |t| secs(t.io_ms))),
    counter("container_fs_io_time_weighted_seconds_total", "Time with I/O under way, times its amount", |l, e| traffic(l, e, |t| secs(t.weighted_ms))),
    gauge("container_fs_limit_bytes", "Size in bytes", |l, e| room(l, e, |f| f.total_bytes)),
    counter("container_fs_read_seconds_total", "Time in reads", |l, e| traffic(l, e, |t| secs(t.read_ms))),
    counter("container_fs_reads_bytes_total", "Bytes read", |l, e| own(l, e, |d| d.read_bytes)),
    counter("container_fs_reads_merged_total", "Reads that were merged", |l, e| traffic(l, e, |t| float(t.reads_merged))),
    counter("container_fs_reads_total", "Reads", |l, e| operations(l, e, |t| float(t.reads), |d| d.reads)),
    counter("container_fs_sector_reads_total", "Sectors read", |l, e| traffic(l, e, |t| float(t.sectors_read))),
    counter("container_fs_sector_writes_total", "Sectors written", |l, e| traffic(l, e, |t| float(t.sectors_written))),
    gauge("container_fs_usage_bytes", "Bytes in use", |l, e| room(l, e, |f| f.total_bytes.saturating_sub(f.free_bytes))),
    counter("container_fs_write_seconds_total", "Time in writes", |l, e| traffic(l, e, |t| secs(t.write_ms))),
    counter("container_fs_writes_bytes_total", "Bytes written", |l, e| own(l, e, |d| d.write_bytes)),
    counter("container_fs_writes_merged_total", "Writes that were merged", |l, e| traffic(l, e, |t| float(t.writes_merged))),
    counter("container_fs_writes_total", "Writes", |l, e| operations(l, e, |t| float(t.writes), |d| d.writes)),
];
