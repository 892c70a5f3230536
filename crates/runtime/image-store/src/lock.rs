//! One process writes at a time; within it many may.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::held::{Held, Holder};

#[derive(Debug, Default)]
struct State {
    /// Writers in this process.
    writers: usize,
    /// One of them is waiting for other processes.
    asking: bool,
    file: Option<File>,
}

/// The lock of a store.
#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Becomes a writer. The first one of this process does `first` before others may follow: until then nobody else is under way with
    /// anything.
    ///
    /// # Errors
    /// Another process writes for longer than `wait`; or those of `first`.
    pub(crate) fn enter(
        &self,
        what: &str,
        wait: Duration,
        first: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut state = self.state();
        loop {
            if state.writers > 0 {
                state.writers += 1;
                return Ok(());
            }
            if !state.asking {
                break;
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.held(begun));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        state.asking = true;
        drop(state);
        let taken = self.take(what, wait.saturating_sub(begun.elapsed()));
        let taken = taken.and_then(|file| if file.is_some() { first().map(|()| file) } else { Ok(file) });
        let mut state = self.state();
        state.asking = false;
        self.changed.notify_all();
        match taken? {
            Some(file) => {
                state.file = Some(file);
                state.writers = 1;
                Ok(())
            }
            None => Err(self.held(begun)),
        }
    }

    /// Is no writer any more.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.writers -= 1;
        if state.writers == 0 {
            state.file = None;
        }
    }

    fn held(&self, begun: Instant) -> StoreError {
        Held { by: holder(&self.path), waited: begun.elapsed() }.into()
    }

    fn take(&self, what: &str, wait: Duration) -> Result<Option<File>, StoreError> {
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path);
        let file = open().map_err(StoreError::disk("open", &self.path))?;
        let taken = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Some(file),
            Err(Errno::WOULDBLOCK) if wait.is_zero() => None,
            Err(Errno::WOULDBLOCK) => waited_for(file, FlockOperation::LockExclusive, wait)?,
            Err(e) => return Err(StoreError::disk("lock", &self.path)(e.into())),
        };
        if let Some(mut file) = taken.as_ref() {
            let by = Holder { pid: std::process::id(), what: what.to_owned() };
            let text = serde_json::to_vec(&by).unwrap_or_default();
            let told = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(&text));
            told.map_err(StoreError::disk("write", &self.path))?;
        }
        Ok(taken)
    }
}

/// How long who decides what is garbage may take; it takes milliseconds.
const BRIEFLY: Duration = Duration::from_secs(10);

/// Keeps processes apart of which one decides what is garbage (`alone`) and others begin to need something. Given back when it is dropped.
pub(crate) fn briefly(root: &Path, alone: bool) -> Result<File, StoreError> {
    let path = root.join("collecting");
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = open.map_err(StoreError::disk("open", &path))?;
    let (try_it, wait) = match alone {
        true => (FlockOperation::NonBlockingLockExclusive, FlockOperation::LockExclusive),
        false => (FlockOperation::NonBlockingLockShared, FlockOperation::LockShared),
    };
    match flock(&file, try_it) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => {
            let taken = waited_for(file, wait, BRIEFLY)?;
            taken.ok_or_else(|| Held { by: None, waited: BRIEFLY }.into())
        }
        Err(e) => Err(StoreError::disk("lock", &path)(e.into())),
    }
}

/// The kernel wakes who waits, and nobody can wait with a deadline: a thread does. When it comes too late it lets go at once.
fn waited_for(file: File, operation: FlockOperation, wait: Duration) -> Result<Option<File>, StoreError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let name = std::thread::Builder::new().name("image-store-lock".to_owned());
    let thread = name.spawn(move || {
        let taken = flock(&file, operation).map(|()| file);
        // Nobody waits any more: the file closes here.
        drop(sender.send(taken));
    });
    thread.map_err(StoreError::disk("wait for", Path::new("lock")))?;
    match receiver.recv_timeout(wait) {
        Ok(taken) => taken.map(Some).map_err(|e| StoreError::disk("lock", Path::new("lock"))(e.into())),
        Err(_) => Ok(None),
    }
}

fn holder(path: &Path) -> Option<Holder> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(4096).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}
