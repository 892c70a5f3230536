//! Where things are below the root directory (node-and-resources 6.1).

use std::path::{Path, PathBuf};

use contract::volume::VolumeError;
use model::PodUid;

/// Directory name of emptyDir volumes.
pub(crate) const EMPTY_DIR: &str = "kubernetes.io~empty-dir";
/// Directory name of configMap volumes.
pub(crate) const CONFIG_MAP: &str = "kubernetes.io~configmap";
/// Directory name of secret volumes.
pub(crate) const SECRET: &str = "kubernetes.io~secret";
/// Directory name of projected volumes.
pub(crate) const PROJECTED: &str = "kubernetes.io~projected";
/// Directory name of downwardAPI volumes.
pub(crate) const DOWNWARD_API: &str = "kubernetes.io~downward-api";
/// Directory name of volumes of CSI drivers.
pub(crate) const CSI: &str = "kubernetes.io~csi";
/// Directory name of directories of this node that were set aside.
pub(crate) const LOCAL_VOLUME: &str = "kubernetes.io~local-volume";
/// Directory name of directories that servers share.
pub(crate) const NFS: &str = "kubernetes.io~nfs";
/// The kinds that are kept inside of an emptyDir.
pub(crate) const WRAPPED: [&str; 4] = [CONFIG_MAP, SECRET, PROJECTED, DOWNWARD_API];

/// Mode of every directory that only this node looks into.
pub(crate) const PRIVATE: u32 = 0o750;

/// Paths of one pod. Made only of names that cannot lead elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct PodLayout {
    root: PathBuf,
    uid: PodUid,
    pod: PathBuf,
}

impl PodLayout {
    /// # Errors
    /// The UID is no plain name.
    pub(crate) fn new(root: &Path, uid: &PodUid) -> Result<Self, VolumeError> {
        Ok(Self { root: root.to_owned(), uid: uid.clone(), pod: pods(root).join(plain(uid.as_str())?) })
    }

    /// Root directory of the node.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn uid(&self) -> &str {
        self.uid.as_str()
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.pod
    }

    pub(crate) fn volumes(&self) -> PathBuf {
        self.pod.join("volumes")
    }

    pub(crate) fn plugins(&self) -> PathBuf {
        self.pod.join("plugins")
    }

    /// Which ids the pod's users are (`hostUsers: false`).
    pub(crate) fn user_namespace(&self) -> PathBuf {
        user_namespace(&self.pod)
    }

    pub(crate) fn sub_paths(&self) -> PathBuf {
        self.pod.join("volume-subpaths")
    }

    pub(crate) fn block_devices(&self) -> PathBuf {
        self.pod.join("volumeDevices")
    }

    /// Directory of one volume.
    pub(crate) fn volume(&self, plugin: &str, name: &str) -> Result<PathBuf, VolumeError> {
        Ok(self.volumes().join(plain(plugin)?).join(plain(name)?))
    }

    /// Name of the volume that containers are given at this path; `None`: it is none that has a name in the pod's directory.
    pub(crate) fn volume_at(&self, path: &Path) -> Option<String> {
        let below = [self.volumes(), self.block_devices()].into_iter().find_map(|all| path.strip_prefix(all).ok())?;
        below.iter().nth(1)?.to_str().map(ToOwned::to_owned)
    }

    /// Directory that holds the marker of a volume that is set up; its removal takes the marker back. What holds API objects
    /// shows by the files themselves that it is whole; a kubelet's has a marker all the same.
    pub(crate) fn marker_dir(&self, plugin: &str, name: &str) -> Result<PathBuf, VolumeError> {
        let name = plain(name)?;
        let name = if plugin == EMPTY_DIR { name.to_owned() } else { format!("wrapped_{name}") };
        Ok(self.plugins().join(EMPTY_DIR).join(name))
    }

    /// Bind target of a subPath.
    pub(crate) fn sub_path(&self, volume: &str, container: &str, index: usize) -> Result<PathBuf, VolumeError> {
        Ok(self.sub_paths().join(plain(volume)?).join(plain(container)?).join(index.to_string()))
    }
}

/// The marker itself, in its directory.
pub(crate) fn marker(dir: &Path) -> PathBuf {
    dir.join("ready")
}

/// The file beside a pod's volumes that says which ids its users are.
pub(crate) fn user_namespace(pod: &Path) -> PathBuf {
    pod.join("userns")
}

/// Directory of all pods.
pub(crate) fn pods(root: &Path) -> PathBuf {
    root.join("pods")
}

/// A name that is one path component and nothing else.
pub(crate) fn plain(name: &str) -> Result<&str, VolumeError> {
    let fine = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']) && name.len() <= 255;
    if fine { Ok(name) } else { Err(VolumeError::new(format!("{name:?} cannot be the name of a directory"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_told_by_the_path_that_containers_are_given() {
        let layout = PodLayout::new(Path::new("/kubelet"), &PodUid::from("u")).unwrap();
        for (path, name) in [
            ("/kubelet/pods/u/volumes/kubernetes.io~empty-dir/v", Some("v")),
            ("/kubelet/pods/u/volumes/kubernetes.io~csi/pv~1/mount", Some("pv~1")),
            ("/kubelet/pods/u/volumeDevices/kubernetes.io~csi/raw", Some("raw")),
            ("/kubelet/pods/other/volumes/kubernetes.io~empty-dir/v", None),
            ("/srv/data", None),
        ] {
            assert_eq!(layout.volume_at(Path::new(path)).as_deref(), name, "{path}");
        }
    }
}
