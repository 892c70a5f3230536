//! VolumeManager: volumes wanted and volumes present, pod directories.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use actor::AskError;
use model::PodUid;
use model::core::Pod;

/// Why volumes are not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct VolumeError {
    /// Text for people: what the event `FailedMount` shows after its prefix.
    pub message: String,
    /// It only took too long; each try has been told of by an event of its own (pod-lifecycle 3.1 step 10).
    #[serde(default)]
    pub late: bool,
}

impl VolumeError {
    /// A failure that is told of.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), late: false }
    }
}

impl From<AskError> for VolumeError {
    fn from(e: AskError) -> Self {
        Self::new(format!("volume manager: {e}"))
    }
}

/// Create `pods/<uid>`, `volumes`, `plugins` (0750). Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MakePodDirs {
    /// Pod.
    pub uid: PodUid,
}
/// Set up every volume that a container of this pod uses, and wait for it. Idempotent: also refreshes volumes whose
/// content changes, and answers at once when all is in place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MountVolumes {
    /// Pod.
    pub pod: Arc<Pod>,
}
/// Make one subPath inside a mounted volume safe to bind and answer with the host path to use. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnmountVolumes {
    /// Pod.
    pub uid: PodUid,
}
/// Remove the directory of a pod that nobody knows any more: volumes first, never across a mount point, never what cannot
/// be proved ours. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemovePodDir {
    /// Pod.
    pub uid: PodUid,
}

/// One volume, ready to be mounted into containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedVolume {
    /// Path on the host.
    pub host_path: PathBuf,
    /// Force read-only mounts.
    pub read_only: bool,
    /// Ask the runtime to relabel (managed volumes).
    pub selinux_relabel: bool,
}

/// All volumes of a pod, by volume name. Image volumes are not in here: the image manager pulls them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedVolumes {
    /// By volume name.
    pub volumes: BTreeMap<String, MountedVolume>,
    /// Groups that volumes add to every container.
    pub supplemental_groups: Vec<i64>,
}

/// One row of the volume board: a pod that has a directory on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodVolumes {
    /// Volumes that are (or may be) mounted, by name.
    pub present: Vec<String>,
    /// Last failure, if the newest attempt failed.
    pub error: Option<String>,
}

/// What the Node must say that it uses (`volumesInUse`): the attach controller detaches nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumesInUse {
    /// Names of attachable volumes that a pod here wants, or that are or may be there. `None`: nobody has looked yet.
    pub names: Option<BTreeSet<String>>,
}
