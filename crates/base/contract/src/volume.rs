//! VolumeManager: volumes wanted and volumes present, pod directories.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use actor::{AskError, Inlet};
use model::PodUid;
use model::core::Pod;

use crate::view::Board;

/// Why volumes are not as wanted. The text is what the event `FailedMount` shows after its prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct VolumeError {
    /// Text for people.
    pub message: String,
}

impl From<AskError> for VolumeError {
    fn from(e: AskError) -> Self {
        Self { message: format!("volume manager: {e}") }
    }
}

/// Create `pods/<uid>`, `volumes`, `plugins` (0750). Idempotent.
#[derive(Clone, Debug)]
pub struct MakePodDirs {
    /// Pod.
    pub uid: PodUid,
}
/// Set up every volume that a container of this pod uses, and wait for it. Idempotent: also refreshes volumes whose
/// content changes, and answers at once when all is in place.
#[derive(Clone, Debug)]
pub struct MountVolumes {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Make one subPath inside a mounted volume safe to bind and answer with the host path to use. Idempotent.
#[derive(Clone, Debug)]
pub struct PrepareSubPath {
    /// Pod.
    pub uid: PodUid,
    /// Container that mounts it.
    pub container: String,
    /// Volume name.
    pub volume: String,
    /// Root of the volume on the host, as [`MountedVolume::host_path`] says.
    pub volume_path: PathBuf,
    /// Expanded subPath: relative, without `..`.
    pub sub_path: String,
    /// Index of the volumeMount in the container.
    pub mount_index: usize,
}
/// Tear every volume of the pod down and wait for it. Idempotent.
#[derive(Clone, Debug)]
pub struct UnmountVolumes {
    /// Pod.
    pub uid: PodUid,
}
/// Remove the directory of a pod that nobody knows any more: volumes first, never across a mount point, never what cannot
/// be proved ours. Idempotent.
#[derive(Clone, Debug)]
pub struct RemovePodDir {
    /// Pod.
    pub uid: PodUid,
}

message! {
    MakePodDirs => Result<(), VolumeError>,
    MountVolumes => Result<Arc<MountedVolumes>, VolumeError>,
    PrepareSubPath => Result<PathBuf, VolumeError>,
    UnmountVolumes => Result<(), VolumeError>,
    RemovePodDir => Result<(), VolumeError>,
}

/// One volume, ready to be mounted into containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedVolume {
    /// Path on the host.
    pub host_path: PathBuf,
    /// Force read-only mounts.
    pub read_only: bool,
    /// Ask the runtime to relabel (managed volumes).
    pub selinux_relabel: bool,
}

/// All volumes of a pod, by volume name. Image volumes are not in here: the image manager pulls them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountedVolumes {
    /// By volume name.
    pub volumes: BTreeMap<String, MountedVolume>,
    /// Groups that volumes add to every container.
    pub supplemental_groups: Vec<i64>,
}

/// One row of the volume board: a pod that has a directory on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodVolumes {
    /// Volumes that are (or may be) mounted, by name.
    pub present: Vec<String>,
    /// Last failure, if the newest attempt failed.
    pub error: Option<String>,
}

/// How others reach VolumeManager.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each field is the route of the message it is named after")]
pub struct VolumeHandle {
    pub make_pod_dirs: Inlet<MakePodDirs>,
    pub mount_volumes: Inlet<MountVolumes>,
    pub prepare_sub_path: Inlet<PrepareSubPath>,
    pub unmount_volumes: Inlet<UnmountVolumes>,
    pub remove_pod_dir: Inlet<RemovePodDir>,
    pub view: Board<PodUid, PodVolumes>,
}

impl Default for VolumeHandle {
    fn default() -> Self {
        Self {
            make_pod_dirs: Inlet::unbound("VolumeManager.MakePodDirs"),
            mount_volumes: Inlet::unbound("VolumeManager.MountVolumes"),
            prepare_sub_path: Inlet::unbound("VolumeManager.PrepareSubPath"),
            unmount_volumes: Inlet::unbound("VolumeManager.UnmountVolumes"),
            remove_pod_dir: Inlet::unbound("VolumeManager.RemovePodDir"),
            view: Board::new(),
        }
    }
}

protocol! {
    /// What a VolumeManager answers.
    VolumeManagerProtocol for VolumeHandle {
        make_pod_dirs: MakePodDirs,
        mount_volumes: MountVolumes,
        prepare_sub_path: PrepareSubPath,
        unmount_volumes: UnmountVolumes,
        remove_pod_dir: RemovePodDir,
    }
}
