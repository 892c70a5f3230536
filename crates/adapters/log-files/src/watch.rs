//! One inotify instance for everybody who follows a log.
//!
//! A folder is watched only while somebody waits for it, and for one event at a time: a container that writes a thousand
//! lines a second costs one event for each time that its readers caught up, not one for each line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Room for some dozens of events.
const BUFFER: usize = 4 * 1024;

/// Tells of changes in folders. Clones share all there is.
#[derive(Clone, Debug)]
pub struct FolderWatch {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Arc<Mutex<State>>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    /// `None`: not started, or there is no inotify.
    watches: Option<Watches>,
    tried: bool,
    folders: HashMap<PathBuf, Folder>,
    armed: HashMap<WatchDescriptor, PathBuf>,
}

#[derive(Debug)]
struct Folder {
    changes: watch::Sender<u64>,
    /// Counted under the lock: of two that leave at a time, one is the last.
    followers: usize,
    /// The watch that waits for the next event.
    armed: Option<WatchDescriptor>,
}

/// Changes of one folder, for one reader.
#[derive(Debug)]
pub struct FolderChanges {
    inner: Arc<Inner>,
    path: PathBuf,
    changes: watch::Receiver<u64>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for FolderWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl FolderWatch {
    /// Takes nothing from the system until somebody waits.
    #[must_use]
    pub fn new() -> Self {
        Self { inner: Arc::new(Inner { state: Arc::default(), reader: Mutex::default() }) }
    }

    /// Never tells of anything: readers are left with looking now and then. For tests.
    #[must_use]
    pub fn blind() -> Self {
        let this = Self::new();
        lock(&this.inner.state).tried = true;
        this
    }

    /// Follows a folder. Call [`FolderChanges::arm`] before looking at what it holds.
    #[must_use]
    pub fn subscribe(&self, folder: &Path) -> FolderChanges {
        let mut state = lock(&self.inner.state);
        let new = || Folder { changes: watch::channel(0).0, followers: 0, armed: None };
        let followed = state.folders.entry(folder.to_owned()).or_insert_with(new);
        followed.followers += 1;
        let changes = followed.changes.subscribe();
        FolderChanges { inner: self.inner.clone(), path: folder.to_owned(), changes }
    }

    /// Folders that somebody follows, and watches that wait for an event.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let state = lock(&self.inner.state);
        (state.folders.len(), state.armed.len())
    }
}

impl Inner {
    /// The task that reads events; once, on the runtime of the first who waits.
    fn start(&self, state: &mut State) {
        if std::mem::replace(&mut state.tried, true) {
            return;
        }
        match Inotify::init().and_then(|i| i.into_event_stream(vec![0_u8; BUFFER])) {
            Ok(events) => {
                state.watches = Some(events.watches());
                *lock(&self.reader) = Some(tokio::spawn(read(events, self.state.clone())));
            }
            Err(e) => tracing::warn!(error = %e, "no inotify: followed logs are looked at once a second"),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(reader) = lock(&self.reader).take() {
            reader.abort();
        }
    }
}

impl FolderChanges {
    /// Makes sure that the next change is told. Whatever is read after this and found unchanged is worth waiting for.
    pub fn arm(&mut self) {
        self.changes.mark_unchanged();
        let mut state = lock(&self.inner.state);
        self.inner.start(&mut state);
        let State { watches: Some(watches), folders, armed, .. } = &mut *state else { return };
        let Some(folder) = folders.get_mut(&self.path) else { return };
        if folder.armed.is_some() {
            return;
        }
        let mask =
            WatchMask::MODIFY | WatchMask::CREATE | WatchMask::MOVED_TO | WatchMask::DELETE_SELF | WatchMask::ONESHOT;
        match watches.add(&self.path, mask) {
            Ok(id) => {
                folder.armed = Some(id.clone());
                armed.insert(id, self.path.clone());
            }
            // The folder is gone, or the system has no watch left: the reader looks now and then anyway.
            Err(e) => tracing::debug!(path = %self.path.display(), error = %e, "folder is not watched"),
        }
    }

    /// Waits for a change since [`FolderChanges::arm`]. Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for FolderChanges {
    fn drop(&mut self) {
        let mut state = lock(&self.inner.state);
        let State { watches, folders, armed, .. } = &mut *state;
        let Some(folder) = folders.get_mut(&self.path) else { return };
        folder.followers -= 1;
        if folder.followers > 0 {
            return;
        }
        let Some(id) = folders.remove(&self.path).and_then(|f| f.armed) else { return };
        armed.remove(&id);
        if let Some(watches) = watches {
            let _gone_already_after_its_event = watches.remove(id);
        }
    }
}

async fn read(mut events: inotify::EventStream<Vec<u8>>, state: Arc<Mutex<State>>) {
    while let Some(event) = events.next().await {
        let mut state = lock(&state);
        match event {
            Ok(event) if !event.mask.contains(EventMask::Q_OVERFLOW) => wake(&mut state, &event.wd),
            Ok(_) => wake_all(&mut state),
            Err(e) => {
                tracing::warn!(error = %e, "inotify failed: followed logs are looked at once a second");
                state.watches = None;
                wake_all(&mut state);
                return;
            }
        }
    }
}

fn wake(state: &mut State, id: &WatchDescriptor) {
    // The system tells the end of each watch too; that one is known.
    let Some(path) = state.armed.remove(id) else { return };
    if let Some(folder) = state.folders.get_mut(&path) {
        folder.armed = None;
        folder.changes.send_modify(|n| *n += 1);
    }
}

fn wake_all(state: &mut State) {
    state.armed.clear();
    for folder in state.folders.values_mut() {
        folder.armed = None;
        folder.changes.send_modify(|n| *n += 1);
    }
}
