//! Giving a volume to the pod's group (node-and-resources 6.5).

use std::path::Path;

use ports::host::{FileKind, HostFs};

/// Group may read and write; in a directory also enter, and pass the group on.
const FILE: u32 = 0o660;
const DIR: u32 = 0o2770;

/// Changes everything below, children before their directory. Failures are logged only: a volume with the wrong group is
/// still a volume.
pub(crate) fn give_to_group(fs: &dyn HostFs, path: &Path, gid: u32) {
    let Ok(Some(stat)) = fs.stat_link(path) else { return };
    if stat.kind == FileKind::Dir {
        for entry in fs.list_dir(path).unwrap_or_default() {
            give_to_group(fs, &path.join(entry.name), gid);
        }
    }
    let mut changed = fs.set_owner(path, None, Some(gid));
    if stat.kind != FileKind::Symlink && changed.is_ok() {
        let more = if stat.kind == FileKind::Dir { DIR } else { FILE };
        changed = fs.set_mode(path, stat.mode | more);
    }
    if let Err(e) = changed {
        tracing::warn!(path = %path.display(), gid, error = %actor::chain(&e), "group of a volume is not as wanted");
    }
}
