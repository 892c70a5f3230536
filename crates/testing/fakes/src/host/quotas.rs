//! A file system that counts what is below the directories that were given to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use model::reading::DiskUse;
use ports::host::{HostError, HostResult, ProjectQuotas};

use super::lock;

/// Directories with a project. [`Self::write`] says what is in one.
#[derive(Debug, Default)]
pub struct FakeQuotas {
    dirs: Mutex<BTreeMap<PathBuf, DiskUse>>,
    broken: Mutex<bool>,
}

impl FakeQuotas {
    /// Directories that have a project.
    #[must_use]
    pub fn dirs(&self) -> Vec<PathBuf> {
        lock(&self.dirs).keys().cloned().collect()
    }

    /// From now on what is below the directory takes so much.
    pub fn write(&self, dir: &Path, used: DiskUse) {
        lock(&self.dirs).insert(dir.to_owned(), used);
    }

    /// From now on each change fails, or works again.
    pub fn set_broken(&self, broken: bool) {
        *lock(&self.broken) = broken;
    }

    fn works(&self, op: &'static str, dir: &Path) -> HostResult<()> {
        if *lock(&self.broken) { Err(HostError::new(op, dir, std::io::Error::from_raw_os_error(5))) } else { Ok(()) }
    }
}

impl ProjectQuotas for FakeQuotas {
    fn assign(&self, dir: &Path) -> HostResult<bool> {
        self.works("set project", dir)?;
        lock(&self.dirs).entry(dir.to_owned()).or_default();
        Ok(true)
    }

    fn release(&self, dir: &Path) -> HostResult<()> {
        self.works("release project", dir)?;
        lock(&self.dirs).remove(dir);
        Ok(())
    }

    fn usage(&self, dir: &Path) -> Option<DiskUse> {
        lock(&self.dirs).get(dir).copied()
    }
}
