//! Volumes of kinds that a kubelet once mounted itself, as volumes of the CSI drivers that took them over (node-and-resources 6.2).
//!
//! Handles and attributes are those that the drivers know from every other Kubernetes: a volume that is attached, or staged, by one
//! name must be asked for by the same name here. Where the volume may be had (zones) was decided before a node hears of it.

use std::collections::BTreeMap;

use model::core::{
    AWSElasticBlockStoreVolumeSource as AwsDisk, AzureDiskVolumeSource as AzureDisk,
    GCEPersistentDiskVolumeSource as GceDisk, PortworxVolumeSource as Portworx,
    VsphereVirtualDiskVolumeSource as Vsphere,
};
use model::core::{PersistentVolume, PersistentVolumeSpec, Volume};

use model::quantity::Quantity;

use crate::claim::Mode;
use crate::volume::{Csi, Resolved, Source};

/// What GCE's driver takes for a project or zone that nobody named.
const UNSPECIFIED: &str = "UNSPECIFIED";
const READ_WRITE_ONCE: &str = "ReadWriteOnce";
const READ_ONLY_MANY: &str = "ReadOnlyMany";
const READ_WRITE_MANY: &str = "ReadWriteMany";

type Attributes = BTreeMap<String, String>;

/// A volume as its driver knows it.
struct Known {
    driver: &'static str,
    /// By what a volume that stands in a pod is named, after the driver; empty: by its handle alone.
    id: String,
    handle: String,
    fs_type: Option<String>,
    attributes: Attributes,
    secret: Option<(String, String)>,
}

impl Known {
    fn new(driver: &'static str, handle: &str, fs_type: Option<&String>, attributes: Attributes) -> Self {
        let (id, handle) = (handle.to_owned(), handle.to_owned());
        Self { driver, id, handle, fs_type: fs_type.cloned(), attributes, secret: None }
    }

    fn into_csi(self) -> Csi {
        Csi {
            driver: self.driver.to_owned(),
            handle: self.handle,
            fs_type: self.fs_type.unwrap_or_default(),
            attributes: self.attributes,
            stage_secret: self.secret,
            publish_secret: None,
            expand_secret: None,
            is_inline: false,
            is_migrated: true,
        }
    }
}

/// The volume of a driver that a PersistentVolume of such a kind is, and its access modes as the driver takes them; `None`: it
/// is of another kind.
///
/// # Errors
/// It cannot be had through the driver.
pub(crate) fn of_persistent(volume: &PersistentVolume) -> Option<Result<(Csi, Vec<String>), String>> {
    let spec = volume.spec.as_ref()?;
    let modes = spec.access_modes.clone().unwrap_or_default();
    if let Some(disk) = &spec.gce_persistent_disk {
        let zones = label(volume, "failure-domain.beta.kubernetes.io/zone")
            .or_else(|| label(volume, "topology.kubernetes.io/zone"));
        return Some(gce(disk, zones.unwrap_or_default()).map(|known| (known.into_csi(), gce_modes(&modes))));
    }
    let known = match (&spec.azure_file, &spec.cinder, &spec.portworx_volume) {
        (Some(_), ..) => azure_file_of(volume, spec),
        (_, Some(v), _) => Ok(cinder(&v.volume_id, v.fs_type.as_ref())),
        (.., Some(v)) => {
            let known = portworx(v);
            let of = |key: &str| annotation(volume, key);
            let secret = of("openstorage.io/auth-secret-namespace").zip(of("openstorage.io/auth-secret-name"));
            let csi = Csi { publish_secret: secret.clone(), expand_secret: secret.clone(), ..known.into_csi() };
            return Some(Ok((Csi { stage_secret: secret, ..csi }, modes)));
        }
        _ => disks(spec.aws_elastic_block_store.as_ref(), spec.azure_disk.as_ref(), spec.vsphere_volume.as_ref())?,
    };
    Some(known.map(|known| (known.into_csi(), modes)))
}

/// Whether a pod's own volume is of such a kind.
#[must_use]
pub fn is_migrated(v: &Volume) -> bool {
    let disk = v.aws_elastic_block_store.is_some() || v.azure_disk.is_some() || v.gce_persistent_disk.is_some();
    disk || v.azure_file.is_some() || v.cinder.is_some() || v.portworx_volume.is_some() || v.vsphere_volume.is_some()
}

/// The volume of a driver that a pod's own volume of such a kind is; `None`: it is of another kind.
///
/// # Errors
/// It cannot be had through the driver.
pub fn of_volume(namespace: &str, volume: &Volume) -> Option<Result<Resolved, String>> {
    let read_only_many =
        |read_only: Option<bool>| if read_only == Some(true) { READ_ONLY_MANY } else { READ_WRITE_ONCE };
    let mut mode = READ_WRITE_ONCE;
    let known = if let Some(disk) = &volume.gce_persistent_disk {
        mode = read_only_many(disk.read_only);
        gce(disk, "")
    } else if let Some(v) = &volume.portworx_volume {
        mode = read_only_many(v.read_only);
        Ok(portworx(v))
    } else if let Some(v) = &volume.azure_file {
        mode = READ_WRITE_MANY;
        Ok(azure_file("", &volume.name, &v.share_name, (namespace, &v.secret_name)))
    } else if let Some(v) = &volume.cinder {
        Ok(cinder(&v.volume_id, v.fs_type.as_ref()))
    } else {
        disks(volume.aws_elastic_block_store.as_ref(), volume.azure_disk.as_ref(), volume.vsphere_volume.as_ref())?
    };
    Some(known.map(|known| Resolved {
        name: if known.id.is_empty() { known.handle.clone() } else { format!("{}-{}", known.driver, known.id) },
        source: Source::Csi(known.into_csi()),
        access_modes: vec![mode.to_owned()],
        mount_options: Vec::new(),
        mode: Mode::Filesystem,
        read_only: false,
        group: None,
        size: Quantity::ZERO,
        claim: None,
    }))
}

fn label<'a>(volume: &'a PersistentVolume, key: &str) -> Option<&'a str> {
    volume.metadata.labels.as_ref()?.get(key).map(String::as_str).filter(|v| !v.is_empty())
}

fn annotation(volume: &PersistentVolume, key: &str) -> Option<String> {
    volume.metadata.annotations.as_ref()?.get(key).cloned()
}

/// Kinds that are the same in a pod and in a PersistentVolume.
fn disks(aws: Option<&AwsDisk>, azure: Option<&AzureDisk>, vsphere: Option<&Vsphere>) -> Option<Result<Known, String>> {
    match (aws, azure, vsphere) {
        (Some(v), ..) => Some(ebs(v)),
        (_, Some(v), _) => Some(azure_disk(v)),
        (.., Some(v)) => {
            let policy = v.storage_policy_name.iter().filter(|p| !p.is_empty());
            let attributes = policy.map(|p| ("storagepolicyname".to_owned(), p.clone())).collect();
            Some(Ok(Known::new("csi.vsphere.vmware.com", &v.volume_path, v.fs_type.as_ref(), attributes)))
        }
        _ => None,
    }
}

fn ebs(disk: &AwsDisk) -> Result<Known, String> {
    let handle = ebs_id(&disk.volume_id)?;
    let attributes = [("partition".to_owned(), disk.partition.unwrap_or_default().to_string())].into();
    Ok(Known::new("ebs.csi.aws.com", handle, disk.fs_type.as_ref(), attributes))
}

/// `vol-1` of `vol-1` and of `aws://zone/vol-1`.
fn ebs_id(name: &str) -> Result<&str, String> {
    let Some(rest) = name.strip_prefix("aws://") else { return Ok(name) };
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let id = path.find('/').map_or("", |at| &path[at..]).trim_matches('/');
    if id.starts_with("vol-") && !id.contains('/') {
        Ok(id)
    } else {
        Err(format!("failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({name})"))
    }
}

fn azure_disk(disk: &AzureDisk) -> Result<Known, String> {
    if let Some(kind) = disk.kind.as_deref().filter(|k| !k.eq_ignore_ascii_case("Managed")) {
        return Err(format!("kind({kind}) is not supported in csi migration"));
    }
    let mut attributes: Attributes = [("kind".to_owned(), "Managed".to_owned())].into();
    let more = [("cachingmode", disk.caching_mode.as_ref()), ("fstype", disk.fs_type.as_ref())];
    attributes.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.clone()))));
    let known = Known::new("disk.csi.azure.com", &disk.disk_uri, disk.fs_type.as_ref(), attributes);
    Ok(Known { id: String::new(), ..known })
}

fn azure_file_of(volume: &PersistentVolume, spec: &PersistentVolumeSpec) -> Result<Known, String> {
    let source = spec.azure_file.clone().unwrap_or_default();
    let of_claim = || spec.claim_ref.as_ref().and_then(|c| c.namespace.clone());
    let namespace = source.secret_namespace.or_else(of_claim).filter(|n| !n.is_empty());
    let Some(namespace) = namespace else {
        return Err("could not find a secret namespace in PersistentVolumeSource or ClaimRef".to_owned());
    };
    let group = annotation(volume, "kubernetes.io/azure-file-resource-group").unwrap_or_default();
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    Ok(azure_file(&group, name, &source.share_name, (&namespace, &source.secret_name)))
}

/// `secret`: namespace and name.
fn azure_file(group: &str, volume: &str, share: &str, (namespace, secret): (&str, &str)) -> Known {
    let account = azure_account(secret).unwrap_or(secret);
    let handle = format!("{group}#{account}#{share}#{volume}#{namespace}");
    let attributes = [("sharename".to_owned(), share.to_owned())].into();
    let known = Known::new("file.csi.azure.com", &handle, None, attributes);
    Known { id: String::new(), secret: Some((namespace.to_owned(), secret.to_owned())), ..known }
}

/// The account that the name of a secret tells of.
fn azure_account(secret: &str) -> Option<&str> {
    const BEFORE: &str = "azure-storage-account-";
    let rest = &secret[secret.find(BEFORE)? + BEFORE.len()..];
    rest.rfind("-secret").map(|end| &rest[..end]).filter(|account| !account.is_empty())
}

fn cinder(id: &str, fs_type: Option<&String>) -> Known {
    Known::new("cinder.csi.openstack.org", id, fs_type, Attributes::new())
}

fn portworx(volume: &Portworx) -> Known {
    Known::new("pxd.portworx.com", &volume.volume_id, volume.fs_type.as_ref(), Attributes::new())
}

/// `zones`: where the disk is, several of one region joined by `__`; empty: nobody knows.
fn gce(disk: &GceDisk, zones: &str) -> Result<Known, String> {
    let zones: Vec<&str> = zones.split("__").collect();
    let place = match zones[..] {
        [""] => format!("zones/{UNSPECIFIED}"),
        [zone] => format!("zones/{zone}"),
        _ => format!("regions/{}", gce_region(&zones)?),
    };
    let partition = disk.partition.filter(|p| *p != 0).map(|p| p.to_string()).unwrap_or_default();
    let attributes = [("partition".to_owned(), partition)].into();
    let handle = format!("projects/{UNSPECIFIED}/{place}/disks/{}", disk.pd_name);
    let known = Known::new("pd.csi.storage.gke.io", &handle, disk.fs_type.as_ref(), attributes);
    Ok(Known { id: disk.pd_name.clone(), ..known })
}

/// `europe-west1` of `europe-west1-b` and others.
fn gce_region(zones: &[&str]) -> Result<String, String> {
    let failed = |why: String| Err(format!("failed to get region from zones: {why}"));
    let mut region = None;
    for zone in zones {
        let [place, number, _] = zone.split('-').collect::<Vec<_>>()[..] else {
            return failed(format!("zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"));
        };
        let this = format!("{place}-{number}");
        if region.as_ref().is_some_and(|r| *r != this) {
            return failed(format!("multiple or no regions gotten from zones, got: {}", zones.join(", ")));
        }
        region = Some(this);
    }
    Ok(region.unwrap_or_default())
}

/// The driver refuses what was never checked before: many writers, and writers beside readers.
fn gce_modes(modes: &[String]) -> Vec<String> {
    let writes = |m: &String| m == READ_WRITE_ONCE || m == READ_WRITE_MANY;
    match modes {
        [] => Vec::new(),
        _ if !modes.iter().any(writes) && modes.iter().any(|m| m == READ_ONLY_MANY) => vec![READ_ONLY_MANY.to_owned()],
        _ => vec![READ_WRITE_ONCE.to_owned()],
    }
}
