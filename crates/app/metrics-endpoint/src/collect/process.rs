//! This process, off `/proc/self`.

use std::sync::OnceLock;

use metrics::Kind::{Counter, Gauge};

use crate::families::{Families, Row};

/// Also shown on `/metrics/probes`.
pub(crate) const START_TIME: Row = ("process_start_time_seconds", Gauge, "Start of the process, in unix seconds.", &[]);

pub(crate) const TABLE: &[Row] = &[
    START_TIME,
    ("process_cpu_seconds_total", Counter, "CPU time of the process.", &[]),
    ("process_resident_memory_bytes", Gauge, "Resident memory.", &[]),
    ("process_virtual_memory_bytes", Gauge, "Virtual memory.", &[]),
    ("process_virtual_memory_max_bytes", Gauge, "Limit of virtual memory; -1: none.", &[]),
    ("process_open_fds", Gauge, "Open file descriptors.", &[]),
    ("process_max_fds", Gauge, "Limit of open file descriptors.", &[]),
    ("process_network_receive_bytes_total", Counter, "Bytes received by all interfaces of the process's network.", &[]),
    ("process_network_transmit_bytes_total", Counter, "Bytes sent by all interfaces of the process's network.", &[]),
    ("go_goroutines", Gauge, "There are no goroutines here: tokio tasks and actors that live now.", &[]),
    ("go_threads", Gauge, "Threads of the operating system.", &[]),
];

/// Times in `/proc` are in hundredths of a second on every architecture (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Contents of the files that tell of the process; empty where one could not be read.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    pub(crate) stat: String,
    pub(crate) status: String,
    pub(crate) limits: String,
    pub(crate) net_dev: String,
    /// Boot in unix seconds, from `/proc/stat`.
    pub(crate) boot: Option<f64>,
    pub(crate) open_fds: Option<usize>,
}

impl Readings {
    pub(crate) fn now() -> Self {
        static BOOT: OnceLock<Option<f64>> = OnceLock::new();
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            stat: read("/proc/self/stat"),
            status: read("/proc/self/status"),
            limits: read("/proc/self/limits"),
            net_dev: read("/proc/self/net/dev"),
            boot: *BOOT.get_or_init(|| {
                let text = std::fs::read_to_string("/proc/stat").ok()?;
                text.lines().find_map(|l| l.strip_prefix("btime "))?.trim().parse().ok()
            }),
            // One of them reads the folder.
            open_fds: std::fs::read_dir("/proc/self/fd").ok().map(|dir| dir.count().saturating_sub(1)),
        }
    }

    /// Fields of `stat` behind the command, which may itself hold blanks and brackets; the first is field 3.
    fn field(&self, number: usize) -> Option<f64> {
        let (_, rest) = self.stat.rsplit_once(')')?;
        rest.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    fn status(&self, key: &str) -> Option<f64> {
        let line = self.status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }

    fn limit(&self, name: &str) -> Option<f64> {
        let line = self.limits.lines().find_map(|l| l.strip_prefix(name))?;
        match line.split_whitespace().next()? {
            "unlimited" => Some(-1.0),
            number => number.parse().ok(),
        }
    }

    /// Bytes received and sent.
    fn network(&self) -> Option<(f64, f64)> {
        let rows = self.net_dev.lines().skip(2).filter_map(|l| {
            let fields: Vec<f64> = l.split_once(':')?.1.split_whitespace().filter_map(|n| n.parse().ok()).collect();
            Some((*fields.first()?, *fields.get(8)?))
        });
        rows.reduce(|a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// Seconds from the start of the system to that of the process.
    pub(crate) fn since_boot(&self) -> Option<f64> {
        Some(self.field(22)? / TICKS_PER_SECOND)
    }

    fn start(&self) -> Option<f64> {
        Some(self.boot? + self.since_boot()?)
    }
}

pub(crate) fn fill_start(families: &mut Families, readings: &Readings) {
    if let Some(start) = readings.start() {
        families.put("process_start_time_seconds", &[], start);
    }
}

pub(crate) fn fill(families: &mut Families, r: &Readings) {
    fill_start(families, r);
    let network = r.network();
    let cpu = r.field(14).zip(r.field(15)).map(|(user, system)| (user + system) / TICKS_PER_SECOND);
    #[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
    let open = r.open_fds.map(|n| n as f64);
    for (name, value) in [
        ("process_cpu_seconds_total", cpu),
        ("process_resident_memory_bytes", r.status("VmRSS").map(|kib| kib * 1024.0)),
        ("process_virtual_memory_bytes", r.status("VmSize").map(|kib| kib * 1024.0)),
        ("process_virtual_memory_max_bytes", r.limit("Max address space")),
        ("process_open_fds", open),
        ("process_max_fds", r.limit("Max open files")),
        ("process_network_receive_bytes_total", network.map(|(received, _)| received)),
        ("process_network_transmit_bytes_total", network.map(|(_, sent)| sent)),
        ("go_threads", r.status("Threads")),
    ] {
        if let Some(value) = value {
            families.put(name, &[], value);
        }
    }
}
