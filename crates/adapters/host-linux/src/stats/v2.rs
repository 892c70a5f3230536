//! A cgroup in the unified hierarchy.

use model::Timestamp;
use model::cgroup::shares_of_weight;
use model::reading::{CgroupReading, CpuReading, Depth, DiskReading, MemoryReading, TaskReading};

use super::dir::Dir;
use super::roots::Roots;
use super::{parse, tasks};

pub(super) fn read(from: &Roots, path: &str, depth: Depth, at: Timestamp) -> Option<CgroupReading> {
    let dir = from.dir("", path)?;
    let mut reading = CgroupReading { at, created: dir.made(), ..CgroupReading::default() };
    reading.cpu = cpu(&dir);
    reading.memory = memory(&dir);
    if depth >= Depth::Summary {
        let pressure = |file| dir.text(file).as_deref().and_then(parse::psi);
        reading.cpu.psi = pressure("cpu.pressure");
        reading.memory.psi = pressure("memory.pressure");
        reading.io_psi = pressure("io.pressure");
        tasks::processes(&dir, &mut reading.tasks);
    }
    if depth == Depth::Full {
        scheduler(&dir, &mut reading.cpu);
        more_memory(&dir, &mut reading.memory);
        reading.disks = disks(&dir);
        reading.tasks =
            TaskReading { threads: dir.number("pids.current"), threads_max: dir.bound("pids.max"), ..reading.tasks };
        tasks::open_files(&from.proc, Some(&dir), &mut reading.tasks);
    }
    Some(reading)
}

fn cpu(dir: &Dir) -> CpuReading {
    let mut cpu = CpuReading::default();
    for (key, value) in parse::pairs(&dir.text("cpu.stat").unwrap_or_default()) {
        let micros = Some(value.saturating_mul(1000));
        match key {
            "usage_usec" => cpu.usage_ns = micros,
            "user_usec" => cpu.user_ns = micros,
            "system_usec" => cpu.system_ns = micros,
            "nr_periods" => cpu.periods = Some(value),
            "nr_throttled" => cpu.throttled_periods = Some(value),
            "throttled_usec" => cpu.throttled_ns = micros,
            "nr_bursts" => cpu.bursts = Some(value),
            "burst_usec" => cpu.burst_ns = micros,
            _ => {}
        }
    }
    cpu
}

fn memory(dir: &Dir) -> MemoryReading {
    let mut m = MemoryReading { usage: dir.number("memory.current"), ..MemoryReading::default() };
    for (key, value) in parse::pairs(&dir.text("memory.stat").unwrap_or_default()) {
        let to = match key {
            "anon" => &mut m.rss,
            "file" => &mut m.cache,
            "inactive_file" => &mut m.inactive_file,
            "active_file" => &mut m.active_file,
            "file_mapped" => &mut m.mapped_file,
            "kernel" => &mut m.kernel,
            "pgfault" => &mut m.page_faults,
            "pgmajfault" => &mut m.major_page_faults,
            _ => continue,
        };
        *to = Some(value);
    }
    // One counter for both: children are always counted in.
    m.tree_page_faults = m.page_faults;
    m.tree_major_page_faults = m.major_page_faults;
    m.limit = dir.bound("memory.max");
    m.swap = dir.number("memory.swap.current");
    if m.swap.is_some() {
        m.raw_swap_limit = dir.bound("memory.swap.max");
        m.swap_limit = m.raw_swap_limit;
    }
    m
}

fn scheduler(dir: &Dir, cpu: &mut CpuReading) {
    cpu.shares = dir.number("cpu.weight").map(shares_of_weight);
    let text = dir.text("cpu.max").unwrap_or_default();
    let mut words = text.split_whitespace();
    // `max`: none; it does not parse.
    cpu.quota_us = words.next().and_then(|w| w.parse().ok());
    cpu.period_us = words.next().and_then(|w| w.parse().ok());
}

fn more_memory(dir: &Dir, m: &mut MemoryReading) {
    m.reservation = dir.bound("memory.low");
    m.max_usage = dir.number("memory.peak");
    for (key, value) in parse::pairs(&dir.text("memory.events").unwrap_or_default()) {
        match key {
            "max" => m.limit_hits = Some(value),
            "oom_kill" => m.oom_kills = Some(value),
            _ => {}
        }
    }
}

fn disks(dir: &Dir) -> Vec<DiskReading> {
    // 253:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (major, minor) = parse::device(words.next()?)?;
        let mut disk = DiskReading { major, minor, ..DiskReading::default() };
        for (key, value) in words.filter_map(|w| w.split_once('=')) {
            let to = match key {
                "rbytes" => &mut disk.read_bytes,
                "wbytes" => &mut disk.write_bytes,
                "rios" => &mut disk.reads,
                "wios" => &mut disk.writes,
                _ => continue,
            };
            *to = value.parse().ok();
        }
        Some(disk)
    };
    dir.text("io.stat").unwrap_or_default().lines().filter_map(line).collect()
}
