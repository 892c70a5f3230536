//! From a pod's volume to the PersistentVolume that stands for it (node-and-resources 6.2). The texts are a kubelet's.

use std::collections::BTreeMap;

use model::core::{Container, PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use model::{node_selector, pod};

/// The API server keeps what has this finalizer while a pod uses it.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The claim that a volume of a pod names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimName {
    /// Name of the claim, in the pod's namespace.
    pub name: String,
    /// The pod wants it read-only.
    pub read_only: bool,
    /// It is made for this pod alone (`ephemeral`), and must be owned by it.
    pub is_ephemeral: bool,
}

/// The claim of a volume; `None`: it has none.
#[must_use]
pub fn claim_name(pod: &Pod, volume: &Volume) -> Option<ClaimName> {
    if let Some(claim) = &volume.persistent_volume_claim {
        let read_only = claim.read_only.unwrap_or(false);
        return Some(ClaimName { name: claim.claim_name.clone(), read_only, is_ephemeral: false });
    }
    volume.ephemeral.as_ref()?;
    let name = format!("{}-{}", pod::name(pod), volume.name);
    Some(ClaimName { name, read_only: false, is_ephemeral: true })
}

/// Name of the PersistentVolume that is bound to a claim.
///
/// # Errors
/// The pod may not have it (now).
pub fn volume_name(pod: &Pod, claim: &ClaimName, found: &PersistentVolumeClaim) -> Result<String, String> {
    let unusable = |why: &str| Err(not_processed(pod, claim, why));
    // One that is protected stays as long as a pod has it: a daemon that was started anew must not take it from those that run.
    let is_protected = found.metadata.finalizers.iter().flatten().any(|f| f == PROTECTION);
    if found.metadata.deletion_timestamp.is_some() && !is_protected {
        return unusable("PVC is being deleted");
    }
    if found.status.as_ref().and_then(|s| s.phase.as_deref()) != Some("Bound") {
        return unusable("PVC is not bound");
    }
    let name = found.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
    if name.is_empty() {
        return unusable("PVC has empty pvc.Spec.VolumeName");
    }
    if claim.is_ephemeral && !is_controlled_by(found, pod) {
        let (namespace, claim, name) = (pod::namespace(pod), &claim.name, pod::name(pod));
        return Err(format!("PVC {namespace}/{claim} was not created for pod {namespace}/{name} (pod is not owner)"));
    }
    Ok(name.to_owned())
}

fn is_controlled_by(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    owners.filter(|o| o.controller == Some(true)).any(|o| o.uid == pod::uid(pod).as_str())
}

/// Whether a PersistentVolume is bound to the claim that names it.
///
/// # Errors
/// It is bound to none, or to another one.
pub fn check_bound(found: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), String> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let Some(claim) = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref()) else {
        return Err(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        ));
    };
    let (has, wanted) = (claim.uid.as_deref().unwrap_or_default(), found.metadata.uid.as_deref().unwrap_or_default());
    if has == wanted {
        return Ok(());
    }
    Err(format!("found PV object {name} but its pv.Spec.ClaimRef.UID {has} does not point to claim.UID {wanted}"))
}

/// How a failure with a claim is told.
#[must_use]
pub fn not_processed(pod: &Pod, claim: &ClaimName, why: &str) -> String {
    format!("error processing PVC {}/{}: {why}", pod::namespace(pod), claim.name)
}

/// What a volume is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Directories and files.
    Filesystem,
    /// A raw device.
    Block,
}

impl Mode {
    /// As the API has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filesystem => "Filesystem",
            Self::Block => "Block",
        }
    }
}

/// Whether the containers of a pod use a volume as what it is.
///
/// # Errors
/// One mounts a device, or wants a directory as a device.
pub fn check_use(pod: &Pod, volume: &str, mode: Mode) -> Result<(), String> {
    let wrong =
        |field: &str| Err(format!("volume {volume} has volumeMode {}, but is specified in {field}", mode.as_str()));
    let (mounts, devices) = uses(pod, volume);
    if mounts && mode != Mode::Filesystem {
        return wrong("volumeMounts");
    }
    if devices && mode != Mode::Block {
        return wrong("volumeDevices");
    }
    Ok(())
}

/// Whether some container has the volume in `volumeMounts`, and whether in `volumeDevices`.
#[must_use]
pub fn uses(pod: &Pod, volume: &str) -> (bool, bool) {
    let ephemeral: Vec<Container> = pod::ephemeral_containers(pod).map(|(c, _)| c).collect();
    let all = pod::init_containers(pod).iter().chain(pod::regular_containers(pod)).chain(&ephemeral);
    all.fold((false, false), |(mounts, devices), c| {
        let in_mounts = c.volume_mounts.iter().flatten().any(|m| m.name == volume);
        let in_devices = c.volume_devices.iter().flatten().any(|d| d.name == volume);
        (mounts || in_mounts, devices || in_devices)
    })
}

/// Whether a PersistentVolume can be had on a node of this name with these labels.
///
/// # Errors
/// It cannot.
pub fn check_affinity(volume: &PersistentVolume, node: &str, labels: &BTreeMap<String, String>) -> Result<(), String> {
    let required = volume.spec.as_ref().and_then(|s| s.node_affinity.as_ref()?.required.as_ref());
    match required {
        Some(selector) if !node_selector::selects(selector, node, labels) => {
            Err("no matching NodeSelectorTerms".to_owned())
        }
        _ => Ok(()),
    }
}
