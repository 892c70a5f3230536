//! `ContainerConfig` of a container.

use std::collections::BTreeMap;

use cri_api::v1::{
    CdiDevice, ContainerConfig, ContainerMetadata, Device, ImageSpec, KeyValue, LinuxContainerConfig,
    LinuxContainerResources,
};

use crate::devices::{RawVolume, volume_devices};
use crate::env::{Environment, expand_strings};
use crate::mounts::{MountInput, mounts};
use crate::security::{ContextInput, ImageUser, container_context};
use crate::{ConfigError, names};

/// Context of [`container_config`].
#[derive(Clone, Debug)]
pub struct ContainerInput<'a> {
    /// Pod, container, node and environment, and all that mounts need besides.
    pub mounts: MountInput<'a>,
    /// How often it was restarted; the CRI attempt and the name of the log file.
    pub restart_count: u32,
    /// Hash of the definition (pod-lifecycle 4.7).
    pub hash: u64,
    /// Reference or id that the image manager returned.
    pub image_ref: &'a str,
    /// User of the image.
    pub image_user: &'a ImageUser,
    /// Groups that volumes bring along.
    pub volume_groups: &'a [i64],
    /// Container id whose process namespace an ephemeral container joins.
    pub target: Option<&'a str>,
    /// Raw volumes of the pod, by name.
    pub raw_volumes: &'a BTreeMap<String, RawVolume>,
    /// Devices of plugins.
    pub devices: Vec<Device>,
    /// CDI names of devices.
    pub cdi_devices: Vec<String>,
    /// Annotations of device plugins; the node's own keys win.
    pub annotations: &'a BTreeMap<String, String>,
    /// Resource numbers.
    pub resources: Option<LinuxContainerResources>,
}

fn envs(env: &Environment) -> Vec<KeyValue> {
    env.vars().iter().map(|v| KeyValue { key: v.name.clone(), value: v.value.clone() }).collect()
}

/// Configuration of one container.
///
/// # Errors
/// When its mounts or its security context cannot be made.
pub fn container_config(input: &ContainerInput<'_>) -> Result<ContainerConfig, ConfigError> {
    let MountInput { pod, container, node, env, userns, .. } = input.mounts;
    let security_context = container_context(&ContextInput {
        pod,
        container,
        node,
        image_user: input.image_user,
        userns,
        volume_groups: input.volume_groups,
        target: input.target,
    })?;
    let mounts = mounts(&input.mounts)?;
    let raw = volume_devices(container, input.raw_volumes)?;
    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata { name: container.name.clone(), attempt: input.restart_count }),
        image: Some(ImageSpec {
            image: input.image_ref.to_owned(),
            user_specified_image: container.image.clone().unwrap_or_default(),
            ..Default::default()
        }),
        command: expand_strings(container.command.as_deref().unwrap_or_default(), env),
        args: expand_strings(container.args.as_deref().unwrap_or_default(), env),
        working_dir: container.working_dir.clone().unwrap_or_default(),
        envs: envs(env),
        mounts,
        devices: input.devices.iter().cloned().chain(raw).collect(),
        cdi_devices: input.cdi_devices.iter().map(|name| CdiDevice { name: name.clone() }).collect(),
        labels: names::container_labels(pod, container),
        annotations: names::container_annotations(pod, container, input.restart_count, input.hash, input.annotations),
        log_path: names::container_log_path(&container.name, input.restart_count),
        stdin: container.stdin.unwrap_or_default(),
        stdin_once: container.stdin_once.unwrap_or_default(),
        tty: container.tty.unwrap_or_default(),
        linux: Some(LinuxContainerConfig {
            resources: input.resources.clone(),
            security_context: Some(security_context),
        }),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests;
