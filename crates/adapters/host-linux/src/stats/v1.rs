//! A cgroup in the hierarchies of v1.

use std::collections::BTreeMap;

use model::Timestamp;
use model::reading::{CgroupReading, CpuReading, Depth, DiskReading, MemoryReading, TaskReading};

use super::dir::Dir;
use super::roots::Roots;
use super::{parse, tasks};

/// Limits above this are none: the kernel writes the largest number of pages.
const UNLIMITED: u64 = 1 << 62;
/// Nanoseconds of one tick of `cpuacct.stat` (`USER_HZ` is 100 on Linux).
const TICK_NS: u64 = 10_000_000;

pub(super) fn read(from: &Roots, path: &str, depth: Depth, at: Timestamp) -> Option<CgroupReading> {
    let accounting = from.dir("cpuacct", path);
    let memory = from.dir("memory", path);
    // A cgroup that lacks both is not there.
    let made = accounting.as_ref().or(memory.as_ref())?.made();
    let mut reading = CgroupReading { at, created: made, ..CgroupReading::default() };
    if let Some(dir) = &accounting {
        reading.cpu.usage_ns = dir.number("cpuacct.usage");
        if depth >= Depth::Summary {
            tasks::processes(dir, &mut reading.tasks);
        }
    }
    if let Some(dir) = &memory {
        reading.memory = usage(dir, depth);
    }
    if depth == Depth::Full {
        if let Some(dir) = &accounting {
            times(dir, &mut reading.cpu);
        }
        if let Some(dir) = from.dir("cpu", path) {
            scheduler(&dir, &mut reading.cpu);
        }
        if let Some(dir) = &memory {
            more_memory(dir, &mut reading.memory);
        }
        if let Some(dir) = from.dir("blkio", path) {
            reading.disks = disks(&dir);
        }
        if let Some(dir) = from.dir("pids", path) {
            threads(&dir, &mut reading.tasks);
        }
        tasks::open_files(&from.proc, accounting.as_ref(), &mut reading.tasks);
    }
    Some(reading)
}

fn usage(dir: &Dir, depth: Depth) -> MemoryReading {
    let mut m = MemoryReading { usage: dir.number("memory.usage_in_bytes"), ..MemoryReading::default() };
    for (key, value) in parse::pairs(&dir.text("memory.stat").unwrap_or_default()) {
        let to = match key {
            "total_inactive_file" => &mut m.inactive_file,
            "total_active_file" => &mut m.active_file,
            "total_rss" => &mut m.rss,
            "total_cache" => &mut m.cache,
            "total_mapped_file" => &mut m.mapped_file,
            "total_swap" => &mut m.swap,
            "pgfault" => &mut m.page_faults,
            "pgmajfault" => &mut m.major_page_faults,
            "total_pgfault" => &mut m.tree_page_faults,
            "total_pgmajfault" => &mut m.tree_major_page_faults,
            _ => continue,
        };
        *to = Some(value);
    }
    let limited = |file| dir.bound(file).filter(|n| *n < UNLIMITED);
    m.limit = limited("memory.limit_in_bytes");
    // Without the one the other says nothing of swap.
    if m.limit.is_some() || depth == Depth::Full {
        m.raw_swap_limit = limited("memory.memsw.limit_in_bytes");
    }
    // The file limits both together.
    m.swap_limit = m.raw_swap_limit.zip(m.limit).map(|(both, memory)| both.saturating_sub(memory));
    m
}

fn times(dir: &Dir, cpu: &mut CpuReading) {
    cpu.user_ns = dir.number("cpuacct.usage_user");
    cpu.system_ns = dir.number("cpuacct.usage_sys");
    if cpu.user_ns.is_some() && cpu.system_ns.is_some() {
        return;
    }
    // Kernels before 4.7.
    for (key, ticks) in parse::pairs(&dir.text("cpuacct.stat").unwrap_or_default()) {
        match key {
            "user" => cpu.user_ns = Some(ticks.saturating_mul(TICK_NS)),
            "system" => cpu.system_ns = Some(ticks.saturating_mul(TICK_NS)),
            _ => {}
        }
    }
}

fn scheduler(dir: &Dir, cpu: &mut CpuReading) {
    cpu.shares = dir.number("cpu.shares");
    // -1: none; it does not parse.
    cpu.quota_us = dir.bound("cpu.cfs_quota_us");
    cpu.period_us = dir.bound("cpu.cfs_period_us");
    for (key, value) in parse::pairs(&dir.text("cpu.stat").unwrap_or_default()) {
        match key {
            "nr_periods" => cpu.periods = Some(value),
            "nr_throttled" => cpu.throttled_periods = Some(value),
            "throttled_time" => cpu.throttled_ns = Some(value),
            "nr_bursts" => cpu.bursts = Some(value),
            "burst_time" => cpu.burst_ns = Some(value),
            _ => {}
        }
    }
}

fn more_memory(dir: &Dir, m: &mut MemoryReading) {
    m.reservation = dir.bound("memory.soft_limit_in_bytes").filter(|n| *n < UNLIMITED);
    m.limit_hits = dir.number("memory.failcnt");
    m.max_usage = dir.number("memory.max_usage_in_bytes");
    m.kernel = dir.number("memory.kmem.usage_in_bytes");
    let oom = dir.text("memory.oom_control").unwrap_or_default();
    m.oom_kills = parse::pairs(&oom).find_map(|(key, n)| (key == "oom_kill").then_some(n));
}

fn threads(dir: &Dir, tasks: &mut TaskReading) {
    tasks.threads = dir.number("pids.current");
    tasks.threads_max = dir.bound("pids.max");
}

fn disks(dir: &Dir) -> Vec<DiskReading> {
    let mut all: BTreeMap<(u32, u32), DiskReading> = BTreeMap::new();
    let bytes = dir.text("blkio.throttle.io_service_bytes_recursive").unwrap_or_default();
    let counts = dir.text("blkio.throttle.io_serviced_recursive").unwrap_or_default();
    for (text, are_bytes) in [(&bytes, true), (&counts, false)] {
        // 253:0 Read 4096; one line per operation, and a total without device.
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(device), Some(operation), Some(value)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (Some((major, minor)), Ok(value)) = (parse::device(device), value.parse::<u64>()) else { continue };
            let disk =
                all.entry((major, minor)).or_insert_with(|| DiskReading { major, minor, ..DiskReading::default() });
            let to = match (operation, are_bytes) {
                ("Read", true) => &mut disk.read_bytes,
                ("Write", true) => &mut disk.write_bytes,
                ("Read", false) => &mut disk.reads,
                ("Write", false) => &mut disk.writes,
                _ => continue,
            };
            *to = Some(value);
        }
    }
    all.into_values().collect()
}
