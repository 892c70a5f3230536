//! Changes in a folder, as they happen.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use futures::stream::LocalBoxStream;

/// What happened to the watched path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A file was made but perhaps not written yet.
    Created(OsString),
    /// A file was written whole, or moved in.
    Written(OsString),
    /// A file's attributes changed: it may be readable now.
    Touched(OsString),
    /// A file was removed or moved away.
    Gone(OsString),
    /// Something changed that no name tells: list everything.
    Everything,
    /// The watched path itself is gone: watch anew.
    PathGone,
}

/// Changes as they come; ends when the watch is lost.
pub type Changes = LocalBoxStream<'static, io::Result<Change>>;

/// Watches a folder (not what is below it) or a single file.
pub trait FolderWatch: Send + Sync {
    /// Starts to watch. Changes from before are not told: list after this returned.
    ///
    /// # Errors
    /// The path is missing, or the system has no watch to give.
    fn start(&self, path: &Path) -> io::Result<Changes>;
}
