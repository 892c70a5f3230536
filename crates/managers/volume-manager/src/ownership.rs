//! Giving a volume to the pod's group (node-and-resources 6.5).

use std::path::Path;

use model::core::Pod;
use ports::host::{FileKind, FileStat, HostFs, HostResult};

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

/// When a volume is given to the group at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupPolicy {
    Always,
    /// Unless its root shows that it was.
    OnRootMismatch,
}

impl GroupPolicy {
    /// `fsGroupChangePolicy`.
    pub(crate) fn of(pod: &Pod) -> Self {
        let context = pod.spec.as_ref().and_then(|s| s.security_context.as_ref());
        match context.and_then(|c| c.fs_group_change_policy.as_deref()) {
            Some("OnRootMismatch") => Self::OnRootMismatch,
            _ => Self::Always,
        }
    }
}

/// Changes everything below, children before their directory. Failures are logged only: a volume with the wrong group is
/// still a volume.
pub(crate) fn give_to_group(fs: &dyn HostFs, path: &Path, gid: u32, grant: Grant) {
    give_all(fs, path, gid, grant, &|| true);
}

/// As [`give_to_group`], of a volume that may be large: it ends when nobody wants it any more, and begins anew with the next
/// try, as the root comes last.
pub(crate) fn give_volume(fs: &dyn HostFs, path: &Path, gid: u32, policy: GroupPolicy, is_live: &dyn Fn() -> bool) {
    if policy == GroupPolicy::Always || !is_given(fs, path, gid) {
        give_all(fs, path, gid, Grant::Write, is_live);
    }
}

fn is_given(fs: &dyn HostFs, path: &Path, gid: u32) -> bool {
    let bits = Grant::Write.bits(FileKind::Dir);
    let given = |s: FileStat| s.kind == FileKind::Dir && s.gid == gid && s.mode & bits == bits;
    fs.stat_link(path).ok().flatten().is_some_and(given)
}

fn give_all(fs: &dyn HostFs, path: &Path, gid: u32, grant: Grant, is_live: &dyn Fn() -> bool) {
    if let Err(e) = give(fs, path, gid, grant, is_live) {
        tracing::warn!(path = %path.display(), gid, error = %actor::chain(&e), "group of a volume is not as wanted");
    }
}

/// What is below a directory that can be listed is given for itself; the answer is of `path` alone.
fn give(fs: &dyn HostFs, path: &Path, gid: u32, grant: Grant, is_live: &dyn Fn() -> bool) -> HostResult<()> {
    let Some(stat) = fs.stat_link(path)? else { return Ok(()) };
    let mut listed = Ok(());
    if stat.kind == FileKind::Dir {
        match fs.list_dir(path) {
            Ok(entries) => entries
                .iter()
                .take_while(|_| is_live())
                .for_each(|e| give_all(fs, &path.join(&e.name), gid, grant, is_live)),
            Err(e) => listed = Err(e),
        }
    }
    if !is_live() {
        return Ok(());
    }
    fs.set_owner(path, None, Some(gid))?;
    if stat.kind != FileKind::Symlink {
        fs.set_mode(path, stat.mode | grant.bits(stat.kind))?;
    }
    listed
}

#[cfg(test)]
mod tests {
    use fakes::MemFs;
    use fakes::files::{Errno, FileTrouble};

    use super::*;

    #[test]
    fn what_cannot_be_looked_at_is_a_failure_and_the_rest_is_given_all_the_same() {
        let fs = MemFs::default();
        for dir in ["/v/closed", "/v/open"] {
            fs.create_dir(Path::new(dir), 0o700).unwrap();
        }
        let group = |path: &str| fs.stat_link(Path::new(path)).unwrap().unwrap().gid;
        fs.trouble(Path::new("/v/closed"), FileTrouble::FailCalls("readdir", Errno::Access));
        give(&fs, Path::new("/v"), 7, Grant::Write, &|| true).unwrap();
        assert!(give(&fs, Path::new("/v/closed"), 7, Grant::Write, &|| true).is_err());
        assert_eq!((group("/v"), group("/v/open"), group("/v/closed")), (7, 7, 7));
        fs.trouble(Path::new("/v/open"), FileTrouble::Fail(Errno::Access));
        assert!(give(&fs, Path::new("/v/open"), 7, Grant::Write, &|| true).is_err());
    }
}
