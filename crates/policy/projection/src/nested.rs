//! Directories that other mounts need inside of a volume.

use std::collections::BTreeSet;

use model::core::Pod;
use model::pod;

use crate::path::clean;

#[cfg(test)]
mod tests;

/// Paths below the root of `volume` on which a container mounts something else. The runtime cannot make them itself, as the
/// volume is mounted read-only. Where two are nested only the outer one is in.
#[must_use]
pub fn nested_mount_points(pod: &Pod, volume: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let ephemeral: Vec<_> = pod::ephemeral_containers(pod).map(|(c, _)| c).collect();
    for c in pod::init_containers(pod).iter().chain(pod::regular_containers(pod)).chain(&ephemeral) {
        let mounts = || c.volume_mounts.iter().flatten();
        let all: BTreeSet<String> = mounts().map(|m| clean(&m.mount_path)).collect();
        for root in mounts().filter(|m| m.name == volume).map(|m| clean(&m.mount_path)) {
            let below = all.iter().filter_map(|m| m.strip_prefix(&root)?.strip_prefix('/'));
            let mut outer: Option<&str> = None;
            for inner in below.filter(|p| !p.split('/').any(|part| part == "..")) {
                if outer.is_some_and(|o| inner.strip_prefix(o).is_some_and(|rest| rest.starts_with('/'))) {
                    continue;
                }
                outer = Some(inner);
                found.insert(inner.to_owned());
            }
        }
    }
    found
}
