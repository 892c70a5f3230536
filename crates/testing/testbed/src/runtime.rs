//! Which container runtime a bed has.

use std::path::{Path, PathBuf};

use crate::machine::Need;
use crate::program_under_test;

/// The variable that says which runtime beds have, and tests in guests.
pub const RUNTIME_VARIABLE: &str = "TESTBED_RUNTIME";

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
    ///
    /// # Panics
    /// It says something else.
    #[must_use]
    pub fn of_environment() -> Self {
        let said = std::env::var_os(RUNTIME_VARIABLE);
        let said = said.as_ref().map(|said| said.to_string_lossy());
        Self::named(said.as_deref()).unwrap_or_else(|why| panic!("{why}"))
    }

    fn named(said: Option<&str>) -> Result<Self, String> {
        match said {
            Some("embedded") => Ok(Self::Own(program_under_test())),
            None | Some("" | "containerd") => Ok(Self::Containerd),
            Some(other) => Err(format!(
                "{RUNTIME_VARIABLE}: {other}: unknown (allowed: containerd, which is the default, and embedded)"
            )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_of_a_bed_is_one_that_there_is() {
        assert_eq!(RuntimeKind::named(None), Ok(RuntimeKind::Containerd));
        assert_eq!(RuntimeKind::named(Some("containerd")), Ok(RuntimeKind::Containerd));
        assert!(matches!(RuntimeKind::named(Some("embedded")), Ok(RuntimeKind::Own(_))));
        let refused = RuntimeKind::named(Some("crio")).unwrap_err();
        assert_eq!(refused, "TESTBED_RUNTIME: crio: unknown (allowed: containerd, which is the default, and embedded)");
    }
}
