//! Giving a volume to the pod's group (node-and-resources 6.5).

use std::cell::Cell;
use std::path::Path;

use model::core::Pod;
use ports::host::{FileKind, FileStat, GroupGrant, HostError, HostFs, HostResult, Links};

use crate::progress::Progress;

/// So many refusals of one volume are told one by one.
const TOLD: u64 = 8;

/// What the group may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grant {
    /// Read and write.
    Write,
    /// Read.
    Read,
}

impl Grant {
    const fn files(self) -> u32 {
        match self {
            Grant::Write => 0o660,
            Grant::Read => 0o440,
        }
    }

    /// A directory can also be entered, and passes its group on.
    const fn dirs(self) -> u32 {
        self.files() | 0o2110
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

/// Gives everything below and the path itself. What the file system refuses is logged only: a volume with the wrong group is still a
/// volume.
///
/// # Errors
/// Something could not be looked at; `path` itself keeps its group then.
pub(crate) fn give_to_group(fs: &dyn HostFs, path: &Path, gid: u32, grant: Grant) -> HostResult<()> {
    give_all(fs, (path, Links::Refuse), gid, grant, (&|| true, &Progress::default())).map(drop)
}

/// As [`give_to_group`], of a volume that may be large and whose path may be a link that an administrator made: it ends when nobody
/// wants it any more. What was not given to its end shows it, as the root comes last. Answers whether it was given.
///
/// # Errors
/// As [`give_to_group`].
pub(crate) fn give_volume(
    fs: &dyn HostFs,
    path: &Path,
    gid: u32,
    policy: GroupPolicy,
    is_live: &dyn Fn() -> bool,
    progress: &Progress,
) -> HostResult<bool> {
    if policy == GroupPolicy::OnRootMismatch && is_given(fs, path, gid) {
        return Ok(true);
    }
    progress.begin();
    give_all(fs, (path, Links::Follow), gid, Grant::Write, (is_live, progress))
}

fn is_given(fs: &dyn HostFs, path: &Path, gid: u32) -> bool {
    let bits = Grant::Write.dirs();
    let given = |s: FileStat| s.kind == FileKind::Dir && s.gid == gid && s.mode & bits == bits;
    fs.stat(path).ok().flatten().is_some_and(given)
}

fn give_all(
    fs: &dyn HostFs,
    (path, links): (&Path, Links),
    gid: u32,
    grant: Grant,
    (is_live, progress): (&dyn Fn() -> bool, &Progress),
) -> HostResult<bool> {
    let refused = Cell::new(0_u64);
    let met = |why: Option<HostError>| {
        progress.count();
        if let Some(why) = why {
            refused.set(refused.get().saturating_add(1));
            if refused.get() <= TOLD {
                let (path, error) = (path.display(), actor::chain(&why));
                tracing::warn!(%path, error, "group of a volume is not as wanted");
            }
        }
        is_live()
    };
    let done = is_live()
        && fs.give_group(path, links, GroupGrant { gid, dir_bits: grant.dirs(), file_bits: grant.files() }, &met)?;
    if refused.get() > TOLD {
        tracing::warn!(path = %path.display(), refused = refused.get(), "group of much of a volume is not as wanted");
    }
    Ok(done)
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
        let give = |path: &str| give_to_group(&fs, Path::new(path), 7, Grant::Write);
        assert!(give("/v").is_err());
        assert_eq!(
            (group("/v"), group("/v/open"), group("/v/closed")),
            (0, 7, 7),
            "who looks at the root sees that it is not done"
        );
        fs.trouble(Path::new("/v/open"), FileTrouble::Fail(Errno::Access));
        assert!(give("/v/open").is_err());
    }

    #[test]
    fn a_file_system_that_refuses_groups_gets_the_bits_all_the_same() {
        let fs = MemFs::default();
        fs.write_file(Path::new("/v/file"), b"of the user", 0o600).unwrap_err();
        fs.create_dir(Path::new("/v"), 0o700).unwrap();
        fs.write_file(Path::new("/v/file"), b"of the user", 0o600).unwrap();
        fs.trouble(Path::new("/v/file"), FileTrouble::FailCalls("chown", Errno::Access));
        give_to_group(&fs, Path::new("/v"), 7, Grant::Write).unwrap();
        let has = |path: &str| fs.stat_link(Path::new(path)).unwrap().map(|s| (s.gid, s.mode)).unwrap();
        assert_eq!((has("/v/file"), has("/v")), ((0, 0o660), (7, 0o2770)));
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
            assert!(give_volume(&fs, root, 7, policy, &|| true, &Progress::default()).unwrap());
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
        let cut = || looks.replace(looks.get() + 1) < 2;
        assert!(
            !give_volume(&fs, Path::new("/v"), 7, GroupPolicy::OnRootMismatch, &cut, &Progress::default()).unwrap()
        );
        let group = |path: &str| fs.stat_link(Path::new(path)).unwrap().unwrap().gid;
        assert_eq!((group("/v/a"), group("/v/c"), group("/v")), (7, 0, 0), "the root comes last");
        assert!(
            give_volume(&fs, Path::new("/v"), 7, GroupPolicy::OnRootMismatch, &|| true, &Progress::default()).unwrap()
        );
        assert_eq!((group("/v/c"), group("/v")), (7, 7));
    }
}
