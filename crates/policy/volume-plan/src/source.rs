//! What a PersistentVolume, or a volume of a driver in a pod, is made of.

use std::collections::BTreeMap;

use model::core::{CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec, SecretReference, Volume};
use model::{PodUid, quantity::Quantity};

use crate::claim::Mode;
use crate::names::{inline_handle, unique_name};

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
    /// A directory of the host that was set aside, bound into the pod's folder.
    Local {
        /// The directory.
        path: String,
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
}

impl Csi {
    /// Name by which the API server and the attach controller know the volume.
    #[must_use]
    pub fn unique_name(&self) -> String {
        unique_name(&self.driver, &self.handle)
    }
}

/// The volume that a PersistentVolume is; who looked at its claim adds that.
///
/// # Errors
/// This node cannot have it, with the reason.
pub fn of_persistent_volume(volume: &PersistentVolume, read_only: bool) -> Result<Resolved, String> {
    let name = volume.metadata.name.clone().unwrap_or_default();
    let empty = PersistentVolumeSpec::default();
    let spec = volume.spec.as_ref().unwrap_or(&empty);
    let annotation = |key: &str| volume.metadata.annotations.as_ref().and_then(|a| a.get(key));
    let mode = match spec.volume_mode.as_deref() {
        Some("Block") => Mode::Block,
        _ => Mode::Filesystem,
    };
    let mount_options = match annotation("volume.beta.kubernetes.io/mount-options") {
        Some(options) => options.split(',').map(|o| o.trim().to_owned()).filter(|o| !o.is_empty()).collect(),
        None => spec.mount_options.clone().unwrap_or_default(),
    };
    let source = source(spec, mode).map_err(|why| format!("PersistentVolume {name:?}: {why}"))?;
    if !mount_options.is_empty() && matches!(source, Source::HostPath { .. }) {
        return Err("mount options are not supported for this volume type".to_owned());
    }
    Ok(Resolved {
        source,
        access_modes: spec.access_modes.clone().unwrap_or_default(),
        mount_options,
        mode,
        read_only,
        group: annotation("pv.beta.kubernetes.io/gid").and_then(|g| g.parse().ok()).filter(|g| *g >= 0),
        size: size(volume),
        claim: None,
        name,
    })
}

/// Size that a PersistentVolume says; zero: it says none.
#[must_use]
pub fn size(volume: &PersistentVolume) -> Quantity {
    let capacity = volume.spec.as_ref().and_then(|s| s.capacity.as_ref());
    capacity.and_then(|c| Quantity::try_from(c.get("storage")?).ok()).unwrap_or(Quantity::ZERO)
}

fn source(spec: &PersistentVolumeSpec, mode: Mode) -> Result<Source, String> {
    let only_files = |source: Source| match mode {
        Mode::Filesystem => Ok(source),
        Mode::Block => Err("volumeMode Block is supported for volumes of CSI drivers only".to_owned()),
    };
    if let Some(csi) = &spec.csi {
        return Ok(Source::Csi(of_driver(csi)));
    }
    if let Some(host) = &spec.host_path {
        let check = host.type_.clone().unwrap_or_default();
        return only_files(Source::HostPath { path: host.path.clone(), check });
    }
    if let Some(local) = &spec.local {
        return only_files(Source::Local { path: local.path.clone() });
    }
    Err(match other_kind(spec) {
        Some((kind, Some(driver))) => {
            format!(
                "{kind} volumes belong to the driver {driver}, and this node does not translate them: use a PersistentVolume of that driver"
            )
        }
        Some((kind, None)) => format!("no volume plugin matched: {kind} volumes are not supported"),
        None => "no volume plugin matched: it has no source".to_owned(),
    })
}

fn of_driver(csi: &CSIPersistentVolumeSource) -> Csi {
    let secret = |r: &Option<SecretReference>| {
        let r = r.as_ref()?;
        Some((r.namespace.clone()?, r.name.clone()?))
    };
    Csi {
        driver: csi.driver.clone(),
        handle: csi.volume_handle.clone(),
        fs_type: csi.fs_type.clone().unwrap_or_default(),
        attributes: csi.volume_attributes.clone().unwrap_or_default(),
        stage_secret: secret(&csi.node_stage_secret_ref),
        publish_secret: secret(&csi.node_publish_secret_ref),
        expand_secret: secret(&csi.node_expand_secret_ref),
        is_inline: false,
    }
}

/// Kinds that are set up nowhere here, with the driver that took them over, where one did.
fn other_kind(s: &PersistentVolumeSpec) -> Option<(&'static str, Option<&'static str>)> {
    let kinds = [
        (s.aws_elastic_block_store.is_some(), "awsElasticBlockStore", Some("ebs.csi.aws.com")),
        (s.azure_disk.is_some(), "azureDisk", Some("disk.csi.azure.com")),
        (s.azure_file.is_some(), "azureFile", Some("file.csi.azure.com")),
        (s.cinder.is_some(), "cinder", Some("cinder.csi.openstack.org")),
        (s.gce_persistent_disk.is_some(), "gcePersistentDisk", Some("pd.csi.storage.gke.io")),
        (s.portworx_volume.is_some(), "portworxVolume", Some("pxd.portworx.com")),
        (s.vsphere_volume.is_some(), "vsphereVolume", Some("csi.vsphere.vmware.com")),
        (s.nfs.is_some(), "nfs", None),
        (s.iscsi.is_some(), "iscsi", None),
        (s.fc.is_some(), "fc", None),
        (s.flex_volume.is_some(), "flexVolume", None),
        (s.cephfs.is_some(), "cephfs", None),
        (s.flocker.is_some(), "flocker", None),
        (s.glusterfs.is_some(), "glusterfs", None),
        (s.photon_persistent_disk.is_some(), "photonPersistentDisk", None),
        (s.quobyte.is_some(), "quobyte", None),
        (s.rbd.is_some(), "rbd", None),
        (s.scale_io.is_some(), "scaleIO", None),
        (s.storageos.is_some(), "storageos", None),
    ];
    kinds.into_iter().find(|(there, ..)| *there).map(|(_, kind, driver)| (kind, driver))
}

/// The volume that stands in the pod itself as one of a driver; `None`: it is of another kind.
#[must_use]
pub fn of_inline(uid: &PodUid, namespace: &str, volume: &Volume) -> Option<Resolved> {
    let csi = volume.csi.as_ref()?;
    let source = Source::Csi(Csi {
        driver: csi.driver.clone(),
        handle: inline_handle(uid, &volume.name),
        fs_type: csi.fs_type.clone().unwrap_or_default(),
        attributes: csi.volume_attributes.clone().unwrap_or_default(),
        stage_secret: None,
        publish_secret: csi.node_publish_secret_ref.as_ref().map(|r| (namespace.to_owned(), r.name.clone())),
        expand_secret: None,
        is_inline: true,
    });
    Some(Resolved {
        name: volume.name.clone(),
        source,
        access_modes: Vec::new(),
        mount_options: Vec::new(),
        mode: Mode::Filesystem,
        read_only: csi.read_only.unwrap_or(false),
        group: None,
        size: Quantity::ZERO,
        claim: None,
    })
}
