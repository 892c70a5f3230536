//! Mounts of a container (pod-lifecycle 5.7, node-and-resources 6.15, 6.16).

use std::collections::{BTreeMap, BTreeSet};

use cri_api::v1::{ImageSpec, Mount, MountPropagation};
use model::core::{Container, Pod, VolumeMount};
use model::expansion::expand;
use model::pod;
use model::userns::UserNamespace;

use crate::NodeSettings;
use crate::env::Environment;
use crate::security::mappings;

/// Where the managed hosts file is mounted.
const ETC_HOSTS: &str = "/etc/hosts";

/// A mount that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The volume is not mounted, or not known.
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    NoVolume {
        /// Name of the volume.
        volume: String,
        /// Name of the container.
        container: String,
    },
    /// `subPathExpr` with variables that are missing or empty.
    #[error("missing value for {}", .0.join(", "))]
    NoValue(Vec<String>),
    /// A sub-path that starts with `/`.
    #[error("error SubPath `{0}` must not be an absolute path")]
    AbsoluteSubPath(String),
    /// A sub-path with `..`.
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    Backstep(String),
    /// The caller has not prepared a sub-path.
    #[error("failed to prepare subPath for volumeMount {mount:?} of container {container:?}")]
    SubPathNotPrepared {
        /// Name of the volume.
        mount: String,
        /// Name of the container.
        container: String,
    },
    /// An unknown propagation word.
    #[error("invalid MountPropagation mode: {0:?}")]
    Propagation(String),
    /// `recursiveReadOnly` on a mount that is writable.
    #[error("volume {0:?} requested recursive read-only mode, but it is not read-only")]
    RecursiveButWritable(String),
    /// `recursiveReadOnly` with propagation.
    #[error("volume {volume:?} requested recursive read-only mode, but it is not compatible with propagation {mode:?}")]
    RecursiveWithPropagation {
        /// Name of the volume.
        volume: String,
        /// Propagation asked for.
        mode: String,
    },
    /// `recursiveReadOnly: Enabled` that the runtime handler does not have.
    #[error("volume {0:?} requested recursive read-only mode, but it is not supported by the runtime")]
    RecursiveUnsupported(String),
    /// An unknown `recursiveReadOnly` word.
    #[error("unknown recursive read-only mode {0:?}")]
    RecursiveUnknown(String),
}

/// What is behind a volume of the pod.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeSource {
    /// A path on the host.
    Path {
        /// Absolute path.
        host_path: String,
        /// The volume as such is read-only (configMap, secret, projected, downwardAPI, a read-only PV).
        read_only: bool,
        /// The files shall get the container's SELinux label; asked for once per volume and container.
        selinux_relabel: bool,
    },
    /// An OCI image, as the image manager resolved it.
    Image(ImageSpec),
}

/// A volume that is ready to be mounted.
pub type ResolvedVolume = VolumeSource;

/// Sub-path of one mount: the place in `volumeMounts` and the path below the volume, for the caller to prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubPath {
    /// Index in the container's `volumeMounts`; the name of the bind target under `volume-subpaths`.
    pub index: usize,
    /// Name of the volume.
    pub volume: String,
    /// Relative path without `..`.
    pub path: String,
}

fn sub_path(mount: &VolumeMount, env: &Environment) -> Result<Option<String>, MountError> {
    let expr = mount.sub_path_expr.as_deref().unwrap_or_default();
    let path = if expr.is_empty() {
        mount.sub_path.clone().unwrap_or_default()
    } else {
        let mut missing = BTreeSet::new();
        let expanded = expand(expr, |name| {
            let value = env.get(name).filter(|v| !v.is_empty()).map(<[u8]>::to_vec);
            if value.is_none() {
                missing.insert(name.to_owned());
            }
            value
        });
        if !missing.is_empty() {
            return Err(MountError::NoValue(missing.into_iter().collect()));
        }
        String::from_utf8_lossy(&expanded).into_owned()
    };
    if path.is_empty() {
        return Ok(None);
    }
    if path.starts_with('/') {
        return Err(MountError::AbsoluteSubPath(path));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(MountError::Backstep(path));
    }
    Ok(Some(path))
}

/// All sub-paths that a container's mounts ask for, of volumes and of images alike.
///
/// # Errors
/// A variable that is missing or empty, an absolute path, a `..`.
pub fn sub_paths(container: &Container, env: &Environment) -> Result<Vec<SubPath>, MountError> {
    let mut out = Vec::new();
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        if let Some(path) = sub_path(mount, env)? {
            out.push(SubPath { index, volume: mount.name.clone(), path });
        }
    }
    Ok(out)
}

fn propagation(mount: &VolumeMount) -> Result<MountPropagation, MountError> {
    match mount.mount_propagation.as_deref() {
        None | Some("None") => Ok(MountPropagation::PropagationPrivate),
        Some("HostToContainer") => Ok(MountPropagation::PropagationHostToContainer),
        Some("Bidirectional") => Ok(MountPropagation::PropagationBidirectional),
        Some(other) => Err(MountError::Propagation(other.to_owned())),
    }
}

fn recursive_read_only(mount: &VolumeMount, supported: bool) -> Result<bool, MountError> {
    let mode = match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => return Ok(false),
        Some(mode) => mode,
    };
    if mount.read_only != Some(true) {
        return Err(MountError::RecursiveButWritable(mount.name.clone()));
    }
    if let Some(propagation) = mount.mount_propagation.as_deref().filter(|p| *p != "None") {
        return Err(MountError::RecursiveWithPropagation { volume: mount.name.clone(), mode: propagation.to_owned() });
    }
    match mode {
        "IfPossible" => Ok(supported),
        "Enabled" if supported => Ok(true),
        "Enabled" => Err(MountError::RecursiveUnsupported(mount.name.clone())),
        other => Err(MountError::RecursiveUnknown(other.to_owned())),
    }
}

/// Context of [`mounts`].
#[derive(Clone, Copy, Debug)]
pub struct MountInput<'a> {
    /// The pod, defaulted.
    pub pod: &'a Pod,
    /// The container (an ephemeral one in the form of an ordinary one).
    pub container: &'a Container,
    /// Node-wide settings.
    pub node: &'a NodeSettings,
    /// Result of [`crate::environment`].
    pub env: &'a Environment,
    /// Volumes of the pod by name.
    pub volumes: &'a BTreeMap<String, ResolvedVolume>,
    /// Prepared host paths of the sub-paths that [`sub_paths`] named, by index in `volumeMounts`.
    pub sub_paths: &'a BTreeMap<usize, String>,
    /// Whether the pod has an address yet; decides about `/etc/hosts`.
    pub has_pod_ip: bool,
    /// Host file that takes the termination message; `None` when it could not be made.
    pub termination_log: Option<&'a str>,
    /// Whether the runtime handler knows recursive read-only mounts.
    pub recursive_read_only: bool,
    /// The pod's user namespace when `hostUsers: false`.
    pub userns: Option<UserNamespace>,
}

struct Builder<'a> {
    input: &'a MountInput<'a>,
    relabelled: BTreeSet<&'a str>,
}

impl<'a> Builder<'a> {
    fn volume(&mut self, index: usize, mount: &'a VolumeMount) -> Result<Mount, MountError> {
        let input = self.input;
        let volume = input.volumes.get(&mount.name).ok_or_else(|| MountError::NoVolume {
            volume: mount.name.clone(),
            container: input.container.name.clone(),
        })?;
        let sub_path = sub_path(mount, input.env)?;
        let mut out = Mount {
            container_path: absolute(&mount.mount_path),
            propagation: propagation(mount)?.into(),
            recursive_read_only: recursive_read_only(mount, input.recursive_read_only)?,
            uid_mappings: mappings(input.userns),
            gid_mappings: mappings(input.userns),
            ..Default::default()
        };
        match volume {
            VolumeSource::Path { host_path, read_only, selinux_relabel } => {
                out.readonly = mount.read_only == Some(true) || *read_only;
                out.selinux_relabel = *selinux_relabel && input.node.selinux && self.relabelled.insert(&mount.name);
                out.host_path = match sub_path {
                    None => host_path.clone(),
                    Some(_) => input.sub_paths.get(&index).cloned().ok_or_else(|| MountError::SubPathNotPrepared {
                        mount: mount.name.clone(),
                        container: input.container.name.clone(),
                    })?,
                };
            }
            VolumeSource::Image(image) => {
                out.readonly = true;
                out.image = Some(image.clone());
                out.image_sub_path = sub_path.unwrap_or_default();
            }
        }
        Ok(out)
    }

    fn managed(&self, container_path: &str, host_path: String) -> Mount {
        Mount {
            container_path: container_path.to_owned(),
            host_path,
            selinux_relabel: self.input.node.selinux,
            uid_mappings: mappings(self.input.userns),
            gid_mappings: mappings(self.input.userns),
            ..Default::default()
        }
    }
}

fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// Directory of a pod below the root directory.
#[must_use]
pub fn pod_dir(root_dir: &str, pod: &Pod) -> String {
    format!("{}/pods/{}", root_dir.trim_end_matches('/'), pod.metadata.uid.as_deref().unwrap_or_default())
}

/// Host path of the managed hosts file of a pod.
#[must_use]
pub fn etc_hosts_path(root_dir: &str, pod: &Pod) -> String {
    format!("{}/etc-hosts", pod_dir(root_dir, pod))
}

/// Directory of a container below its pod's; the termination log file is in it.
#[must_use]
pub fn container_dir(root_dir: &str, pod: &Pod, container: &str) -> String {
    format!("{}/containers/{container}", pod_dir(root_dir, pod))
}

/// Whether the managed hosts file is mounted into a container: not when it mounts that path itself, and not before the
/// pod has an address (a pod of the host's network needs none).
#[must_use]
pub fn mounts_etc_hosts(pod: &Pod, container: &Container, has_pod_ip: bool) -> bool {
    let own = container.volume_mounts.iter().flatten().any(|m| m.mount_path == ETC_HOSTS);
    (has_pod_ip || pod::is_host_network(pod)) && !own
}

/// Mounts of a container: volumes in order, then the hosts file, then the termination log.
///
/// # Errors
/// See [`MountError`].
pub fn mounts(input: &MountInput<'_>) -> Result<Vec<Mount>, MountError> {
    let mut builder = Builder { input, relabelled: BTreeSet::new() };
    let mut out = Vec::new();
    for (index, mount) in input.container.volume_mounts.iter().flatten().enumerate() {
        out.push(builder.volume(index, mount)?);
    }
    if mounts_etc_hosts(input.pod, input.container, input.has_pod_ip) {
        out.push(builder.managed(ETC_HOSTS, etc_hosts_path(&input.node.root_dir, input.pod)));
    }
    let path = input.container.termination_message_path.as_deref().filter(|p| !p.is_empty());
    if let (Some(path), Some(file)) = (path, input.termination_log) {
        out.push(builder.managed(path, file.to_owned()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
