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

/// The cgroup of sandbox or container `id` below `parent`: where a path leads, or the scope of that name in a systemd slice, which may be told by its
/// name alone. `None` without a parent.
#[must_use]
pub fn cgroup_of(parent: &str, id: &str) -> Option<String> {
    let path = cgroup_path(parent, id)?;
    if !path.contains(':') {
        return Some(path);
    }
    Some(format!("{}/{SCOPE_PREFIX}-{id}.scope", slice_of(parent)))
}

/// Where the cgroup of a systemd slice is, by its name, whatever path it is told by: `/a.slice/a-b.slice` for `a-b.slice` (systemd.slice(5)). What is
/// none stays as it is.
#[must_use]
pub fn slice_of(parent: &str) -> String {
    let parent = parent.trim_end_matches('/');
    let name = parent.rsplit('/').next().unwrap_or_default();
    match name.strip_suffix(".slice") {
        None => parent.to_owned(),
        // The root of all.
        Some("-") => String::new(),
        Some(stem) => {
            let ends = stem.match_indices('-').map(|(at, _)| at).chain([stem.len()]);
            ends.map(|end| format!("/{}.slice", &stem[..end])).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_in_those_that_its_name_begins_with() {
        for (parent, want) in [
            ("/kubepods.slice/kubepods-podu.slice", "/kubepods.slice/kubepods-podu.slice/cri-containerd-i.scope"),
            ("kubepods-podu.slice", "/kubepods.slice/kubepods-podu.slice/cri-containerd-i.scope"),
            ("a.slice", "/a.slice/cri-containerd-i.scope"),
            ("/a-b.slice", "/a.slice/a-b.slice/cri-containerd-i.scope"),
            ("a.slice/a-b.slice/", "/a.slice/a-b.slice/cri-containerd-i.scope"),
            ("-.slice", "/cri-containerd-i.scope"),
            ("/pods/pod/", "/pods/pod/i"),
        ] {
            assert_eq!(cgroup_of(parent, "i").as_deref(), Some(want), "{parent}");
        }
        assert_eq!(cgroup_of("", "i"), None);
    }
}
