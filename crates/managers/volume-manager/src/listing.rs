//! What is in a directory.

use std::collections::BTreeMap;
use std::path::Path;

use ports::host::{DirEntry, FileKind, HostFs, HostResult};
use projection::atomic::Entry;

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

/// What stands in the root of a volume of files; nothing when it is not there.
pub(crate) fn volume_root(fs: &dyn HostFs, dir: &Path) -> HostResult<BTreeMap<String, Entry>> {
    let mut root = BTreeMap::new();
    for name in names(fs, dir)? {
        let path = dir.join(&name);
        let what = match fs.stat_link(&path)?.map(|s| s.kind) {
            Some(FileKind::Dir) => Entry::Dir,
            Some(FileKind::Symlink) => Entry::Link(fs.read_link(&path)?.to_string_lossy().into_owned()),
            Some(_) => Entry::Other,
            None => continue,
        };
        root.insert(name, what);
    }
    Ok(root)
}
