//! Giving a volume to the pod's group (node-and-resources 6.5).

use std::path::Path;

use ports::host::{FileKind, HostFs};

/// What the group may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    /// Read and write.
    Write,
    /// Read.
    Read,
}

impl Grant {
    /// Bits that are added; a directory can also be entered, and passes its group on.
    const fn bits(self, kind: FileKind) -> u32 {
        let files = match self {
            Grant::Write => 0o660,
            Grant::Read => 0o440,
        };
        if matches!(kind, FileKind::Dir) { files | 0o2110 } else { files }
    }
}

/// Changes everything below, children before their directory. Failures are logged only: a volume with the wrong group is
/// still a volume.
pub(crate) fn give_to_group(fs: &dyn HostFs, path: &Path, gid: u32, grant: Grant) {
    let Ok(Some(stat)) = fs.stat_link(path) else { return };
    if stat.kind == FileKind::Dir {
        for entry in fs.list_dir(path).unwrap_or_default() {
            give_to_group(fs, &path.join(entry.name), gid, grant);
        }
    }
    let mut changed = fs.set_owner(path, None, Some(gid));
    if stat.kind != FileKind::Symlink && changed.is_ok() {
        changed = fs.set_mode(path, stat.mode | grant.bits(stat.kind));
    }
    if let Err(e) = changed {
        tracing::warn!(path = %path.display(), gid, error = %actor::chain(&e), "group of a volume is not as wanted");
    }
}
