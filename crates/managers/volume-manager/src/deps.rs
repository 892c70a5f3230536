//! What VolumeManager is made with, and what each piece of its work holds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use contract::Crew;
use contract::board::{BoardPoster, BoardReader, ValuePoster, ValueReader};
use contract::node::NodeView;
use contract::objects::ObjectVersion;
use contract::plugin::CsiDriver;
use contract::volume::{PodVolumes, VolumesInUse};
use model::PodUid;
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::object::ObjectRef;
use ports::api::ApiServer;
use ports::csi::CsiNode;
use ports::host::{HostFs, Mounter, ProjectQuotas};
use volume_plan::selinux::SeLinux;

use crate::desired::DesiredVolumes;
use crate::registry::Volumes;
use crate::user_ids::{IdRules, UserIds};

/// Order among the effects on one pod; made once for the life of the node.
pub type Serial = ::actor::Serial<model::PodUid>;

/// Settings.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Root directory of the node, `/var/lib/kubelet` for a kubelet.
    pub root_dir: PathBuf,
    /// Memory that pods may use together, in bytes: the ceiling of a tmpfs. Not positive: none.
    pub memory_allocatable_bytes: i64,
    /// Name of the node.
    pub node_name: String,
    /// `enableControllerAttachDetach`: volumes are attached by a controller of the cluster.
    pub controller_attach_detach: bool,
    /// SELinux; `None`: it is off.
    pub selinux: Option<SeLinux>,
    /// Ids of pods with `hostUsers: false`.
    pub ids: IdRules,
    /// Allocatable resources of the node: stand in for absent limits in downwardAPI files.
    pub allocatable: BTreeMap<String, ApiQuantity>,
}

/// What VolumeManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Files.
    pub fs: Arc<dyn HostFs>,
    /// Mounts.
    pub mounts: Arc<dyn Mounter>,
    /// Gate `LocalStorageCapacityIsolationFSQuotaMonitoring`: file systems count what emptyDirs take; `None`: it is off.
    pub quotas: Option<Arc<dyn ProjectQuotas>>,
    /// Order among the effects on one pod.
    pub serial: Serial,
    /// Pods whose volumes are to be in place, made once for the life of the node.
    pub desired: DesiredVolumes,
    /// Volumes that outlive pods, made once for the life of the node.
    pub persistent: Volumes,
    /// Ids that pods have, made once for the life of the node.
    pub user_ids: UserIds,
    /// The API server; `None`: standalone.
    pub api: Option<Arc<dyn ApiServer>>,
    /// CSI drivers; `None`: nobody here speaks to them.
    pub csi: Option<Arc<dyn CsiNode>>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("volume_manager::Deps")
    }
}

/// What a piece of work holds.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) crew: Crew<contract::VolumeManager>,
    /// Pod directories.
    pub(crate) rows: BoardPoster<PodUid, PodVolumes>,
    /// Versions of configMaps and secrets.
    pub(crate) versions: BoardReader<ObjectRef, ObjectVersion>,
    /// CSI drivers that are registered.
    pub(crate) drivers: BoardReader<String, CsiDriver>,
    /// The Node, with what is attached to it.
    pub(crate) node: ValueReader<NodeView>,
    /// What the Node must say that it uses.
    pub(crate) in_use: ValuePoster<VolumesInUse>,
}

impl Tools {
    /// Tells the Node of the volumes that must stay attached, when they changed.
    pub(crate) fn post_in_use(&self) {
        let now = VolumesInUse { names: self.deps.persistent.in_use() };
        if *self.in_use.get() != now {
            self.in_use.publish(now);
        }
    }
}
