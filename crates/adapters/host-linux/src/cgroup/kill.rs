//! Emptying and removing cgroups.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ports::host::{HostError, HostResult};
use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::At;

/// How often processes are looked for and killed before giving up: they may fork in between.
const PASSES: u32 = 5;
/// A killed process leaves its cgroup only once the kernel has reaped it.
const RMDIR_TRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Kills whatever runs in these directories and below.
pub(super) fn kill_all(dirs: &[PathBuf]) -> HostResult<()> {
    for pass in 0..PASSES {
        let mut pids = BTreeSet::new();
        for dir in dirs {
            collect_pids(dir, &mut pids)?;
        }
        // Never this process or init: a wrong path must not take the node down.
        pids.retain(|p| *p > 1 && *p != getpid().as_raw_nonzero().get());
        if pids.is_empty() {
            return Ok(());
        }
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            // Gone already is what was wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
        pause(FIRST_PAUSE * 2_u32.pow(pass));
    }
    Ok(())
}

fn collect_pids(dir: &Path, pids: &mut BTreeSet<i32>) -> HostResult<()> {
    let file = dir.join("cgroup.procs");
    match fs::read_to_string(&file) {
        Ok(text) => pids.extend(text.lines().filter_map(|l| l.trim().parse::<i32>().ok())),
        Err(e) if is_gone(&e) => return Ok(()),
        // A threaded cgroup has no list of its own; its parent's holds the processes.
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {}
        Err(e) => return Err(HostError::new("read", file, e)),
    }
    for child in child_names(dir)? {
        collect_pids(&dir.join(child), pids)?;
    }
    Ok(())
}

/// Removes a cgroup directory that has neither processes nor directories in it; whether it is gone.
pub(super) fn is_removed(dir: &Path) -> bool {
    fs::remove_dir(dir).map_or_else(|e| is_gone(&e), |()| true)
}

/// Removes a cgroup directory and those below. Only directories: the kernel's files go with them.
pub(super) fn remove_dirs(dir: &Path) -> HostResult<()> {
    // Most have nothing below: one call instead of a list first.
    if is_removed(dir) {
        return Ok(());
    }
    for child in child_names(dir)? {
        remove_dirs(&dir.join(child))?;
    }
    for attempt in 0..RMDIR_TRIES {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(()),
            Err(e) if is_gone(&e) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && attempt + 1 < RMDIR_TRIES => {
                pause(FIRST_PAUSE * 2_u32.pow(attempt));
            }
            Err(e) => return Err(HostError::new("rmdir", dir, e)),
        }
    }
    Ok(())
}

/// Child directories, sorted; none when the directory is gone.
pub(super) fn child_names(dir: &Path) -> HostResult<BTreeSet<String>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if is_gone(&e) => return Ok(BTreeSet::new()),
        other => other.at("readdir", dir)?,
    };
    let mut names = BTreeSet::new();
    for entry in entries {
        let entry = match entry {
            Err(e) if is_gone(&e) => continue,
            other => other.at("readdir", dir)?,
        };
        if entry.file_type().is_ok_and(|t| t.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            names.insert(name);
        }
    }
    Ok(names)
}

/// A cgroup that vanishes while it is read answers with either.
pub(super) fn is_gone(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

#[allow(
    clippy::disallowed_methods,
    reason = "runs on the blocking pool, and the kernel offers nothing to wait on in v1"
)]
fn pause(d: Duration) {
    std::thread::sleep(d);
}
