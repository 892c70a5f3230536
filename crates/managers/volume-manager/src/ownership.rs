//! Giving a volume to the pod's group (node-and-resources 6.5).

use std::path::{Path, PathBuf};

use model::core::Pod;
use ports::host::{DirEntry, FileKind, FileStat, HostFs, HostResult};

use crate::progress::Progress;

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
    give_all(fs, path, gid, grant, (&|| true, &Progress::default()));
}

/// As [`give_to_group`], of a volume that may be large: it ends when nobody wants it any more, and begins anew with the next
/// try, as the root comes last.
pub(crate) fn give_volume(
    fs: &dyn HostFs,
    path: &Path,
    gid: u32,
    policy: GroupPolicy,
    is_live: &dyn Fn() -> bool,
    progress: &Progress,
) {
    if policy == GroupPolicy::Always || !is_given(fs, path, gid) {
        progress.begin();
        give_all(fs, path, gid, Grant::Write, (is_live, progress));
    }
}

fn is_given(fs: &dyn HostFs, path: &Path, gid: u32) -> bool {
    let bits = Grant::Write.bits(FileKind::Dir);
    let given = |s: FileStat| s.kind == FileKind::Dir && s.gid == gid && s.mode & bits == bits;
    fs.stat_link(path).ok().flatten().is_some_and(given)
}

fn give_all(fs: &dyn HostFs, path: &Path, gid: u32, grant: Grant, (is_live, progress): (&dyn Fn() -> bool, &Progress)) {
    warn(path, Walk { fs, gid, grant, is_live, progress, levels: Vec::new() }.give(path));
}

fn warn(path: &Path, done: HostResult<()>) {
    if let Err(e) = done {
        tracing::warn!(path = %path.display(), error = %actor::chain(&e), "group of a volume is not as wanted");
    }
}

/// A way through a volume. It may be as deep as its user likes, so the way up is no stack of calls.
struct Walk<'a> {
    fs: &'a dyn HostFs,
    gid: u32,
    grant: Grant,
    is_live: &'a dyn Fn() -> bool,
    progress: &'a Progress,
    levels: Vec<Level>,
}

/// A directory whose entries are being given.
struct Level {
    path: PathBuf,
    stat: FileStat,
    left: std::vec::IntoIter<DirEntry>,
    listed: HostResult<()>,
}

impl Walk<'_> {
    /// What is below a directory that can be listed is given for itself; the answer is of `path` alone.
    fn give(mut self, path: &Path) -> HostResult<()> {
        let mut done = self.enter(path.to_owned());
        while let Some(level) = self.levels.last_mut() {
            let next = level.left.next().filter(|_| (self.is_live)()).map(|e| level.path.join(e.name));
            if let Some(next) = next {
                warn(&next, self.enter(next.clone()));
            } else if let Some(Level { path, stat, listed, .. }) = self.levels.pop() {
                done = self.set(&path, &stat).and(listed);
                if !self.levels.is_empty() {
                    warn(&path, std::mem::replace(&mut done, Ok(())));
                }
            }
        }
        done
    }

    /// A directory is given after what is in it.
    fn enter(&mut self, path: PathBuf) -> HostResult<()> {
        let Some(stat) = self.fs.stat_link(&path)? else { return Ok(()) };
        if stat.kind != FileKind::Dir {
            return self.set(&path, &stat);
        }
        let (entries, listed) = match self.fs.list_dir(&path) {
            Ok(entries) => (entries, Ok(())),
            Err(e) => (Vec::new(), Err(e)),
        };
        self.levels.push(Level { path, stat, left: entries.into_iter(), listed });
        Ok(())
    }

    fn set(&self, path: &Path, stat: &FileStat) -> HostResult<()> {
        if !(self.is_live)() {
            return Ok(());
        }
        self.progress.count();
        self.fs.set_owner(path, None, Some(self.gid))?;
        if stat.kind != FileKind::Symlink {
            self.fs.set_mode(path, stat.mode | self.grant.bits(stat.kind))?;
        }
        Ok(())
    }
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
        let give = |path: &str| {
            let (progress, levels) = (&Progress::default(), Vec::new());
            let walk = Walk { fs: &fs, gid: 7, grant: Grant::Write, is_live: &|| true, progress, levels };
            walk.give(Path::new(path))
        };
        give("/v").unwrap();
        assert!(give("/v/closed").is_err());
        assert_eq!((group("/v"), group("/v/open"), group("/v/closed")), (7, 7, 7));
        fs.trouble(Path::new("/v/open"), FileTrouble::Fail(Errno::Access));
        assert!(give("/v/open").is_err());
    }

    /// A volume whose root has this group and mode, before it is given to group 7; whether what is in it is given then.
    #[test]
    fn a_volume_is_looked_through_unless_its_root_shows_that_it_was_given() {
        use GroupPolicy::{Always, OnRootMismatch};
        for (policy, group, mode, is_given) in [
            (OnRootMismatch, 7, 0o2770, false),
            (OnRootMismatch, 7, 0o2777, false),
            (OnRootMismatch, 7, 0o770, true),
            (OnRootMismatch, 7, 0o2750, true),
            (OnRootMismatch, 0, 0o2770, true),
            (Always, 7, 0o2770, true),
        ] {
            let fs = MemFs::default();
            let (root, file) = (Path::new("/v"), Path::new("/v/dir/file"));
            fs.create_dir(Path::new("/v/dir"), 0o755).unwrap();
            fs.write_file(file, b"of the user", 0o600).unwrap();
            fs.set_owner(root, None, Some(group)).unwrap();
            fs.set_mode(root, mode).unwrap();
            give_volume(&fs, root, 7, policy, &|| true, &Progress::default());
            let stat = fs.stat_link(file).unwrap().unwrap();
            let want = if is_given { (7, 0o660) } else { (0, 0o600) };
            assert_eq!((stat.gid, stat.mode), want, "{policy:?} {group} {mode:o}");
            assert_eq!(fs.read_file(file, 100).unwrap(), b"of the user");
        }
    }

    #[test]
    fn a_look_through_a_volume_that_was_cut_off_is_begun_anew() {
        let fs = MemFs::default();
        for file in ["a", "b", "c"] {
            fs.create_dir(Path::new("/v"), 0o755).unwrap();
            fs.write_file(&Path::new("/v").join(file), b"", 0o600).unwrap();
        }
        let looks = std::cell::Cell::new(0);
        let cut = || looks.replace(looks.get() + 1) < 3;
        give_volume(&fs, Path::new("/v"), 7, GroupPolicy::OnRootMismatch, &cut, &Progress::default());
        let group = |path: &str| fs.stat_link(Path::new(path)).unwrap().unwrap().gid;
        assert_eq!((group("/v/a"), group("/v/c"), group("/v")), (7, 0, 0), "the root comes last");
        give_volume(&fs, Path::new("/v"), 7, GroupPolicy::OnRootMismatch, &|| true, &Progress::default());
        assert_eq!((group("/v/c"), group("/v")), (7, 7));
    }

    /// A call per level would have to fit the stack at the depth that paths may have; here the stack is as much smaller as the path is.
    #[test]
    fn a_volume_may_be_as_deep_as_its_user_likes() {
        let work = || {
            let fs = MemFs::default();
            let mut deep = PathBuf::from("/v");
            (0..400).for_each(|_| deep.push("d"));
            fs.create_dir(&deep, 0o700).unwrap();
            give_to_group(&fs, Path::new("/v"), 7, Grant::Write);
            assert_eq!(fs.stat_link(&deep).unwrap().unwrap().gid, 7);
        };
        std::thread::Builder::new().stack_size(200 << 10).spawn(work).unwrap().join().unwrap();
    }
}
