//! Who else has what is mounted for all pods: a copy of it on a path of somebody's own, which would lose its volume.

use std::path::{Path, PathBuf};

use actor::chain;
use ports::host::{HostResult, MountLine, Mounter};

use crate::layout::pods;

/// Where paths begin that this node makes itself, also where its root directory is seen by another name.
const OWN: &str = "plugins/kubernetes.io/";

/// That nobody else has what is at `path`, as a kubelet finds it out before it unmounts a device.
///
/// # Errors
/// Somebody has it, in a kubelet's words, or the mount table cannot be read.
pub(crate) fn check(mounts: &dyn Mounter, root: &Path, path: &Path) -> Result<(), String> {
    let failed = |why: String| format!("GetDeviceMountRefs check failed: {why}");
    let table = mounts.mount_table(root).map_err(|e| failed(chain(&e)))?;
    let others = others(&table, path);
    if others.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = others.iter().map(|other| other.display().to_string()).collect();
    let path = path.display();
    Err(failed(format!("the device mount path \"{path}\" is still mounted by other references [{}]", named.join(" "))))
}

/// Where pods have what is at `path`.
///
/// # Errors
/// The mount table cannot be read.
pub(crate) fn in_pods(mounts: &dyn Mounter, root: &Path, path: &Path) -> HostResult<Vec<PathBuf>> {
    let pods = pods(root);
    Ok(same(&mounts.mount_table(root)?, path).into_iter().filter(|at| at.starts_with(&pods)).collect())
}

/// Where somebody else has it.
fn others(table: &[MountLine], path: &Path) -> Vec<PathBuf> {
    same(table, path).into_iter().filter(|at| !is_own(at, path)).collect()
}

/// Where else the same part of the same file system is mounted. What is below `path` of a mount counts as a part of that, so a directory
/// on which nothing is mounted is had by those who bind it.
fn same(table: &[MountLine], path: &Path) -> Vec<PathBuf> {
    let Some(own) = table.iter().rposition(|line| path.starts_with(&line.at)) else { return Vec::new() };
    let line = &table[own];
    let part = line.part.join(path.strip_prefix(&line.at).unwrap_or(Path::new("")));
    let same =
        table.iter().enumerate().filter(|(at, other)| *at != own && other.device == line.device && other.part == part);
    same.map(|(_, other)| other.at.clone()).collect()
}

/// Whether it is the same path, seen by another name of the root directory.
fn is_own(at: &Path, path: &Path) -> bool {
    let path = path.to_string_lossy();
    let below = path.find(OWN).map_or(&*path, |start| &path[start..]);
    at.to_string_lossy().contains(below)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ports::host::MountLine;

    use super::others;

    fn line(device: &str, part: &str, at: &str) -> MountLine {
        let (device, fs_type) = (device.to_owned(), "ext4".to_owned());
        MountLine {
            at: at.into(),
            part: part.into(),
            source: "/dev/x".to_owned(),
            device,
            fs_type,
            options: String::new(),
        }
    }

    #[test]
    fn a_copy_elsewhere_counts_and_nothing_else_does() {
        let at = "/var/lib/kubelet/plugins/kubernetes.io/csi/d/h/globalmount";
        let staged = || line("8:1", "/", at);
        for (other, is_had) in [
            (line("8:1", "/", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pv/mount"), true),
            (line("8:1", "/", "/srv/copy"), true),
            (line("8:1", "/logs", "/srv/part"), false),
            (line("8:2", "/", "/srv/other"), false),
            (line("8:1", "/", "/mnt/host/plugins/kubernetes.io/csi/d/h/globalmount"), false),
        ] {
            for table in [vec![staged(), other.clone()], vec![other.clone(), staged()]] {
                let found = others(&table, Path::new(at));
                assert_eq!(!found.is_empty(), is_had, "{other:?}");
            }
        }
        assert!(others(&[staged()], Path::new(at)).is_empty() && others(&[], Path::new(at)).is_empty());
    }

    /// As a driver leaves it that binds directories.
    #[test]
    fn a_directory_without_a_mount_is_had_by_who_binds_it() {
        let at = Path::new("/var/lib/kubelet/plugins/kubernetes.io/csi/d/h/globalmount");
        let root = line("8:1", "/", "/");
        let bound = |part: &str| line("8:1", part, "/srv/copy");
        assert_eq!(others(&[root.clone(), bound(at.to_str().unwrap())], at), [Path::new("/srv/copy")]);
        assert!(others(&[root, bound("/var/lib/kubelet")], at).is_empty());
    }
}
