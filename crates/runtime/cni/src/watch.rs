//! Tells when configurations change.

use std::io;
use std::path::Path;

use futures::{Stream, StreamExt};
use inotify::{Inotify, WatchMask};

/// Room for some dozens of events with long names.
const BUFFER: usize = 8 * 1024;

/// One item per change in a folder. Files are seen when their writer closes them or moves them in. The stream ends with the
/// folder.
///
/// # Errors
/// The folder is not there, or cannot be watched.
pub fn changes(folder: &Path) -> io::Result<impl Stream<Item = io::Result<()>> + Send + Unpin + use<>> {
    let inotify = Inotify::init()?;
    let mask = WatchMask::CLOSE_WRITE
        | WatchMask::MOVED_TO
        | WatchMask::MOVED_FROM
        | WatchMask::DELETE
        | WatchMask::DELETE_SELF
        | WatchMask::MOVE_SELF;
    inotify.watches().add(folder, mask)?;
    let events = inotify.into_event_stream(vec![0_u8; BUFFER])?;
    Ok(events.map(|event| event.map(drop)))
}
