//! Single objects of the summary from readings, or from what the runtime says.

use cri_api::v1;
use model::Timestamp;
use model::reading::{CgroupReading, DiskUse, FsReading, InterfaceReading};
use model::stats::{
    CpuStats, FsStats, InterfaceStats, IoStats, MemoryStats, NetworkStats, PsiData, PsiStats, SwapStats,
};

use crate::samples::Samples;

/// The interface that a pod's own network is known by.
const DEFAULT_INTERFACE: &str = "eth0";

pub(crate) fn cpu(r: &CgroupReading, path: &str, samples: &mut Samples) -> Option<CpuStats> {
    let total = r.cpu.usage_ns?;
    Some(CpuStats {
        time: r.at,
        usage_nano_cores: samples.rate(path, r.at, total),
        usage_core_nano_seconds: Some(total),
        psi: r.cpu.psi,
    })
}

/// `limit`: what bounds it when the cgroup does not.
pub(crate) fn memory(r: &CgroupReading, limit: Option<u64>) -> Option<MemoryStats> {
    let m = &r.memory;
    m.usage?;
    let working_set = m.working_set();
    Some(MemoryStats {
        time: r.at,
        available_bytes: m.limit.or(limit).zip(working_set).map(|(limit, used)| limit.saturating_sub(used)),
        usage_bytes: m.usage,
        working_set_bytes: working_set,
        rss_bytes: m.rss,
        page_faults: m.page_faults,
        major_page_faults: m.major_page_faults,
        psi: m.psi,
    })
}

pub(crate) fn io(r: &CgroupReading) -> Option<IoStats> {
    r.io_psi.map(|psi| IoStats { time: r.at, psi: Some(psi) })
}

/// `limit`: what bounds it when the cgroup does not.
pub(crate) fn swap(r: &CgroupReading, limit: Option<u64>) -> Option<SwapStats> {
    let used = r.memory.swap?;
    let bound = match (r.memory.swap_limit, limit) {
        (Some(own), Some(all)) => Some(own.min(all)),
        (own, all) => own.or(all),
    };
    Some(SwapStats {
        time: r.at,
        swap_available_bytes: bound.map(|b| b.saturating_sub(used)),
        swap_usage_bytes: Some(used),
    })
}

pub(crate) fn network(at: Timestamp, interfaces: &[InterfaceReading]) -> NetworkStats {
    let one = |i: &InterfaceReading| InterfaceStats {
        name: i.name.clone(),
        rx_bytes: Some(i.received.bytes),
        rx_errors: Some(i.received.errors),
        tx_bytes: Some(i.sent.bytes),
        tx_errors: Some(i.sent.errors),
    };
    let default = interfaces.iter().find(|i| i.name == DEFAULT_INTERFACE);
    NetworkStats {
        time: at,
        default_interface: default.map(one).unwrap_or_default(),
        interfaces: interfaces.iter().map(one).collect(),
    }
}

/// A file system, and what somebody uses of it (bytes, inodes).
pub(crate) fn fs(at: Timestamp, fs: Option<&FsReading>, used: (Option<u64>, Option<u64>)) -> FsStats {
    // Some file systems count no inodes: their 0 means unknown.
    let inodes = fs.filter(|f| f.inodes > 0);
    FsStats {
        time: at,
        available_bytes: fs.map(|f| f.available_bytes),
        capacity_bytes: fs.map(|f| f.total_bytes),
        used_bytes: used.0,
        inodes_free: inodes.map(|f| f.inodes_free),
        inodes: inodes.map(|f| f.inodes),
        inodes_used: used.1,
    }
}

/// A file system as a whole.
pub(crate) fn whole_fs(at: Timestamp, reading: &FsReading) -> FsStats {
    let inodes_used = (reading.inodes > 0).then(|| reading.inodes.saturating_sub(reading.inodes_free));
    fs(at, Some(reading), (Some(reading.total_bytes.saturating_sub(reading.free_bytes)), inodes_used))
}

pub(crate) fn used(amount: DiskUse) -> (Option<u64>, Option<u64>) {
    (Some(amount.bytes), Some(amount.inodes))
}

fn value(v: Option<v1::UInt64Value>) -> Option<u64> {
    v.map(|v| v.value)
}

fn psi(p: Option<v1::PsiStats>) -> Option<PsiStats> {
    let data = |d: Option<v1::PsiData>| {
        d.map_or(PsiData::default(), |d| PsiData { total: d.total, avg10: d.avg10, avg60: d.avg60, avg300: d.avg300 })
    };
    p.map(|p| PsiStats { full: data(p.full), some: data(p.some) })
}

pub(crate) fn cpu_of_runtime(c: &v1::CpuUsage, id: &str, samples: &mut Samples) -> Option<CpuStats> {
    let (time, total) = (Timestamp(c.timestamp), value(c.usage_core_nano_seconds)?);
    let rate = samples.rate(id, time, total);
    Some(CpuStats {
        time,
        usage_nano_cores: value(c.usage_nano_cores).or(rate),
        usage_core_nano_seconds: Some(total),
        psi: psi(c.psi),
    })
}

pub(crate) fn memory_of_runtime(m: &v1::MemoryUsage) -> Option<MemoryStats> {
    let working_set = value(m.working_set_bytes)?;
    Some(MemoryStats {
        time: Timestamp(m.timestamp),
        // Runtimes write 0 where there is no limit.
        available_bytes: value(m.available_bytes).filter(|n| *n > 0),
        usage_bytes: value(m.usage_bytes),
        working_set_bytes: Some(working_set),
        rss_bytes: value(m.rss_bytes),
        page_faults: value(m.page_faults),
        major_page_faults: value(m.major_page_faults),
        psi: psi(m.psi),
    })
}

pub(crate) fn swap_of_runtime(s: &v1::SwapUsage) -> SwapStats {
    SwapStats {
        time: Timestamp(s.timestamp),
        swap_available_bytes: value(s.swap_available_bytes),
        swap_usage_bytes: value(s.swap_usage_bytes),
    }
}

pub(crate) fn io_of_runtime(i: &v1::IoUsage) -> Option<IoStats> {
    psi(i.psi).map(|psi| IoStats { time: Timestamp(i.timestamp), psi: Some(psi) })
}

pub(crate) fn layer_used(layer: &v1::FilesystemUsage) -> (Option<u64>, Option<u64>) {
    (value(layer.used_bytes), value(layer.inodes_used))
}
