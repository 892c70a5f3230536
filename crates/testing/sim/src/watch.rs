//! Changes of the manifest folder as the test makes them.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use config_sources::folder::{Change, Changes, FolderWatch};
use fakes::MemFs;
use futures::StreamExt as _;
use ports::host::HostFs;
use tokio::sync::mpsc;

type Line = mpsc::Sender<io::Result<Change>>;

/// A watch that tells what [`SimWatch::written`] and [`SimWatch::gone`] say; changes that nobody watches for are lost, as
/// with inotify.
#[derive(Debug)]
pub struct SimWatch {
    files: MemFs,
    line: Mutex<Option<Line>>,
}

impl SimWatch {
    pub(crate) fn new(files: &MemFs) -> Self {
        Self { files: files.clone(), line: Mutex::default() }
    }

    /// A file was written.
    pub fn written(&self, file: &str) {
        self.tell(Change::Written(OsString::from(file)));
    }

    /// A file was removed.
    pub fn gone(&self, file: &str) {
        self.tell(Change::Gone(OsString::from(file)));
    }

    fn tell(&self, change: Change) {
        if let Some(line) = &*self.line.lock().unwrap_or_else(PoisonError::into_inner) {
            line.try_send(Ok(change)).unwrap_or_default();
        }
    }
}

impl FolderWatch for SimWatch {
    fn start(&self, path: &Path) -> io::Result<Changes> {
        if self.files.stat(path).map_err(|e| e.source)?.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (tx, mut rx) = mpsc::channel(1024);
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = Some(tx);
        Ok(futures::stream::poll_fn(move |cx| rx.poll_recv(cx)).boxed_local())
    }
}
