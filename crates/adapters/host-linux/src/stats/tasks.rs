//! Processes of a cgroup, and what they have open.

use std::fs;
use std::path::Path;

use model::reading::TaskReading;

use super::dir::Dir;

/// More processes than this are not looked into one by one.
const MOST_PROCESSES: u64 = 128;
/// More open files than this are not counted.
const MOST_FILES: u64 = 8192;

/// Counts the processes right in a cgroup.
pub(super) fn processes(dir: &Dir, tasks: &mut TaskReading) {
    let Some(text) = dir.text("cgroup.procs") else { return };
    tasks.processes = Some(text.lines().count() as u64);
    tasks.one = text.lines().find_map(|l| l.trim().parse().ok().filter(|pid| *pid != 0));
}

/// Counts what the processes right in a cgroup have open. Beyond the bounds the numbers stay absent.
pub(super) fn open_files(proc: &Path, dir: Option<&Dir>, tasks: &mut TaskReading) {
    let Some(text) = dir.and_then(|d| d.text("cgroup.procs")) else { return };
    if tasks.processes.is_none_or(|n| n == 0 || n > MOST_PROCESSES) {
        return;
    }
    tasks.files_limit = tasks.one.and_then(|pid| files_limit(&proc.join(pid.to_string()).join("limits")));
    let (mut files, mut sockets) = (0_u64, 0_u64);
    let mut seen = false;
    for pid in text.lines() {
        // Ended meanwhile, or not ours to look into.
        let Ok(entries) = fs::read_dir(proc.join(pid.trim()).join("fd")) else { continue };
        seen = true;
        for entry in entries.flatten() {
            files += 1;
            if files > MOST_FILES {
                return;
            }
            let target = fs::read_link(entry.path());
            sockets += u64::from(target.is_ok_and(|t| t.to_str().is_some_and(|t| t.starts_with("socket:"))));
        }
    }
    if seen {
        (tasks.files, tasks.sockets) = (Some(files), Some(sockets));
    }
}

/// `Max open files            1024                 524288               files`: the soft one. `procfs` makes a table of all sixteen
/// limits, in 7.6 instead of 0.3 us, for each container of each scrape (docs/decisions/0018-host-libraries.md).
fn files_limit(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|l| l.strip_prefix("Max open files"))?;
    rest.split_whitespace().next()?.parse().ok()
}
