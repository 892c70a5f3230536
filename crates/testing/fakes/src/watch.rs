//! Changes of a folder as the test makes them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::channel::mpsc;
use ports::host::HostFs;
use ports::watch::{Change, Changes, FolderWatch};

use crate::MemFs;

/// Tells of what the test says changed; changes that nobody watches for are lost, as with inotify. A watch starts where the
/// disk has something.
#[derive(Debug)]
pub struct FakeWatch {
    disk: MemFs,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the path that is watched.
    lines: BTreeMap<PathBuf, mpsc::UnboundedSender<io::Result<Change>>>,
    starts: u32,
    refusals: Vec<io::ErrorKind>,
}

impl FakeWatch {
    /// A watch of this disk.
    #[must_use]
    pub fn new(disk: &MemFs) -> Self {
        Self { disk: disk.clone(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file was written.
    pub fn written(&self, file: &str) {
        self.tell(Change::Written(file.into()));
    }

    /// A file was removed.
    pub fn gone(&self, file: &str) {
        self.tell(Change::Gone(file.into()));
    }

    /// Something changed: told to all who watch something.
    pub fn tell(&self, change: Change) {
        for line in self.state().lines.values() {
            line.unbounded_send(Ok(change.clone())).unwrap_or_default();
        }
    }

    /// The next starts fail so, the last one first.
    pub fn refuse(&self, refusals: &[io::ErrorKind]) {
        self.state().refusals = refusals.to_vec();
    }

    /// How often somebody began to watch.
    #[must_use]
    pub fn starts(&self) -> u32 {
        self.state().starts
    }
}

impl FolderWatch for FakeWatch {
    fn start(&self, path: &Path) -> io::Result<Changes> {
        let mut state = self.state();
        state.starts += 1;
        if let Some(kind) = state.refusals.pop() {
            return Err(kind.into());
        }
        if self.disk.stat(path).map_err(|e| e.source)?.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (line, changes) = mpsc::unbounded();
        state.lines.insert(path.to_owned(), line);
        Ok(changes.boxed_local())
    }
}
