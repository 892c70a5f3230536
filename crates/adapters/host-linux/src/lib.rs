//! The Linux host behind the ports: cgroups, mounts, files, facts of the machine.
//!
//! One of three crates that may hold unsafe code (`quotas/kernel.rs` and `cgroup/devices/kernel.rs`, and none else here; the others are `seccomp-filter` and `cgroup-fork`). Every call blocks; managers run them on the blocking
//! pool. Nothing is cached: each answer is what the kernel says now.

pub mod cgroup;
pub mod files;
pub mod info;
pub mod iptables;
mod kernel_log;
mod logind;
mod memory_alarm;
pub mod mounts;
pub mod quotas;
pub mod stats;
pub mod sysctl;

pub use cgroup::{DeviceKind, DeviceRule, LinuxCgroups, SystemdCgroups, SystemdScopes, allow_devices};
pub use files::{LinuxFs, open_file_or_folder, open_regular};
pub use info::LinuxInfo;
pub use iptables::IptablesProgram;
pub use kernel_log::KernelMessages;
pub use logind::SystemdLogind;
pub use memory_alarm::KernelMemoryAlarm;
pub use mounts::LinuxMounts;
pub use quotas::LinuxQuotas;
pub use stats::LinuxStats;

use std::io;
use std::path::Path;

use ports::host::{HostError, HostResult};

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Lifts the number of files that this process may hold to what the system allows it (the hard limit), as Go programs do: the
/// soft limit is for programs that still use `select`. Answers the number.
///
/// # Errors
/// The system refuses.
pub fn raise_open_files() -> io::Result<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum })?;
    Ok(most)
}

/// A file of `/proc` as `procfs` parses it.
pub(crate) fn parsed<T: procfs::FromRead>(file: &Path) -> HostResult<T> {
    T::from_file(file).map_err(|e| unread(file, e))
}

/// That a file of `/proc` could not be read or understood.
fn unread(file: &Path, e: procfs::ProcError) -> HostError {
    let kind = match e {
        procfs::ProcError::NotFound(_) => io::ErrorKind::NotFound,
        procfs::ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied,
        procfs::ProcError::Io(e, _) => return HostError::new("read", file, e),
        _ => io::ErrorKind::InvalidData,
    };
    HostError::new("read", file, kind)
}

/// Names the operation and the path of a failed call.
pub(crate) trait At<T> {
    fn at(self, op: &'static str, path: impl AsRef<Path>) -> HostResult<T>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, op: &'static str, path: impl AsRef<Path>) -> HostResult<T> {
        self.map_err(|e| HostError::new(op, path.as_ref(), e))
    }
}
