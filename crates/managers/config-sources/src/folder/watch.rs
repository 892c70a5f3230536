//! The port that tells of changes in the folder, and inotify behind it.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::Pin;

use futures::{Stream, StreamExt};
use inotify::{Event, EventMask, Inotify, WatchMask};

/// What happened to the watched path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A file was made but perhaps not written yet.
    Created(OsString),
    /// A file was written, moved in, or its attributes changed.
    Written(OsString),
    /// A file was removed or moved away.
    Gone(OsString),
    /// Something changed that no name tells: list everything.
    Everything,
    /// The watched path itself is gone: watch anew.
    PathGone,
}

/// Changes as they come; ends when the watch is lost.
pub type Changes = Pin<Box<dyn Stream<Item = io::Result<Change>>>>;

/// Watches a folder (not what is below it) or a single file.
pub trait FolderWatch: Send + Sync {
    /// Starts to watch. Changes from before are not told: list after this returned.
    ///
    /// # Errors
    /// The path is missing, or the system has no watch to give.
    fn start(&self, path: &Path) -> io::Result<Changes>;
}

/// inotify. Files are read when their writer closes them, so half-written ones are not seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct InotifyWatch;

/// Room for some dozens of events with long names.
const BUFFER: usize = 8 * 1024;

impl FolderWatch for InotifyWatch {
    fn start(&self, path: &Path) -> io::Result<Changes> {
        let inotify = Inotify::init()?;
        let mask = WatchMask::CREATE
            | WatchMask::CLOSE_WRITE
            | WatchMask::ATTRIB
            | WatchMask::MOVED_TO
            | WatchMask::MOVED_FROM
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF;
        inotify.watches().add(path, mask)?;
        let events = inotify.into_event_stream(vec![0_u8; BUFFER])?;
        Ok(Box::pin(events.map(|event| event.map(change))))
    }
}

fn change(event: Event<OsString>) -> Change {
    let gone = EventMask::DELETE_SELF | EventMask::MOVE_SELF | EventMask::IGNORED | EventMask::UNMOUNT;
    if event.mask.intersects(gone) {
        return Change::PathGone;
    }
    match event.name {
        Some(name) if event.mask.contains(EventMask::CREATE) => Change::Created(name),
        Some(name) if event.mask.intersects(EventMask::DELETE | EventMask::MOVED_FROM) => Change::Gone(name),
        Some(name) => Change::Written(name),
        // A single file that is watched itself, or an overflow of the queue.
        None => Change::Everything,
    }
}
