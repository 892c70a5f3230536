//! Which threads do a piece of work: those of the host's files, unless it may meet a path of users. Such a path may lie on a
//! network file system that hangs, and must not hold up pods that have none.

use std::path::Path;

use actor::Class;
use contract::volume::PrepareSubPath;
use model::core::Pod;
use ports::host::HostResult;

use crate::deps::Deps;
use crate::layout::{EMPTY_DIR, PodLayout};
use crate::spec::{self, Kind};
use crate::tear_down::{self, Whose};

/// Setting these volumes up: a hostPath that is not checked is not touched.
pub(crate) fn of_mount(pod: &Pod, volumes: &[String]) -> Class {
    let touches = |kind: &Kind| matches!(kind, Kind::HostPath { check, .. } if !check.is_empty());
    let mut used = spec::used_volumes(pod).into_iter().filter(|(volume, _)| volumes.contains(&volume.name));
    choose(used.any(|(_, kind)| touches(&kind)))
}

/// Binding a part of a volume. One that was made here is on the node's own disk, and no link leads out of it; but a container
/// may have mounted something in it.
pub(crate) fn of_sub_path(deps: &Deps, layout: &PodLayout, ask: &PrepareSubPath) -> Class {
    let kind = ask.volume_path.strip_prefix(layout.volumes()).ok().and_then(|path| path.iter().next()?.to_str());
    let is_own = kind.is_some_and(tear_down::is_made_here);
    choose(!is_own || is_mounted_below(deps, &ask.volume_path, 1).unwrap_or(true))
}

/// Taking away. Only names and the mount table are read. When they cannot be, the work itself fails, for it begins with them.
pub(crate) fn of_tear_down(deps: &Deps, layout: &PodLayout) -> Class {
    let is_met = match tear_down::whose(&*deps.fs, layout) {
        Ok(Whose::Nobodys) => Ok(false),
        // A volume's own mount is two levels down: kind, name.
        Ok(Whose::Ours) => is_mounted_below(deps, &layout.volumes(), 3),
        Ok(Whose::Users) => Ok(true),
        Err(e) => Err(e),
    };
    match is_met {
        Ok(true) => Class::UserPaths,
        Ok(false) if deps.fs.stat_link(&layout.volumes().join(EMPTY_DIR)).is_ok_and(|s| s.is_some()) => Class::Removals,
        Ok(false) | Err(_) => Class::HostFiles,
    }
}

fn choose(may_meet_users: bool) -> Class {
    if may_meet_users { Class::UserPaths } else { Class::HostFiles }
}

/// Whether something is mounted at least so many levels below a directory.
fn is_mounted_below(deps: &Deps, dir: &Path, levels: usize) -> HostResult<bool> {
    let depth = |at: &Path| at.strip_prefix(dir).ok().map_or(0, |below| below.components().count());
    Ok(deps.mounts.mounts_below(dir)?.iter().any(|point| depth(point) >= levels))
}
