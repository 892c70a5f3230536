//! What is known of a volume before anything is done for it.

use std::collections::BTreeMap;

use model::quantity::Quantity;

use crate::claim::Mode;
use crate::lun::Lun;
use crate::names::unique_name;

/// A volume that outlives pods, or that a driver makes for one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Name of its directory: of the PersistentVolume, else of the pod's volume.
    pub name: String,
    /// What it is made of.
    pub source: Source,
    /// `accessModes` of the PersistentVolume.
    pub access_modes: Vec<String>,
    /// `mountOptions` of the PersistentVolume.
    pub mount_options: Vec<String>,
    /// Directories or a device.
    pub mode: Mode,
    /// The pod wants it read-only.
    pub read_only: bool,
    /// A group that every container of the pod gets (`pv.beta.kubernetes.io/gid`).
    pub group: Option<i64>,
    /// Size by the PersistentVolume; zero: it says none.
    pub size: Quantity,
    /// The claim that it is bound to; `None`: it stands in a pod, or nobody looked.
    pub claim: Option<Claim>,
}

impl Resolved {
    /// Name by which the API server knows the volume of a driver, or this process a disk that is reached over a network; `None`:
    /// it is neither.
    #[must_use]
    pub fn unique_name(&self) -> Option<String> {
        match &self.source {
            Source::Csi(csi) => Some(csi.unique_name()),
            Source::Lun(lun) => Some(lun.key()),
            _ => None,
        }
    }
}

/// The claim that a volume is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Size that the claim says it has; zero: it says none.
    pub size: Quantity,
}

/// What a volume is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A driver has it.
    Csi(Csi),
    /// A path of the host.
    HostPath {
        /// As written.
        path: String,
        /// `type`, may be empty.
        check: String,
    },
    /// A directory that a server shares by NFS.
    Nfs {
        /// Name or address.
        server: String,
        /// On the server.
        path: String,
    },
    /// A disk that the host reaches over a network.
    Lun(Lun),
    /// A directory or a disk of the host that was set aside.
    Local {
        /// The directory, or the device.
        path: String,
        /// File system of a device.
        fs_type: String,
    },
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csi {
    /// Name of the driver.
    pub driver: String,
    /// What the driver calls the volume.
    pub handle: String,
    /// File system; empty: the driver knows.
    pub fs_type: String,
    /// `volumeAttributes`.
    pub attributes: BTreeMap<String, String>,
    /// Secret of NodeStageVolume, as (namespace, name).
    pub stage_secret: Option<(String, String)>,
    /// Secret of NodePublishVolume.
    pub publish_secret: Option<(String, String)>,
    /// Secret of NodeExpandVolume.
    pub expand_secret: Option<(String, String)>,
    /// It stands in the pod itself and lives as long as it.
    pub is_inline: bool,
    /// It is written as one of an in-tree kind that the driver took over.
    pub is_migrated: bool,
}

impl Csi {
    /// Name by which the API server and the attach controller know the volume.
    #[must_use]
    pub fn unique_name(&self) -> String {
        unique_name(&self.driver, &self.handle)
    }
}
