//! inotify behind the port that tells of changes in the folder.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use futures::StreamExt;
use inotify::{Event, EventMask, Inotify, WatchMask};
use ports::watch::{Change, Changes, FolderWatch};

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
        Ok(events.map(|event| event.map(change)).boxed_local())
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
        Some(name) if event.mask.contains(EventMask::ATTRIB) => Change::Touched(name),
        Some(name) => Change::Written(name),
        // A single file that is watched itself, or an overflow of the queue.
        None => Change::Everything,
    }
}
