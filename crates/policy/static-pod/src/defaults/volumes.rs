//! Defaults of volume sources.

use model::core::{DownwardAPIVolumeFile, EmptyDirVolumeSource, Volume, VolumeProjection};

use super::fields::{canonical, field_selector, pull_policy, resource_field_selector, word};

/// Mode of files in volumes that the node writes itself: 0644.
const FILE_MODE: i32 = 0o644;

pub(super) fn volume(v: &mut Volume) {
    if crate::validate::volume_sources(v).is_empty() {
        v.empty_dir = Some(EmptyDirVolumeSource::default());
    }
    if let Some(size) = v.empty_dir.as_mut().and_then(|e| e.size_limit.as_mut()) {
        canonical(size, false);
    }
    if let Some(host_path) = &mut v.host_path {
        host_path.type_.get_or_insert_default();
    }
    if let Some(image) = &mut v.image {
        let policy = pull_policy(image.reference.as_deref().unwrap_or_default());
        word(&mut image.pull_policy, policy);
    }
    if let Some(secret) = &mut v.secret {
        secret.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(config_map) = &mut v.config_map {
        config_map.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(downward) = &mut v.downward_api {
        downward.default_mode.get_or_insert(FILE_MODE);
        downward.items.iter_mut().flatten().for_each(downward_file);
    }
    if let Some(projected) = &mut v.projected {
        projected.default_mode.get_or_insert(FILE_MODE);
        projected.sources.iter_mut().flatten().for_each(projection);
    }
    network_volumes(v);
}

/// Sources that talk to a storage server or cloud.
fn network_volumes(v: &mut Volume) {
    if let Some(iscsi) = &mut v.iscsi {
        word(&mut iscsi.iscsi_interface, "default");
    }
    if let Some(rbd) = &mut v.rbd {
        word(&mut rbd.pool, "rbd");
        word(&mut rbd.user, "admin");
        word(&mut rbd.keyring, "/etc/ceph/keyring");
    }
    if let Some(disk) = &mut v.azure_disk {
        disk.caching_mode.get_or_insert_with(|| "ReadWrite".to_owned());
        disk.kind.get_or_insert_with(|| "Shared".to_owned());
        disk.fs_type.get_or_insert_with(|| "ext4".to_owned());
        disk.read_only.get_or_insert(false);
    }
    if let Some(scale_io) = &mut v.scale_io {
        word(&mut scale_io.storage_mode, "ThinProvisioned");
        word(&mut scale_io.fs_type, "xfs");
    }
}

fn projection(p: &mut VolumeProjection) {
    if let Some(token) = &mut p.service_account_token {
        token.expiration_seconds.get_or_insert(3600);
    }
    if let Some(downward) = &mut p.downward_api {
        downward.items.iter_mut().flatten().for_each(downward_file);
    }
}

fn downward_file(f: &mut DownwardAPIVolumeFile) {
    f.field_ref.iter_mut().for_each(field_selector);
    f.resource_field_ref.iter_mut().for_each(resource_field_selector);
}
