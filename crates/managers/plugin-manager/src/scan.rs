//! What is in the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ports::host::{FileKind, HostFs, HostResult};

use crate::world::SocketId;

/// Sockets and folders that are looked at; the others are left out.
const MOST: usize = 256;
/// How deep folders may lie.
const DEPTH: usize = 8;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// By path.
    pub sockets: BTreeMap<String, SocketId>,
    /// The folder itself and those below it.
    pub folders: BTreeSet<PathBuf>,
    /// There was more than is looked at.
    pub cut: bool,
}

/// Makes the folder if it is missing, and looks at all that is below it. Names that begin with a dot, links and whatever is
/// no socket do not count.
pub(crate) fn scan(fs: &dyn HostFs, registry: &Path) -> HostResult<Found> {
    fs.create_dir(registry, 0o750)?;
    let mut found = Found::default();
    let mut queue = vec![(registry.to_owned(), 0)];
    while let Some((folder, depth)) = queue.pop() {
        let entries = match fs.list_dir(&folder) {
            Ok(entries) => entries,
            // Gone meanwhile.
            Err(e) if depth > 0 && e.is_not_found() => continue,
            Err(e) => return Err(e),
        };
        found.folders.insert(folder.clone());
        for entry in entries.into_iter().filter(|e| !e.name.starts_with('.')) {
            if found.sockets.len() + found.folders.len() + queue.len() > MOST || depth == DEPTH {
                found.cut = true;
                break;
            }
            let path = folder.join(&entry.name);
            let Some(stat) = fs.stat_link(&path)? else { continue };
            match (stat.kind, path.to_str()) {
                (FileKind::Dir, _) => queue.push((path, depth + 1)),
                (FileKind::Socket, Some(name)) => {
                    found.sockets.insert(name.to_owned(), SocketId { made_at: stat.modified, inode: stat.ino });
                }
                _ => {}
            }
        }
    }
    Ok(found)
}
