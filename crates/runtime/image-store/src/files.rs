//! Files that are there whole or not at all.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;

/// Begins the name of what is not finished.
pub(crate) const NEW: &str = ".new-";
/// Begins the name of what is being taken away.
pub(crate) const GONE: &str = ".gone-";

/// A path beside `of` that nobody else has.
pub(crate) fn beside(of: &Path, mark: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = of.file_name().unwrap_or_default().to_string_lossy();
    let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    of.with_file_name(format!("{mark}{process}-{next}-{name}"))
}

/// Whether a name means nothing: its writer did not finish.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.starts_with(NEW) || name.starts_with(GONE)
}

/// Writes a file so that after a power cut it is the old one or the new one, whole.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<(), StoreError> {
    put(path, text, true)?;
    sync_folder(path.parent().unwrap_or(path))
}

/// Writes a file so that readers see it whole. After a power cut it may be empty, unless its disk is synced later.
pub(crate) fn write_unsynced(path: &Path, text: &[u8]) -> Result<(), StoreError> {
    put(path, text, false)
}

fn put(path: &Path, text: &[u8], sync: bool) -> Result<(), StoreError> {
    let new = beside(path, NEW);
    let written = step().and_then(|()| File::create(&new)).and_then(|mut file| {
        file.write_all(text)?;
        step()?;
        if sync { file.sync_all() } else { Ok(()) }
    });
    let renamed = written.map_err(StoreError::disk("write", path)).and_then(|()| rename("write", &new, path));
    renamed.inspect_err(|_| {
        // What could not be written is of no use; why it could not is told.
        drop(remove_file(&new));
    })
}

/// Gives a file or folder its name, or another one.
pub(crate) fn rename(what: &'static str, from: &Path, to: &Path) -> Result<(), StoreError> {
    step().and_then(|()| fs::rename(from, to)).map_err(StoreError::disk(what, to))
}

/// Something on disk is about to change. In tests the process may die here, and does nothing any more then.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it fails")]
fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use crate::tests::death::step;

/// Brings renames in a folder to disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    step().and_then(|()| File::open(folder)).and_then(|f| f.sync_all()).map_err(StoreError::disk("sync", folder))
}

/// Brings all that was written to this disk onto it.
pub(crate) fn sync_disk(folder: &Path) -> Result<(), StoreError> {
    let file = step().and_then(|()| File::open(folder)).map_err(StoreError::disk("open", folder))?;
    rustix::fs::syncfs(file).map_err(|e| StoreError::disk("sync", folder)(e.into()))
}

/// What a folder has, by name; none if it is not there.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(StoreError::disk("read", folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(StoreError::disk("read", folder))?.file_name();
        // Ours are all text.
        names.extend(name.into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Takes a file away that may be gone already.
pub(crate) fn remove_file(path: &Path) -> Result<bool, StoreError> {
    match step().and_then(|()| fs::remove_file(path)) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(StoreError::disk("remove", path)(e)),
    }
}

/// Takes a folder away that may be gone already: at once for readers, then file by file.
pub(crate) fn remove_tree(path: &Path) -> Result<(), StoreError> {
    let gone = if path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(GONE)) {
        path.to_owned()
    } else {
        let gone = beside(path, GONE);
        match step().and_then(|()| fs::rename(path, &gone)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(StoreError::disk("remove", path))?,
        }
        gone
    };
    match step().and_then(|()| fs::remove_dir_all(&gone)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::disk("remove", &gone)(e)),
        _ => Ok(()),
    }
}

/// Makes a folder with these permissions.
pub(crate) fn make_folder(path: &Path, mode: u32) -> Result<(), StoreError> {
    let made = step().and_then(|()| DirBuilder::new().mode(mode).create(path));
    // Whatever the umask is.
    let made = made.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    made.map_err(StoreError::disk("make", path))
}

/// Reads a file that may not be there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreError::disk("read", path)(e)),
    }
}

/// Whether a path is a folder, not following links.
pub(crate) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
}
