//! Which namespaces a container gets: its own, the pod's, another container's, the node's.

use std::path::PathBuf;

use cri_api::v1;
use oci_spec::runtime::{LinuxIdMapping, LinuxNamespace, LinuxNamespaceType};

use crate::facts::Request;
use crate::mappings::mappings;
use crate::{SpecError, context};

/// Namespaces of a container, and the mappings of its users.
pub(crate) struct Namespaces {
    pub(crate) all: Vec<LinuxNamespace>,
    pub(crate) uids: Vec<LinuxIdMapping>,
    pub(crate) gids: Vec<LinuxIdMapping>,
}

/// What a pod asks for of its namespaces.
#[must_use]
pub fn pod_namespace_options(sandbox: &v1::PodSandboxConfig) -> Option<&v1::NamespaceOption> {
    sandbox.linux.as_ref()?.security_context.as_ref()?.namespace_options.as_ref()
}

fn options(config: &v1::ContainerConfig) -> Option<&v1::NamespaceOption> {
    context::security(config)?.namespace_options.as_ref()
}

/// Whether the pod uses the node's network.
pub(crate) fn host_network(sandbox: &v1::PodSandboxConfig) -> bool {
    pod_namespace_options(sandbox).is_some_and(|o| o.network() == v1::NamespaceMode::Node)
}

/// Whether the container has users of its own.
pub(crate) fn has_users(config: &v1::ContainerConfig) -> bool {
    let users = options(config).and_then(|o| o.userns_options.as_ref());
    users.is_some_and(|u| u.mode() == v1::NamespaceMode::Pod)
}

/// Whether the container sees only its own cgroups: with cgroup v2, unless it is privileged.
pub(crate) fn own_cgroups(request: &Request<'_>) -> bool {
    request.node.cgroup_v2 && !context::is_privileged(request.config)
}

/// The namespaces of a container.
///
/// # Errors
/// A mode that does not go with its kind, a namespace or target that is not there, users unlike the pod's.
pub(crate) fn namespaces(request: &Request<'_>) -> Result<Namespaces, SpecError> {
    let none = v1::NamespaceOption::default();
    let options = options(request.config).unwrap_or(&none);
    let pod = request.namespaces;
    let mut all = vec![made(LinuxNamespaceType::Mount, None)];
    let pods = pod_namespace_options(request.sandbox).unwrap_or(&none);
    if joins("network", options.network(), pods.network())? {
        all.push(made(LinuxNamespaceType::Network, Some(there(&pod.network, "network")?)));
        all.push(made(LinuxNamespaceType::Uts, Some(there(&pod.uts, "UTS")?)));
    }
    if joins("IPC", options.ipc(), pods.ipc())? {
        all.push(made(LinuxNamespaceType::Ipc, Some(there(&pod.ipc, "IPC")?)));
    }
    all.extend(pids(request, options, pods)?);
    if own_cgroups(request) {
        all.push(made(LinuxNamespaceType::Cgroup, None));
    }
    let (mut uids, mut gids) = (Vec::new(), Vec::new());
    if let Some(users) = users(request, options)? {
        all.push(made(LinuxNamespaceType::User, Some(there(&pod.user, "user")?)));
        (uids, gids) = (mappings(&users.uids)?, mappings(&users.gids)?);
    }
    Ok(Namespaces { all, uids, gids })
}

fn made(kind: LinuxNamespaceType, path: Option<PathBuf>) -> LinuxNamespace {
    let mut namespace = LinuxNamespace::default();
    namespace.set_typ(kind).set_path(path);
    namespace
}

fn there(path: &Option<PathBuf>, kind: &'static str) -> Result<PathBuf, SpecError> {
    path.clone().ok_or(SpecError::NoNamespace(kind))
}

/// Whether a namespace that containers of a pod always share is the pod's own. Who asks for the pod's gets the node's where the pod has
/// that.
fn joins(kind: &'static str, mode: v1::NamespaceMode, pods: v1::NamespaceMode) -> Result<bool, SpecError> {
    match mode {
        v1::NamespaceMode::Pod => Ok(pods != v1::NamespaceMode::Node),
        v1::NamespaceMode::Node => Ok(false),
        other => Err(SpecError::NamespaceMode { kind, mode: other.into() }),
    }
}

fn pids(
    request: &Request<'_>,
    options: &v1::NamespaceOption,
    pods: &v1::NamespaceOption,
) -> Result<Option<LinuxNamespace>, SpecError> {
    let path = match options.pid() {
        v1::NamespaceMode::Node => return Ok(None),
        v1::NamespaceMode::Container => None,
        v1::NamespaceMode::Pod if pods.pid() == v1::NamespaceMode::Node => return Ok(None),
        v1::NamespaceMode::Pod => Some(there(&request.namespaces.pid, "PID")?),
        v1::NamespaceMode::Target => {
            let pid = request.target_pid.ok_or(SpecError::NoTarget)?;
            Some(format!("/proc/{pid}/ns/pid").into())
        }
    };
    Ok(Some(made(LinuxNamespaceType::Pid, path)))
}

/// The container's user namespace, which must be the pod's.
fn users<'a>(
    request: &Request<'a>,
    options: &'a v1::NamespaceOption,
) -> Result<Option<&'a v1::UserNamespace>, SpecError> {
    let mine = options.userns_options.as_ref().filter(|u| u.mode() == v1::NamespaceMode::Pod);
    let pods = pod_namespace_options(request.sandbox).and_then(|o| o.userns_options.as_ref());
    let pods = pods.filter(|u| u.mode() == v1::NamespaceMode::Pod);
    if mine != pods {
        return Err(SpecError::UserNamespaceDiffers);
    }
    let Some(users) = mine else { return Ok(None) };
    if users.uids.len() != 1 || users.gids.len() != 1 {
        return Err(SpecError::UserNamespaceMappings);
    }
    Ok(Some(users))
}
