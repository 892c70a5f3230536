//! Giving a tree to a group by the other calls of a file system, so that each of these may be in trouble.

use std::path::{Path, PathBuf};

use ports::host::{DirEntry, FileKind, GroupGrant, HostError, HostFs, HostResult, Met};

/// [`HostFs::give_group`] of file systems that nobody else changes meanwhile.
///
/// # Errors
/// The first thing that could not be looked at.
pub fn give_group_by_path(fs: &dyn HostFs, path: &Path, grant: GroupGrant, met: &Met<'_>) -> HostResult<bool> {
    let mut unseen = None;
    // Each path twice: on the way down, and when all below it is done.
    let mut left = vec![(path.to_owned(), false)];
    while let Some((at, is_done)) = left.pop() {
        match one(fs, &at, grant, is_done) {
            Ok(Seen::Gone) => {}
            Ok(Seen::Below(entries)) => {
                left.push((at, true));
                match entries {
                    Ok(entries) => left.extend(entries.into_iter().rev().map(|entry| (entry, false))),
                    Err(e) => unseen = unseen.or(Some(e)),
                }
            }
            Ok(Seen::Given(_)) if at == path && unseen.is_some() => {}
            Ok(Seen::Given(change)) => {
                if !met(change(fs).err()) {
                    return Ok(false);
                }
            }
            Err(e) => {
                unseen = unseen.or(Some(e));
            }
        }
    }
    unseen.map_or(Ok(true), Err)
}

type Change = Box<dyn FnOnce(&dyn HostFs) -> Result<(), HostError>>;

enum Seen {
    Gone,
    Below(HostResult<Vec<PathBuf>>),
    Given(Change),
}

fn one(fs: &dyn HostFs, at: &Path, grant: GroupGrant, is_done: bool) -> HostResult<Seen> {
    let Some(stat) = fs.stat_link(at)? else { return Ok(Seen::Gone) };
    let is_dir = stat.kind == FileKind::Dir;
    if is_dir && !is_done {
        let paths = |entries: Vec<DirEntry>| entries.into_iter().map(|entry| at.join(entry.name)).collect();
        return Ok(Seen::Below(fs.list_dir(at).map(paths)));
    }
    let at = at.to_owned();
    Ok(Seen::Given(Box::new(move |fs| {
        let given = if stat.gid == grant.gid { Ok(()) } else { fs.set_owner(&at, None, Some(grant.gid)) };
        let mode = stat.mode | if is_dir { grant.dir_bits } else { grant.file_bits };
        let set = if stat.kind == FileKind::Symlink || mode == stat.mode { Ok(()) } else { fs.set_mode(&at, mode) };
        given.and(set)
    })))
}
