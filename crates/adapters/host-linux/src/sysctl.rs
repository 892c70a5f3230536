//! Kernel parameters (`/proc/sys`).

use std::io;
use std::path::Path;

use ports::host::{HostError, HostResult};

use crate::At;

/// The value of a parameter, named by its path (`vm/overcommit_memory`) below `dir`.
///
/// # Errors
/// The kernel does not have it, or it is no number.
pub fn read(dir: &Path, name: &str) -> HostResult<i64> {
    let path = dir.join(name);
    let text = std::fs::read_to_string(&path).at("read", &path)?;
    text.trim().parse().map_err(|_| HostError::new("parse", path, io::ErrorKind::InvalidData))
}

/// Sets a parameter.
///
/// # Errors
/// The kernel refuses.
pub fn write(dir: &Path, name: &str, value: i64) -> HostResult<()> {
    let path = dir.join(name);
    std::fs::write(&path, value.to_string()).at("write", &path)
}

/// Whether this process is in a user namespace: its ids are not all ids.
#[must_use]
pub fn in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.split_whitespace().eq(["0", "0", "4294967295"])
}
