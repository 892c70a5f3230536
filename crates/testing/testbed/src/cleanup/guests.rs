//! Removing what a guest leaves: a folder. Its processes end with their owner, by the kernel.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::BedError;
use crate::error::file;
use crate::process::ProcessId;

/// Every guest's folder starts with this.
pub(crate) const GUEST_PREFIX: &str = "bosun-guest-";
/// Names the owner of a folder.
const OWNER: &str = "owner";

/// Folders of guests of this process that are not removed yet.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn live() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    LIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Notes that the folder is this process's.
pub(crate) fn own_guest(dir: &Path) -> Result<(), BedError> {
    live().push(dir.to_owned());
    let owner = i32::try_from(std::process::id()).ok().and_then(ProcessId::of);
    let owner = owner.map(|o| format!("{} {}", o.pid, o.start_ticks)).unwrap_or_default();
    file("write", &dir.join(OWNER), std::fs::write(dir.join(OWNER), owner))
}

/// Removes the folder of a guest that is off.
pub(crate) fn remove_guest(dir: &Path) -> Result<(), String> {
    live().retain(|d| d != dir);
    std::fs::remove_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))
}

/// Removes the folders of all guests of this process, which is about to end, and they with it.
pub(super) fn remove_all() {
    for dir in std::mem::take(&mut *live()) {
        let _ = std::fs::remove_dir_all(dir);
    }
}

/// Removes folders of guests in `parent` whose owner no longer lives.
pub(crate) fn sweep_guests(parent: &Path) {
    let folders = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for dir in folders.filter(|e| e.file_name().to_string_lossy().starts_with(GUEST_PREFIX)).map(|e| e.path()) {
        let text = std::fs::read_to_string(dir.join(OWNER)).unwrap_or_default();
        let mut words = text.split(' ').filter_map(|w| w.parse::<u64>().ok());
        let (Some(pid), Some(start_ticks)) = (words.next(), words.next()) else { continue };
        if i32::try_from(pid).is_ok_and(|pid| !(ProcessId { pid, start_ticks }).alive()) {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
