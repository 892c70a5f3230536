//! Volume mounts and block devices of containers.

use std::collections::BTreeSet;

use model::core::{Container, VolumeMount};

use super::faults::{Context, Faults};
use super::paths::no_backsteps;

pub(super) fn validate(path: &str, c: &Container, cx: &Context<'_>, faults: &mut Faults) {
    let mut paths = BTreeSet::new();
    for (i, mount) in c.volume_mounts.iter().flatten().enumerate() {
        let path = format!("{path}.volumeMounts[{i}]");
        volume_exists(&format!("{path}.name"), &mount.name, cx, faults);
        if mount.mount_path.is_empty() {
            faults.required(format!("{path}.mountPath"), "");
        } else if !paths.insert(mount.mount_path.as_str()) {
            let at = format!("{path}.mountPath");
            faults.duplicate(at, mount.mount_path.as_str(), "another volume of this container is mounted there");
        }
        sub_paths(&path, mount, faults);
        propagation(&path, mount, c, faults);
    }
    devices(path, c, cx, &mut paths, faults);
}

fn volume_exists(path: &str, name: &str, cx: &Context<'_>, faults: &mut Faults) {
    if name.is_empty() {
        faults.required(path, "");
    } else if !cx.volumes.contains_key(name) {
        faults.not_found(path, name, "no volume of this pod has this name");
    }
}

fn sub_paths(path: &str, mount: &VolumeMount, faults: &mut Faults) {
    let sub_path = mount.sub_path.as_deref().unwrap_or_default();
    let sub_path_expr = mount.sub_path_expr.as_deref().unwrap_or_default();
    if !sub_path.is_empty() && !sub_path_expr.is_empty() {
        faults.invalid(format!("{path}.subPathExpr"), sub_path_expr, "cannot be set together with subPath");
    }
    for (field, value) in [("subPath", sub_path), ("subPathExpr", sub_path_expr)] {
        let at = format!("{path}.{field}");
        if value.starts_with('/') {
            faults.invalid(at.as_str(), value, "must be a relative path");
        }
        no_backsteps(&at, value, faults);
    }
}

fn propagation(path: &str, mount: &VolumeMount, c: &Container, faults: &mut Faults) {
    let propagation = mount.mount_propagation.as_deref();
    faults.one_of_if_set(
        format!("{path}.mountPropagation"),
        propagation,
        &["None", "HostToContainer", "Bidirectional"],
    );
    let privileged = c.security_context.as_ref().and_then(|s| s.privileged).unwrap_or(false);
    if propagation == Some("Bidirectional") && !privileged {
        faults.forbidden(format!("{path}.mountPropagation"), "Bidirectional is for privileged containers only");
    }
    let recursive = mount.recursive_read_only.as_deref();
    let at = format!("{path}.recursiveReadOnly");
    faults.one_of_if_set(at.as_str(), recursive, &["Disabled", "IfPossible", "Enabled"]);
    if matches!(recursive, Some("IfPossible" | "Enabled")) {
        if mount.read_only != Some(true) {
            faults.forbidden(at.as_str(), "may only be set when readOnly is true");
        }
        if !matches!(propagation, None | Some("None")) {
            faults.forbidden(at, "may only be set when mountPropagation is None or not given");
        }
    }
}

fn devices<'p>(path: &str, c: &'p Container, cx: &Context<'_>, paths: &mut BTreeSet<&'p str>, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    for (i, device) in c.volume_devices.iter().flatten().enumerate() {
        let path = format!("{path}.volumeDevices[{i}]");
        volume_exists(&format!("{path}.name"), &device.name, cx, faults);
        if let Some(volume) = cx.volumes.get(device.name.as_str())
            && volume.persistent_volume_claim.is_none()
            && volume.ephemeral.is_none()
        {
            let at = format!("{path}.name");
            faults.invalid(
                at,
                device.name.as_str(),
                "only persistentVolumeClaim and ephemeral volumes are block devices",
            );
        }
        if !names.insert(&device.name) {
            faults.duplicate(format!("{path}.name"), device.name.as_str(), "listed twice");
        }
        let at = format!("{path}.devicePath");
        if device.device_path.is_empty() {
            faults.required(at, "");
            continue;
        }
        no_backsteps(&at, &device.device_path, faults);
        if !paths.insert(&device.device_path) {
            faults.duplicate(at, device.device_path.as_str(), "this path is in use already");
        }
    }
}
