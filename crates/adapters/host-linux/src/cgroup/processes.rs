//! Which processes are in a cgroup.

use std::fs;
use std::io;
use std::path::Path;

use model::cgroup::Process;
use ports::host::HostResult;

use crate::At;

/// Those of one directory, not of those below.
pub(super) fn list(dir: &Path, proc: &Path) -> HostResult<Vec<Process>> {
    let file = dir.join("cgroup.procs");
    let text = fs::read_to_string(&file).at("read", &file)?;
    let pids = text.lines().filter_map(|line| line.trim().parse().ok());
    Ok(pids.map(|pid| Process { pid, is_kernel: is_kernel(pid, proc) }).collect())
}

/// Threads of the kernel run no program. Neither does a process that has just ended: it is nobody's concern either.
fn is_kernel(pid: i32, proc: &Path) -> bool {
    let exe = fs::read_link(proc.join(pid.to_string()).join("exe"));
    exe.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}
