//! Families about processors, memory, processes, network and limits.

use model::reading::{CgroupReading, InterfaceCounters, InterfaceReading};
use model::stats::{PsiData, PsiStats};

use super::row::Labelled;
use crate::text::{Kind, labels};

/// Takes a sample: labels of its own, and the value.
pub(super) type Emit<'a> = dyn FnMut(&str, f64) + 'a;

/// One family.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) values: fn(&Labelled<'_>, &mut Emit<'_>),
}

pub(super) const fn counter(
    name: &'static str,
    help: &'static str,
    values: fn(&Labelled<'_>, &mut Emit<'_>),
) -> Family {
    Family { name, help, kind: Kind::Counter, values }
}

pub(super) const fn gauge(name: &'static str, help: &'static str, values: fn(&Labelled<'_>, &mut Emit<'_>)) -> Family {
    Family { name, help, kind: Kind::Gauge, values }
}

#[allow(clippy::cast_precision_loss, reason = "metrics are floats")]
pub(super) fn float(n: u64) -> f64 {
    n as f64
}

fn seconds(nanos: u64) -> f64 {
    float(nanos) / 1e9
}

/// A number as it is.
fn plain(e: &mut Emit<'_>, value: Option<u64>) {
    if let Some(n) = value {
        e("", float(n));
    }
}

/// Nanoseconds as seconds.
fn time(e: &mut Emit<'_>, nanos: Option<u64>) {
    if let Some(n) = nanos {
        e("", seconds(n));
    }
}

/// A number that only a quota gives a sense.
fn with_quota(r: &CgroupReading, value: Option<u64>) -> Option<u64> {
    value.filter(|_| r.cpu.quota_us.is_some())
}

/// A bound; unlimited is 0. Absent when the kernel counts nothing of the kind.
fn bound(counted: Option<u64>, bound: Option<u64>) -> Option<u64> {
    counted.map(|_| bound.unwrap_or(0))
}

fn pressure(e: &mut Emit<'_>, psi: Option<PsiStats>, line: fn(&PsiStats) -> PsiData) {
    if let Some(psi) = psi {
        e("", float(line(&psi).total) / 1e6);
    }
}

fn some(p: &PsiStats) -> PsiData {
    p.some
}

fn full(p: &PsiStats) -> PsiData {
    p.full
}

fn failures(l: &Labelled<'_>, e: &mut Emit<'_>) {
    let m = &l.row.reading.memory;
    let table = [
        (r#"failure_type="pgfault",scope="container""#, m.page_faults),
        (r#"failure_type="pgfault",scope="hierarchy""#, m.tree_page_faults),
        (r#"failure_type="pgmajfault",scope="container""#, m.major_page_faults),
        (r#"failure_type="pgmajfault",scope="hierarchy""#, m.tree_major_page_faults),
    ];
    for (labels, value) in table {
        if let Some(n) = value {
            e(labels, float(n));
        }
    }
}

fn network(
    l: &Labelled<'_>,
    e: &mut Emit<'_>,
    direction: fn(&InterfaceReading) -> InterfaceCounters,
    value: fn(InterfaceCounters) -> u64,
) {
    for interface in &l.row.network {
        e(&labels(&[("interface", &interface.name)]), float(value(direction(interface))));
    }
}

fn received(i: &InterfaceReading) -> InterfaceCounters {
    i.received
}

fn sent(i: &InterfaceReading) -> InterfaceCounters {
    i.sent
}

fn start_time(l: &Labelled<'_>, e: &mut Emit<'_>) {
    let row = l.row;
    let at = if row.started.is_set() { row.started } else { row.reading.created };
    if at.is_set() {
        e("", seconds(at.0.unsigned_abs()).floor());
    }
}

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    counter("container_cpu_cfs_burst_periods_total", "Periods in which more than the quota was used", |l, e| plain(e, with_quota(&l.row.reading, l.row.reading.cpu.bursts))),
    counter("container_cpu_cfs_burst_seconds_total", "Time used above the quota in bursts", |l, e| time(e, with_quota(&l.row.reading, l.row.reading.cpu.burst_ns))),
    counter("container_cpu_cfs_periods_total", "Periods of the quota that passed", |l, e| plain(e, with_quota(&l.row.reading, l.row.reading.cpu.periods))),
    counter("container_cpu_cfs_throttled_periods_total", "Periods in which the quota ran out", |l, e| plain(e, with_quota(&l.row.reading, l.row.reading.cpu.throttled_periods))),
    counter("container_cpu_cfs_throttled_seconds_total", "Time spent waiting for the next period", |l, e| time(e, with_quota(&l.row.reading, l.row.reading.cpu.throttled_ns))),
    counter("container_cpu_system_seconds_total", "Processor time in the kernel", |l, e| time(e, l.row.reading.cpu.system_ns)),
    counter("container_cpu_usage_seconds_total", "Processor time", |l, e| if let Some(n) = l.row.reading.cpu.usage_ns { e(r#"cpu="total""#, seconds(n)); }),
    counter("container_cpu_user_seconds_total", "Processor time in user mode", |l, e| time(e, l.row.reading.cpu.user_ns)),
    gauge("container_file_descriptors", "Open files", |l, e| plain(e, l.row.reading.tasks.files)),
    gauge("container_last_seen", "When it was last read, in seconds since the epoch", |l, e| e("", seconds(l.row.reading.at.0.unsigned_abs()).floor())),
    gauge("container_memory_cache", "Page cache in bytes", |l, e| plain(e, l.row.reading.memory.cache)),
    counter("container_memory_failcnt", "Times that the memory limit was hit", |l, e| plain(e, l.row.reading.memory.limit_hits)),
    counter("container_memory_failures_total", "Page faults", failures),
    gauge("container_memory_kernel_usage", "Memory of the kernel in bytes", |l, e| plain(e, l.row.reading.memory.kernel)),
    gauge("container_memory_mapped_file", "Mapped files in bytes", |l, e| plain(e, l.row.reading.memory.mapped_file)),
    gauge("container_memory_max_usage_bytes", "Highest use of memory in bytes", |l, e| plain(e, l.row.reading.memory.max_usage)),
    gauge("container_memory_rss", "Anonymous memory in bytes", |l, e| plain(e, l.row.reading.memory.rss)),
    gauge("container_memory_swap", "Swap in use in bytes", |l, e| plain(e, l.row.reading.memory.swap)),
    gauge("container_memory_total_active_file_bytes", "Active file pages in bytes", |l, e| plain(e, l.row.reading.memory.active_file)),
    gauge("container_memory_total_inactive_file_bytes", "Inactive file pages in bytes", |l, e| plain(e, l.row.reading.memory.inactive_file)),
    gauge("container_memory_usage_bytes", "Memory in use in bytes, page cache included", |l, e| plain(e, l.row.reading.memory.usage)),
    gauge("container_memory_working_set_bytes", "Memory in use in bytes, without inactive file pages", |l, e| plain(e, l.row.reading.memory.working_set())),
    counter("container_network_receive_bytes_total", "Received bytes", |l, e| network(l, e, received, |c| c.bytes)),
    counter("container_network_receive_errors_total", "Errors while receiving", |l, e| network(l, e, received, |c| c.errors)),
    counter("container_network_receive_packets_dropped_total", "Received packets that were dropped", |l, e| network(l, e, received, |c| c.dropped)),
    counter("container_network_receive_packets_total", "Received packets", |l, e| network(l, e, received, |c| c.packets)),
    counter("container_network_transmit_bytes_total", "Sent bytes", |l, e| network(l, e, sent, |c| c.bytes)),
    counter("container_network_transmit_errors_total", "Errors while sending", |l, e| network(l, e, sent, |c| c.errors)),
    counter("container_network_transmit_packets_dropped_total", "Packets to send that were dropped", |l, e| network(l, e, sent, |c| c.dropped)),
    counter("container_network_transmit_packets_total", "Sent packets", |l, e| network(l, e, sent, |c| c.packets)),
    counter("container_oom_events_total", "Processes killed for lack of memory", |l, e| plain(e, l.row.reading.memory.oom_kills)),
    counter("container_pressure_cpu_stalled_seconds_total", "Time in which all tasks waited for a processor", |l, e| pressure(e, l.row.reading.cpu.psi, full)),
    counter("container_pressure_cpu_waiting_seconds_total", "Time in which some task waited for a processor", |l, e| pressure(e, l.row.reading.cpu.psi, some)),
    counter("container_pressure_io_stalled_seconds_total", "Time in which all tasks waited for I/O", |l, e| pressure(e, l.row.reading.io_psi, full)),
    counter("container_pressure_io_waiting_seconds_total", "Time in which some task waited for I/O", |l, e| pressure(e, l.row.reading.io_psi, some)),
    counter("container_pressure_memory_stalled_seconds_total", "Time in which all tasks waited for memory", |l, e| pressure(e, l.row.reading.memory.psi, full)),
    counter("container_pressure_memory_waiting_seconds_total", "Time in which some task waited for memory", |l, e| pressure(e, l.row.reading.memory.psi, some)),
    gauge("container_processes", "Processes", |l, e| plain(e, l.row.reading.tasks.processes)),
    gauge("container_sockets", "Open sockets", |l, e| plain(e, l.row.reading.tasks.sockets)),
    gauge("container_spec_cpu_period", "Period of the quota in microseconds", |l, e| plain(e, l.row.reading.cpu.period_us)),
    gauge("container_spec_cpu_quota", "Processor time per period in microseconds", |l, e| plain(e, l.row.reading.cpu.quota_us)),
    gauge("container_spec_cpu_shares", "Relative share of processors", |l, e| plain(e, l.row.reading.cpu.shares)),
    gauge("container_spec_memory_limit_bytes", "Memory limit in bytes, 0 for none", |l, e| plain(e, bound(l.row.reading.memory.usage, l.row.reading.memory.limit))),
    gauge("container_spec_memory_reservation_limit_bytes", "Memory that is kept under pressure in bytes, 0 for none", |l, e| plain(e, bound(l.row.reading.memory.usage, l.row.reading.memory.reservation))),
    gauge("container_spec_memory_swap_limit_bytes", "Swap limit in bytes, 0 for none", |l, e| plain(e, bound(l.row.reading.memory.swap, l.row.reading.memory.raw_swap_limit))),
    gauge("container_start_time_seconds", "When it was started, in seconds since the epoch", start_time),
    gauge("container_threads", "Threads", |l, e| plain(e, l.row.reading.tasks.threads)),
    gauge("container_threads_max", "Most threads there may be, 0 for no bound", |l, e| plain(e, bound(l.row.reading.tasks.threads, l.row.reading.tasks.threads_max))),
    gauge("container_ulimits_soft", "Soft limits of its first process", |l, e| if let Some(n) = l.row.reading.tasks.files_limit { e(r#"ulimit="max_open_files""#, float(n)); }),
];
