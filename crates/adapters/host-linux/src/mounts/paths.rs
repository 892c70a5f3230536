//! Paths as the kernel tells of them.

use std::path::{Path, PathBuf};

/// The path by which the kernel tells of what is mounted on this one: no link leads to it. Only its parent is looked at: what is
/// mounted there may hang.
pub(super) fn real(path: &Path) -> PathBuf {
    let led = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    led().unwrap_or_else(|| path.to_owned())
}
