//! Which namespaces a pod shares with whom.

use cri_api::v1::{IdMapping, NamespaceMode, NamespaceOption, PodSandboxConfig, UserNamespace as CriUserNamespace};
use model::core::Pod;
use model::pod;
use model::userns::UserNamespace;

/// The mappings of a pod in the CRI's form: one range, the same for users and groups.
pub(crate) fn mappings(userns: Option<UserNamespace>) -> Vec<IdMapping> {
    userns.map(|u| IdMapping { host_id: u.host_id, container_id: 0, length: u.length }).into_iter().collect()
}

/// Namespaces of a pod and its containers. `target` is the container whose processes an ephemeral one sees; it has effect
/// only where each container has its own process namespace.
#[must_use]
pub fn namespace_options(pod: &Pod, userns: Option<UserNamespace>, target: Option<&str>) -> NamespaceOption {
    let spec = pod.spec.as_ref();
    let node_or_pod = |node: bool| if node { NamespaceMode::Node } else { NamespaceMode::Pod };
    let mut pid = if spec.and_then(|s| s.host_pid) == Some(true) {
        NamespaceMode::Node
    } else if spec.and_then(|s| s.share_process_namespace) == Some(true) {
        NamespaceMode::Pod
    } else {
        NamespaceMode::Container
    };
    let mut target_id = String::new();
    if let (NamespaceMode::Container, Some(target)) = (pid, target) {
        pid = NamespaceMode::Target;
        target_id = target.to_owned();
    }
    NamespaceOption {
        network: node_or_pod(pod::is_host_network(pod)).into(),
        pid: pid.into(),
        ipc: node_or_pod(spec.and_then(|s| s.host_ipc) == Some(true)).into(),
        target_id,
        userns_options: Some(CriUserNamespace {
            mode: node_or_pod(userns.is_none()).into(),
            uids: mappings(userns),
            gids: mappings(userns),
        }),
    }
}

/// The users of the pod in this sandbox; `None`: the host's.
#[must_use]
pub fn user_namespace(sandbox: &PodSandboxConfig) -> Option<UserNamespace> {
    let context = sandbox.linux.as_ref()?.security_context.as_ref()?;
    let range = context.namespace_options.as_ref()?.userns_options.as_ref()?.uids.first()?;
    Some(UserNamespace { host_id: range.host_id, length: range.length })
}
