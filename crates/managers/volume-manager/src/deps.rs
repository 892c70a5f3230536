//! What VolumeManager is made with, and what each piece of its work holds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use contract::Crew;
use contract::board::{BoardPoster, BoardReader};
use contract::objects::ObjectVersion;
use contract::volume::PodVolumes;
use model::PodUid;
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::object::ObjectRef;
use ports::host::{HostFs, Mounter};

use crate::desired::DesiredVolumes;

/// Order among the effects on one pod; made once for the life of the node.
pub type Serial = ::actor::Serial<model::PodUid>;

/// Settings.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Root directory of the node, `/var/lib/kubelet` for a kubelet.
    pub root_dir: PathBuf,
    /// Memory that pods may use together, in bytes: the ceiling of a tmpfs. Not positive: none.
    pub memory_allocatable_bytes: i64,
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
    /// Order among the effects on one pod.
    pub serial: Serial,
    /// Pods whose volumes are to be in place, made once for the life of the node.
    pub desired: DesiredVolumes,
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
}
