//! What is in a directory.

use std::path::Path;

use ports::host::{DirEntry, HostFs, HostResult};

/// What is in a directory; nothing when it is not there. One that cannot be read is not empty.
pub(crate) fn entries(fs: &dyn HostFs, path: &Path) -> HostResult<Vec<DirEntry>> {
    match fs.list_dir(path) {
        Err(e) if e.is_not_found() => Ok(Vec::new()),
        other => other,
    }
}

/// Names in a directory.
pub(crate) fn names(fs: &dyn HostFs, path: &Path) -> HostResult<Vec<String>> {
    Ok(entries(fs, path)?.into_iter().map(|e| e.name).collect())
}

/// Names of directories in a directory.
pub(crate) fn dirs(fs: &dyn HostFs, path: &Path) -> HostResult<Vec<String>> {
    Ok(entries(fs, path)?.into_iter().filter(|e| e.is_dir).map(|e| e.name).collect())
}
