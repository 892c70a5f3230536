//! System calls of a pod's life, counted by `strace` where it is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, ensure};
use testbed::{ClusterNode, Watch, wait_until};

use super::super::pods::idle;
use super::super::report::{Report, Unit};
use super::watched::{PODS, gone, pod, ready, wait_for};
use crate::workspace;

/// Pods that live and end while the calls are counted.
const LIVES: usize = 10;
/// What an actor that wakes another thread, a socket and a journal cost.
const CALLS: [&str; 5] = ["futex", "epoll_wait", "write", "writev", "fdatasync"];

/// `strace` slows the daemon down, so nothing else is measured in this round.
pub(super) fn per_life(node: &ClusterNode, watch: &Watch, report: &mut Report) -> anyhow::Result<()> {
    if !workspace::has("strace") {
        eprintln!("  strace is not installed: system calls are not counted");
        return Ok(());
    }
    let counter = Counter::attach(node.bosun.pid().context("bosun is gone")?, node.bed.dir())?;
    let admin = node.cluster.admin();
    for n in 0..LIVES {
        admin.create(PODS, &pod(&format!("life-{n}"), node.name()))?;
        wait_for(watch, &format!("life-{n} to be ready"), "life-", n + 1, ready)?;
    }
    for n in 0..LIVES {
        admin.delete(&format!("{PODS}/life-{n}"))?;
        wait_for(watch, &format!("life-{n} to be gone"), "life-", n + 1, gone)?;
    }
    let counts = counter.finish()?;
    let each = |name: &str| counts.get(name).copied().unwrap_or(0) as f64 / LIVES as f64;
    let detail = CALLS[1..].iter().map(|c| format!("{c} {:.0}", each(c))).collect::<Vec<_>>().join(", ");
    report.add("futex calls per pod life", each(CALLS[0]), Unit::Count, Some(60.0), detail);
    Ok(())
}

/// An `strace` that counts the calls of a process and its threads.
struct Counter {
    strace: Child,
    table: PathBuf,
}

impl Counter {
    fn attach(pid: u32, dir: &Path) -> anyhow::Result<Self> {
        let table = dir.join("strace.txt");
        let mut command = Command::new("strace");
        command.args(["-f", "-c", "-q", "-e", &format!("trace={}", CALLS.join(",")), "-p", &pid.to_string(), "-o"]);
        let counter = Counter { strace: command.arg(&table).spawn().context("strace")?, table };
        wait_until("strace to be attached", Duration::from_secs(10), || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|e| e.to_string())?;
            let traced = status.lines().any(|l| l.starts_with("TracerPid:") && !l.ends_with("\t0"));
            if traced { Ok(()) } else { Err("not traced".to_owned()) }
        })?;
        Ok(counter)
    }

    fn finish(mut self) -> anyhow::Result<BTreeMap<String, u64>> {
        let told = Command::new("kill").args(["-INT", &self.strace.id().to_string()]).status()?;
        ensure!(told.success(), "strace could not be told to end");
        self.strace.wait()?;
        // A traced thread that is just being let go must not be measured by the next round.
        idle(Duration::from_secs(1));
        Ok(counts(&std::fs::read_to_string(&self.table).context("strace's table")?))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // After `finish` there is nothing left to end.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// Calls by name, from the table that `strace -c` writes: share, seconds, microseconds per call, calls, errors, name.
fn counts(table: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (share, calls, name) = (fields.first()?, fields.get(3)?, fields.last()?);
        share.parse::<f64>().ok()?;
        Some(((*name).to_owned(), calls.parse().ok()?))
    };
    table.lines().filter_map(row).filter(|(name, _)| name != "total").collect()
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn the_table_of_strace_is_read() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     \x20 97.10    0.021240          57       370        11 futex\n\
                     \x20  2.90    0.000634           4       140           epoll_wait\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.021874          42       510        11 total\n";
        let counts = counts(table);
        assert_eq!(
            counts.iter().map(|(n, c)| (n.as_str(), *c)).collect::<Vec<_>>(),
            [("epoll_wait", 140), ("futex", 370)]
        );
    }
}
