//! subPath mounts (node-and-resources 6.15).

use std::path::{Component, Path, PathBuf};

use actor::chain;
use contract::volume::{PrepareSubPath, VolumeError};
use ports::host::HostError;

use crate::deps::{Config, Deps};
use crate::layout::{PRIVATE, PodLayout};

/// Makes the path inside of the volume if it is missing (also in one that pods cannot write to, as a kubelet does), and
/// binds it to a place that no container can redirect. Blocks. Answers are vague on purpose: a pod must not learn about the
/// host from them; the log has the rest.
/// `name`: that of the volume's directory, by which a kubelet takes it away with the volume.
pub(crate) fn prepare(deps: &Deps, config: &Config, ask: &PrepareSubPath, name: &str) -> Result<PathBuf, VolumeError> {
    let vague = |what: &str, cause: String| {
        tracing::warn!(pod = %ask.uid, volume = %ask.volume, container = %ask.container, cause, "subPath: {what}");
        VolumeError::new(format!("{what} for volumeMount {:?} of container {:?}", ask.volume, ask.container))
    };
    let inside = Path::new(&ask.sub_path);
    if !inside.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
        let message = format!("subPath {:?} must be relative and must not contain '..'", ask.sub_path);
        return Err(VolumeError::new(message));
    }
    let layout = PodLayout::new(&config.root_dir, &ask.uid)?;
    let target = layout.sub_path(name, &ask.container, ask.mount_index)?;
    let failed = "failed to prepare subPath";
    if let Some(parent) = target.parent() {
        deps.fs.create_dir(parent, PRIVATE).map_err(|e| vague(failed, chain(&e)))?;
    }
    // No look at the path before: a link in the volume could lead the look anywhere on the host.
    let bind = || deps.mounts.bind_within(&ask.volume_path, inside, &target);
    let mut bound = bind();
    if bound.as_ref().is_err_and(HostError::is_not_found) {
        let failed = "failed to create subPath directory";
        let root = deps.fs.stat(&ask.volume_path).map_err(|e| vague(failed, chain(&e)))?;
        let mode = root.map_or(PRIVATE, |s| s.mode);
        deps.fs.create_dir_within(&ask.volume_path, inside, mode).map_err(|e| vague(failed, chain(&e)))?;
        bound = bind();
    }
    bound.map_err(|e| vague(failed, chain(&e)))?;
    Ok(target)
}
