//! Volumes and their sources.

use std::collections::BTreeSet;

use model::core::{DownwardAPIVolumeFile, PodSpec, ProjectedVolumeSource, Volume};
use model::quantity::Quantity;

use super::env::{VOLUME_FIELDS, field, resource_field};
use super::faults::Faults;
use super::names::Rule;
use super::paths::{no_backsteps, relative_path};

const HOST_PATH_TYPES: &[&str] =
    &["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];

pub(super) fn validate(spec: &PodSpec, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    for (i, v) in spec.volumes.iter().flatten().enumerate() {
        let path = format!("spec.volumes[{i}]");
        faults.name(format!("{path}.name"), &v.name, Rule::DnsLabel);
        if !v.name.is_empty() && !names.insert(&v.name) {
            faults.duplicate(format!("{path}.name"), v.name.as_str(), "another volume of this pod has the same name");
        }
        let sources = volume_sources(v);
        for extra in sources.iter().skip(1) {
            faults.forbidden(format!("{path}.{extra}"), "may not specify more than 1 volume type");
        }
        source(&path, v, faults);
    }
}

fn source(path: &str, v: &Volume, faults: &mut Faults) {
    if let Some(e) = &v.empty_dir {
        empty_dir(path, e.medium.as_deref(), e.size_limit.as_ref().map(|q| q.0.as_str()), faults);
    }
    if let Some(h) = &v.host_path {
        let at = format!("{path}.hostPath.path");
        if h.path.is_empty() {
            faults.required(at.as_str(), "");
        }
        no_backsteps(&at, &h.path, faults);
        faults.one_of_if_set(format!("{path}.hostPath.type"), h.type_.as_deref(), HOST_PATH_TYPES);
    }
    if let Some(d) = &v.downward_api {
        mode(&format!("{path}.downwardAPI.defaultMode"), d.default_mode, faults);
        for (i, item) in d.items.iter().flatten().enumerate() {
            downward_file(&format!("{path}.downwardAPI.items[{i}]"), item, faults);
        }
    }
    if let Some(p) = &v.projected {
        projected(&format!("{path}.projected"), p, faults);
    }
    if let Some(image) = &v.image {
        if image.reference.as_deref().unwrap_or_default().is_empty() {
            faults.required(format!("{path}.image.reference"), "");
        }
        let policy = image.pull_policy.as_deref();
        faults.one_of_if_set(format!("{path}.image.pullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    }
    if let Some(nfs) = &v.nfs {
        if nfs.server.is_empty() {
            faults.required(format!("{path}.nfs.server"), "");
        }
        if nfs.path.is_empty() {
            faults.required(format!("{path}.nfs.path"), "");
        } else if !nfs.path.starts_with('/') {
            faults.invalid(format!("{path}.nfs.path"), nfs.path.as_str(), "must be an absolute path");
        }
    }
    if let Some(iscsi) = &v.iscsi {
        if iscsi.target_portal.is_empty() {
            faults.required(format!("{path}.iscsi.targetPortal"), "");
        }
        if iscsi.iqn.is_empty() {
            faults.required(format!("{path}.iscsi.iqn"), "");
        }
        faults.in_range(format!("{path}.iscsi.lun"), iscsi.lun.into(), 0, 255);
    }
}

fn empty_dir(path: &str, medium: Option<&str>, size_limit: Option<&str>, faults: &mut Faults) {
    let medium = medium.unwrap_or_default();
    let at = format!("{path}.emptyDir.medium");
    if let Some(size) = medium.strip_prefix("HugePages-") {
        if size.parse::<Quantity>().is_err() {
            faults.invalid(at, medium, "does not end with a page size");
        }
    } else {
        faults.one_of(at, medium, &["", "Memory", "HugePages", "HugePages-SIZE"]);
    }
    let Some(size_limit) = size_limit else { return };
    let at = format!("{path}.emptyDir.sizeLimit");
    match size_limit.parse::<Quantity>() {
        Err(e) => faults.invalid(at, size_limit, e.to_string()),
        Ok(q) if q.is_negative() => faults.invalid(at, size_limit, "must be 0 or more"),
        Ok(_) => {}
    }
}

fn projected(path: &str, p: &ProjectedVolumeSource, faults: &mut Faults) {
    mode(&format!("{path}.defaultMode"), p.default_mode, faults);
    let mut files = BTreeSet::new();
    for (i, s) in p.sources.iter().flatten().enumerate() {
        let path = format!("{path}.sources[{i}]");
        let members = [
            ("clusterTrustBundle", s.cluster_trust_bundle.is_some()),
            ("configMap", s.config_map.is_some()),
            ("downwardAPI", s.downward_api.is_some()),
            ("podCertificate", s.pod_certificate.is_some()),
            ("secret", s.secret.is_some()),
            ("serviceAccountToken", s.service_account_token.is_some()),
        ];
        faults.exactly_one(&path, &members);
        for (j, item) in s.downward_api.iter().flat_map(|d| d.items.iter().flatten()).enumerate() {
            let path = format!("{path}.downwardAPI.items[{j}]");
            downward_file(&path, item, faults);
            if !item.path.is_empty() && !files.insert(item.path.as_str()) {
                faults.duplicate(
                    format!("{path}.path"),
                    item.path.as_str(),
                    "another file of this volume has this path",
                );
            }
        }
    }
}

fn downward_file(path: &str, item: &DownwardAPIVolumeFile, faults: &mut Faults) {
    relative_path(&format!("{path}.path"), &item.path, faults);
    mode(&format!("{path}.mode"), item.mode, faults);
    let members = [("fieldRef", item.field_ref.is_some()), ("resourceFieldRef", item.resource_field_ref.is_some())];
    if faults.exactly_one(path, &members) {
        item.field_ref.iter().for_each(|f| field(&format!("{path}.fieldRef"), f, VOLUME_FIELDS, faults));
        item.resource_field_ref
            .iter()
            .for_each(|r| resource_field(&format!("{path}.resourceFieldRef"), r, true, faults));
    }
}

fn mode(path: &str, mode: Option<i32>, faults: &mut Faults) {
    if let Some(mode) = mode
        && !(0..=0o777).contains(&mode)
    {
        faults.invalid(path, mode, "must be a file mode from 0 to 0777 (511)");
    }
}

/// Names of the sources that a volume sets, in the order of the API type.
pub(crate) fn volume_sources(v: &Volume) -> Vec<&'static str> {
    [
        ("awsElasticBlockStore", v.aws_elastic_block_store.is_some()),
        ("azureDisk", v.azure_disk.is_some()),
        ("azureFile", v.azure_file.is_some()),
        ("cephfs", v.cephfs.is_some()),
        ("cinder", v.cinder.is_some()),
        ("configMap", v.config_map.is_some()),
        ("csi", v.csi.is_some()),
        ("downwardAPI", v.downward_api.is_some()),
        ("emptyDir", v.empty_dir.is_some()),
        ("ephemeral", v.ephemeral.is_some()),
        ("fc", v.fc.is_some()),
        ("flexVolume", v.flex_volume.is_some()),
        ("flocker", v.flocker.is_some()),
        ("gcePersistentDisk", v.gce_persistent_disk.is_some()),
        ("gitRepo", v.git_repo.is_some()),
        ("glusterfs", v.glusterfs.is_some()),
        ("hostPath", v.host_path.is_some()),
        ("image", v.image.is_some()),
        ("iscsi", v.iscsi.is_some()),
        ("nfs", v.nfs.is_some()),
        ("persistentVolumeClaim", v.persistent_volume_claim.is_some()),
        ("photonPersistentDisk", v.photon_persistent_disk.is_some()),
        ("portworxVolume", v.portworx_volume.is_some()),
        ("projected", v.projected.is_some()),
        ("quobyte", v.quobyte.is_some()),
        ("rbd", v.rbd.is_some()),
        ("scaleIO", v.scale_io.is_some()),
        ("secret", v.secret.is_some()),
        ("storageos", v.storageos.is_some()),
        ("vsphereVolume", v.vsphere_volume.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, set)| set.then_some(name))
    .collect()
}
