//! Which container runtime a bed has.

use std::path::{Path, PathBuf};

use crate::machine::Need;

/// The container runtime of a bed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuntimeKind {
    /// A containerd.
    Containerd,
    /// bosun's own, and the program `bosun` that serves it: within the daemon of the bed where that is told so, which is the
    /// default, else as `bosun runtime`.
    Own(PathBuf),
}

impl RuntimeKind {
    /// What `TESTBED_RUNTIME` says: `embedded` is bosun's own, by the program that `BOSUN_BIN` names.
    #[must_use]
    pub fn of_environment() -> Self {
        match std::env::var("TESTBED_RUNTIME").as_deref() {
            Ok("embedded") => Self::Own(std::env::var_os("BOSUN_BIN").map_or_else(|| "bosun".into(), PathBuf::from)),
            _ => Self::Containerd,
        }
    }

    /// What a bed with it needs of the machine.
    #[must_use]
    pub fn needs(&self) -> &'static [Need] {
        if *self == Self::Containerd { &[Need::Bed, Need::Containerd] } else { &[Need::Bed] }
    }

    /// Its socket in a bed.
    pub(crate) fn socket(&self, dir: &Path) -> PathBuf {
        dir.join(if *self == Self::Containerd { "containerd.sock" } else { "cri.sock" })
    }

    /// Its log in a bed, as long as it runs by itself.
    pub(crate) fn log(&self, dir: &Path) -> PathBuf {
        dir.join(if *self == Self::Containerd { "containerd.log" } else { "runtime.log" })
    }
}
