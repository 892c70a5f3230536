//! Looking at and ending processes by pid, safe against reused pids.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use procfs::process::{Process, Stat};
use rustix::process::{Pid, Signal, kill_process};

/// A process, told apart from a later one that got the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId {
    pub(crate) pid: i32,
    pub(crate) start_ticks: u64,
}

impl ProcessId {
    /// The process that has this pid now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|s| ProcessId { pid, start_ticks: s.starttime })
    }

    /// Whether it still exists (a zombie counts as gone).
    pub(crate) fn alive(self) -> bool {
        stat(self.pid).is_some_and(|s| s.starttime == self.start_ticks && s.state != 'Z')
    }

    pub(crate) fn signal(self, signal: Signal) {
        if self.alive()
            && let Some(pid) = Pid::from_raw(self.pid)
        {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Memory and processor time of a process.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Resident set in KiB.
    pub rss_kib: u64,
    /// User plus system time since its start.
    pub cpu: Duration,
    /// Number of threads.
    pub threads: u64,
}

/// What `pid` uses now; `None` when it is gone.
#[must_use]
pub fn usage(pid: u32) -> Option<Usage> {
    let pid = i32::try_from(pid).ok()?;
    let process = Process::new(pid).ok()?;
    let (stat, status) = (process.stat().ok()?, process.status().ok()?);
    // schedstat counts nanoseconds, where the ticks of stat are too coarse for an idle daemon; but only stat knows what
    // ended threads used.
    let ticks = Duration::from_millis((stat.utime + stat.stime) * 10);
    let cpu = cpu_of_each_thread(pid).map_or(ticks, |threads| threads.values().sum::<Duration>().max(ticks));
    Some(Usage { rss_kib: status.vmrss?, cpu, threads: status.threads })
}

/// Proportional set size of `pid` in KiB: what it shares with others counts by its part; `None` when it is gone.
#[must_use]
pub fn proportional_kib(pid: i32) -> Option<u64> {
    let maps = Process::new(pid).ok()?.smaps_rollup().ok()?.memory_map_rollup;
    Some(maps.iter().find_map(|m| m.extension.map.get("Pss"))? / 1024)
}

/// Processor time of each thread of `pid`, to the nanosecond; `None` when it, or one of them, is gone.
#[must_use]
pub fn cpu_of_each_thread(pid: i32) -> Option<BTreeMap<i32, Duration>> {
    let time = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some((task.file_name().to_str()?.parse().ok()?, Duration::from_nanos(nanos)))
    };
    std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().map(time).collect()
}

fn stat(pid: i32) -> Option<Stat> {
    Process::new(pid).and_then(|p| p.stat()).ok()
}

/// All processes and their parents.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?.ppid))).collect()
}

/// The process that `parent` started, once there is one.
pub(crate) fn only_child(parent: u32) -> Option<ProcessId> {
    let parent = i32::try_from(parent).ok()?;
    parents().into_iter().find(|(_, its)| *its == parent).and_then(|(pid, _)| ProcessId::of(pid))
}

/// The given processes and everything below them.
pub(crate) fn with_descendants(roots: &BTreeSet<i32>) -> BTreeSet<ProcessId> {
    let parents = parents();
    let below = |mut pid: i32| {
        while pid > 1 {
            if roots.contains(&pid) {
                return true;
            }
            pid = parents.get(&pid).copied().unwrap_or(0);
        }
        false
    };
    parents.keys().filter(|&&p| below(p)).filter_map(|&p| ProcessId::of(p)).collect()
}

/// Shims of the containerd that listens on `socket`, known by their command line.
pub(crate) fn shims_of(socket: &Path) -> BTreeSet<i32> {
    let socket = socket.as_os_str().as_encoded_bytes();
    let is_shim = |pid: &i32| {
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
        let mut words = line.split(|b| *b == 0);
        words.next().is_some_and(|w| w.windows(15).any(|w| w == b"containerd-shim")) && words.any(|w| w == socket)
    };
    parents().into_keys().filter(is_shim).collect()
}

/// Supervisors of bosun's own runtime in a bed, known by their command line.
pub(crate) fn supervisors_of(bed: &Path) -> BTreeSet<i32> {
    let is_supervisor = |pid: &i32| {
        let Ok(line) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
        let mut words = line.split(|b| *b == 0);
        let is_pod = words.next().is_some_and(|w| w.ends_with(b"bosun-pod"));
        is_pod && words.any(|w| Path::new(std::ffi::OsStr::from_bytes(w)).starts_with(bed))
    };
    parents().into_keys().filter(is_supervisor).collect()
}

/// Ends processes at once and waits until they are gone.
pub(crate) fn kill_all(processes: &BTreeSet<ProcessId>) {
    for p in processes {
        p.signal(Signal::KILL);
    }
    wait_gone(processes, Duration::from_secs(5));
}

/// Waits until none is left; `false` when some outlive `limit`.
pub(crate) fn wait_gone(processes: &BTreeSet<ProcessId>, limit: Duration) -> bool {
    let start = std::time::Instant::now();
    while processes.iter().any(|p| p.alive()) {
        if start.elapsed() > limit {
            return false;
        }
        pause();
    }
    true
}

/// One step of a wait.
pub(crate) fn pause() {
    let_pass(Duration::from_millis(10));
}

/// Lets time pass, for a test that strikes at any moment whatsoever: nothing may be taken to have happened meanwhile.
#[allow(clippy::disallowed_methods, reason = "test support: waits for other processes in real time, no arbiter here")]
pub fn let_pass(time: Duration) {
    std::thread::sleep(time);
}
