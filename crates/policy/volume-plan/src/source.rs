//! What a PersistentVolume, or a volume of a driver in a pod, is made of.

use model::core::{
    CSIPersistentVolumeSource, NFSVolumeSource, PersistentVolume, PersistentVolumeSpec, SecretReference, Volume,
};
use model::{PodUid, quantity::Quantity};

use crate::claim::Mode;
use crate::fc::Fc;
use crate::iscsi::Iscsi;
use crate::lun::Lun;
use crate::migration;
use crate::names::{as_argument, inline_handle};
pub use crate::volume::{Claim, Csi, Resolved, Source};

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
    let named = |why: String| format!("PersistentVolume {name:?}: {why}");
    let (source, access_modes) = match migration::of_persistent(volume) {
        Some(found) => found.map(|(csi, modes)| (Source::Csi(csi), modes)).map_err(named)?,
        None => (source(&name, spec, mode).map_err(named)?, spec.access_modes.clone().unwrap_or_default()),
    };
    let mount_options = match annotation("volume.beta.kubernetes.io/mount-options") {
        // Drivers are told of the field alone.
        Some(options) if !matches!(source, Source::Csi(_)) => {
            options.split(',').map(|o| o.trim().to_owned()).filter(|o| !o.is_empty()).collect()
        }
        _ => spec.mount_options.clone().unwrap_or_default(),
    };
    if !mount_options.is_empty() && matches!(source, Source::HostPath { .. }) {
        return Err("mount options are not supported for this volume type".to_owned());
    }
    Ok(Resolved {
        source,
        access_modes,
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

fn source(name: &str, spec: &PersistentVolumeSpec, mode: Mode) -> Result<Source, String> {
    if let Some(csi) = &spec.csi {
        return Ok(Source::Csi(of_driver(csi)));
    }
    if let Some(host) = &spec.host_path {
        let check = host.type_.clone().unwrap_or_default();
        return match mode {
            Mode::Filesystem => Ok(Source::HostPath { path: host.path.clone(), check }),
            Mode::Block => Err("no volume plugin matched: hostPath volumes cannot be had as devices".to_owned()),
        };
    }
    if let Some(local) = &spec.local {
        let fs_type = local.fs_type.clone().unwrap_or_else(|| "ext4".to_owned());
        return Ok(Source::Local { path: local.path.clone(), fs_type });
    }
    if let Some(iscsi) = &spec.iscsi {
        return Ok(Source::Lun(Lun::Iscsi(Iscsi::new(name, iscsi).checked()?)));
    }
    if let Some(fc) = &spec.fc {
        return Ok(Source::Lun(Lun::Fc(Fc::new(fc)?)));
    }
    if let Some(nfs) = &spec.nfs {
        return match mode {
            Mode::Filesystem => of_nfs(nfs),
            Mode::Block => Err("no volume plugin matched: nfs volumes cannot be had as devices".to_owned()),
        };
    }
    Err(match other_kind(spec) {
        Some(kind) => format!("no volume plugin matched: {kind} volumes are not supported"),
        None => "no volume plugin matched: it has no source".to_owned(),
    })
}

fn of_nfs(nfs: &NFSVolumeSource) -> Result<Source, String> {
    as_argument("nfs.server", &nfs.server)?;
    Ok(Source::Nfs { server: nfs.server.clone(), path: nfs.path.clone() })
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
        is_migrated: false,
    }
}

/// Kinds that are set up nowhere here.
fn other_kind(s: &PersistentVolumeSpec) -> Option<&'static str> {
    let kinds = [
        (s.flex_volume.is_some(), "flexVolume"),
        (s.cephfs.is_some(), "cephfs"),
        (s.flocker.is_some(), "flocker"),
        (s.glusterfs.is_some(), "glusterfs"),
        (s.photon_persistent_disk.is_some(), "photonPersistentDisk"),
        (s.quobyte.is_some(), "quobyte"),
        (s.rbd.is_some(), "rbd"),
        (s.scale_io.is_some(), "scaleIO"),
        (s.storageos.is_some(), "storageos"),
    ];
    kinds.into_iter().find(|(there, _)| *there).map(|(_, kind)| kind)
}

/// The volume that stands in the pod itself as one of a driver, a server or a disk; `None`: it is of another kind.
///
/// # Errors
/// This node cannot have it, with the reason.
pub fn of_inline(uid: &PodUid, namespace: &str, volume: &Volume) -> Option<Result<Resolved, String>> {
    let (source, read_only) = match (&volume.csi, &volume.nfs, &volume.iscsi, &volume.fc) {
        (Some(csi), ..) => {
            let source = Csi {
                driver: csi.driver.clone(),
                handle: inline_handle(uid, &volume.name),
                fs_type: csi.fs_type.clone().unwrap_or_default(),
                attributes: csi.volume_attributes.clone().unwrap_or_default(),
                stage_secret: None,
                publish_secret: csi.node_publish_secret_ref.as_ref().map(|r| (namespace.to_owned(), r.name.clone())),
                expand_secret: None,
                is_inline: true,
                is_migrated: false,
            };
            (Ok(Source::Csi(source)), csi.read_only)
        }
        (_, Some(nfs), ..) => (of_nfs(nfs), nfs.read_only),
        (.., Some(iscsi), _) => {
            let disk = Iscsi::of_volume(&volume.name, iscsi).checked();
            (disk.map(|disk| Source::Lun(Lun::Iscsi(disk))), iscsi.read_only)
        }
        (.., Some(fc)) => (Fc::new(fc).map(|disk| Source::Lun(Lun::Fc(disk))), fc.read_only),
        _ => return None,
    };
    Some(source.map(|source| Resolved {
        name: volume.name.clone(),
        source,
        access_modes: Vec::new(),
        mount_options: Vec::new(),
        mode: Mode::Filesystem,
        read_only: read_only.unwrap_or(false),
        group: None,
        size: Quantity::ZERO,
        claim: None,
    }))
}
