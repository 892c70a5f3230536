//! The parts put together.

use std::collections::HashMap;

use cri_api::v1;
use oci_spec::runtime::{Linux, LinuxResources, Root, Spec};

use crate::facts::Request;
use crate::{
    SpecError, brought, capabilities, cgroup, context, devices, mounts, namespaces, process, resources, security,
};

/// What runc 1.1 and crun 1 read.
const OCI_VERSION: &str = "1.0.2";
/// Relative to the bundle.
const ROOTFS: &str = "rootfs";

/// The `config.json` of a container.
///
/// # Errors
/// The config cannot be carried out here: see [`SpecError`].
pub fn container_spec(request: &Request<'_>) -> Result<Spec, SpecError> {
    let context = context::security(request.config);
    if context::is_privileged(request.config) && !privileged_pod(request.sandbox) {
        return Err(SpecError::PrivilegedInPlainPod);
    }
    let mut root = Root::default();
    root.set_path(ROOTFS.into()).set_readonly(Some(context.is_some_and(|c| c.readonly_rootfs)));
    let made = mounts::mounts(request)?;
    let mut spec = Spec::default();
    spec.set_version(OCI_VERSION.to_owned())
        .set_root(Some(root))
        .set_process(Some(process::process(request)?))
        .set_mounts(Some(made.mounts))
        .set_hostname(None)
        .set_annotations(Some(annotations(request)))
        .set_linux(Some(linux(request, made.rootfs_propagation)?));
    // Last, as what they bring stands in the place of what is there already.
    brought::apply(request.cdi, &mut spec)?;
    Ok(spec)
}

fn privileged_pod(sandbox: &v1::PodSandboxConfig) -> bool {
    sandbox.linux.as_ref().and_then(|l| l.security_context.as_ref()).is_some_and(|s| s.privileged)
}

fn linux(request: &Request<'_>, propagation: Option<&str>) -> Result<Linux, SpecError> {
    let context = context::security(request.config);
    let privileged = context::is_privileged(request.config);
    let hidden = |paths: &[String]| if privileged { Vec::new() } else { paths.to_vec() };
    let asked = context.and_then(|c| c.capabilities.as_ref());
    let names = capabilities::names(asked, privileged, &request.node.capabilities)?;
    let namespaces = namespaces::namespaces(request)?;
    let (nodes, rules) = devices::devices(request)?;
    let limits = request.config.linux.as_ref().and_then(|l| l.resources.as_ref());
    let mut limits = limits.map_or_else(LinuxResources::default, |r| resources::linux_resources(r, request.node));
    limits.set_devices(Some(rules));
    let parent = request.sandbox.linux.as_ref().map_or("", |l| &l.cgroup_parent);
    let mut linux = Linux::default();
    linux
        .set_uid_mappings(Some(namespaces.uids).filter(|m| !m.is_empty()))
        .set_gid_mappings(Some(namespaces.gids).filter(|m| !m.is_empty()))
        .set_namespaces(Some(namespaces.all))
        .set_resources(Some(limits))
        .set_cgroups_path(cgroup::cgroup_path(parent, request.container_id).map(Into::into))
        .set_devices(Some(nodes))
        .set_seccomp(security::seccomp(request, &names)?)
        .set_rootfs_propagation(propagation.map(str::to_owned))
        .set_masked_paths(Some(hidden(context.map_or(&[], |c| &c.masked_paths))))
        .set_readonly_paths(Some(hidden(context.map_or(&[], |c| &c.readonly_paths))))
        .set_mount_label(security::mount_label(request));
    Ok(linux)
}

/// What OCI runtimes and their hooks know a container of the CRI by (containerd's `annotations` package).
fn annotations(request: &Request<'_>) -> HashMap<String, String> {
    let pod = request.sandbox.metadata.clone().unwrap_or_default();
    let name = request.config.metadata.as_ref().map_or("", |m| &m.name);
    let image = request.config.image.as_ref().map_or("", |i| match i.user_specified_image.as_str() {
        "" => &i.image,
        given => given,
    });
    [
        ("container-type", "container"),
        ("sandbox-id", request.sandbox_id),
        ("sandbox-name", &pod.name),
        ("sandbox-namespace", &pod.namespace),
        ("sandbox-uid", &pod.uid),
        ("container-name", name),
        ("image-name", image),
    ]
    .map(|(key, value)| (format!("io.kubernetes.cri.{key}"), value.to_owned()))
    .into_iter()
    .collect()
}
