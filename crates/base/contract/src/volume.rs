//! VolumeManager: volumes wanted and volumes present, pod directories.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use actor::AskError;
use model::core::Pod;
use model::{PodUid, Timestamp};

/// Why volumes are not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct VolumeError {
    /// Text for people: what the event `FailedMount` shows after its prefix.
    pub message: String,
    /// It only took too long; each try has been told of by an event of its own (pod-lifecycle 3.1 step 10).
    #[serde(default)]
    pub late: bool,
    /// The node has no place for another attached volume: the pod is to be refused, for [`ATTACH_LIMIT`].
    #[serde(default)]
    pub refused: bool,
}

/// Why a pod is refused whose volume finds no place on the node (node-and-resources 6.2).
pub const ATTACH_LIMIT: &str = "VolumeAttachmentLimitExceeded";

impl VolumeError {
    /// A failure that is told of.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), late: false, refused: false }
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
/// The ids of the host that stand for the users of this pod (`hostUsers: false`): those that it has already, else some that
/// no other pod has. They are kept until [`ReleaseUserNamespace`] or [`RemovePodDir`]. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AssignUserNamespace {
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
/// A pod starts soon that has claims: what these stand for may be asked for before its worker asks for its volumes, which takes a
/// request or two. Nobody needs an answer: whoever does not hear of it asks later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExpectVolumes {
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
/// No process of the pod is left: its ids may be given to another one. Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReleaseUserNamespace {
    /// Pod.
    pub uid: PodUid,
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

/// What is known of volumes: those that pods want, and those of CSI drivers that are, or may be, on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListVolumes;

/// How far a volume is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum VolumeStage {
    /// Nothing of it is here yet. Also what a stage is read as that is not known here.
    #[default]
    Waiting,
    /// It may be here: a call is under way, or nobody knows what became of one.
    Uncertain,
    /// Its driver made it ready on this node; this pod does not have it.
    Staged,
    /// The pod has it.
    Mounted,
    /// No pod wants it any more: it is being taken away.
    Leaving,
    /// What is on the disk does not say which volume it is.
    Unreadable,
}
model::tolerant!(VolumeStage, else VolumeStage::Waiting);

/// One volume of one pod, or one of a driver that no pod has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeRow {
    /// The pod; `None`: no pod has it.
    pub pod: Option<PodUid>,
    /// Name in the pod, as far as it is known.
    pub volume: String,
    /// `csi`, `local`, `hostPath`, `emptyDir`, ...; empty: not known yet.
    pub kind: String,
    /// CSI driver, or the server of an NFS volume; empty: none, or not known yet.
    pub driver: String,
    /// What the driver calls it.
    pub handle: String,
    /// Claim that it is bound to, in the pod's namespace; empty: none.
    pub claim: String,
    /// Where it is on this node: its directory, or what its device is bound on.
    pub path: Option<PathBuf>,
    /// A device without a file system (`volumeMode: Block`).
    pub raw: bool,
    /// How far it is.
    pub stage: VolumeStage,
    /// Since when, where that was seen.
    pub since: Option<Timestamp>,
    /// Why the latest try on it failed, if it did.
    pub error: Option<String>,
    /// The call to its driver that is under way.
    pub call: Option<VolumeCall>,
}

/// A call to a driver that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeCall {
    /// `NodeStageVolume`, ...
    pub name: String,
    /// Since when.
    pub since: Timestamp,
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

/// One raw volume, ready to be given to containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedDevice {
    /// Path on the host: a link to the device.
    pub host_path: PathBuf,
    /// Containers may only read it.
    pub read_only: bool,
}

/// All volumes of a pod, by volume name. Image volumes are not in here: the image manager pulls them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedVolumes {
    /// By volume name.
    pub volumes: BTreeMap<String, MountedVolume>,
    /// Raw volumes (`volumeMode: Block`), by volume name.
    #[serde(default)]
    pub devices: BTreeMap<String, MappedDevice>,
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
