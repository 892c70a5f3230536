//! Where a container's cgroup is.

/// What systemd scopes of containers begin with. The name that readers of cgroups know (`host-linux`), containerd's.
const SCOPE_PREFIX: &str = "cri-containerd";

/// The `cgroupsPath` of container `id` below `parent`: `<slice>:cri-containerd:<id>` where the parent is a systemd slice, else
/// a path. `None` without a parent: the OCI runtime chooses.
#[must_use]
pub fn cgroup_path(parent: &str, id: &str) -> Option<String> {
    if parent.is_empty() {
        return None;
    }
    let last = parent.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if last.ends_with(".slice") {
        return Some(format!("{last}:{SCOPE_PREFIX}:{id}"));
    }
    Some(format!("{}/{id}", parent.trim_end_matches('/')))
}
