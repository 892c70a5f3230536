//! Labels, annotations and log paths of sandboxes and containers (pod-lifecycle 5.2).

use std::collections::BTreeMap;

use model::core::{Container, Pod};
use model::pod::{self, LABEL_CONTAINER_NAME, LABEL_POD_NAME, LABEL_POD_NAMESPACE, LABEL_POD_UID};

use crate::gotext;

/// Hash of the container's definition, lower-case hex.
pub const CONTAINER_HASH: &str = "io.kubernetes.container.hash";
/// How often the container was restarted, decimal.
pub const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
/// Path of the termination message inside the container.
pub const TERMINATION_MESSAGE_PATH: &str = "io.kubernetes.container.terminationMessagePath";
/// `File` or `FallbackToLogsOnError`.
pub const TERMINATION_MESSAGE_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
/// JSON of the preStop handler.
pub const PRE_STOP_HANDLER: &str = "io.kubernetes.container.preStopHandler";
/// JSON of the container's ports.
pub const CONTAINER_PORTS: &str = "io.kubernetes.container.ports";
/// Grace of the pod's deletion request in seconds.
pub const DELETION_GRACE_PERIOD: &str = "io.kubernetes.pod.deletionGracePeriod";
/// Grace of the pod's specification in seconds.
pub const TERMINATION_GRACE_PERIOD: &str = "io.kubernetes.pod.terminationGracePeriod";

fn pod_labels(pod: &Pod) -> [(String, String); 3] {
    [
        (LABEL_POD_NAME.to_owned(), pod::name(pod).to_owned()),
        (LABEL_POD_NAMESPACE.to_owned(), pod::namespace(pod).to_owned()),
        (LABEL_POD_UID.to_owned(), pod.metadata.uid.clone().unwrap_or_default()),
    ]
}

/// Labels of a sandbox: those of the pod, and the three that identify it (which win).
#[must_use]
pub fn sandbox_labels(pod: &Pod) -> BTreeMap<String, String> {
    let mut labels = pod.metadata.labels.clone().unwrap_or_default();
    labels.extend(pod_labels(pod));
    labels
}

/// Annotations of a sandbox: the pod's, verbatim.
#[must_use]
pub fn sandbox_annotations(pod: &Pod) -> BTreeMap<String, String> {
    pod.metadata.annotations.clone().unwrap_or_default()
}

/// Labels of a container: exactly four, never the pod's own.
#[must_use]
pub fn container_labels(pod: &Pod, container: &Container) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from(pod_labels(pod));
    labels.insert(LABEL_CONTAINER_NAME.to_owned(), container.name.clone());
    labels
}

/// Annotations of a container. `extra` come from device plugins; the node's own keys win over them.
#[must_use]
pub fn container_annotations(
    pod: &Pod,
    container: &Container,
    restart_count: u32,
    hash: u64,
    extra: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut out = extra.clone();
    let mut set = |key: &str, value: String| out.insert(key.to_owned(), value);
    set(CONTAINER_HASH, format!("{hash:x}"));
    set(RESTART_COUNT, restart_count.to_string());
    set(TERMINATION_MESSAGE_PATH, container.termination_message_path.clone().unwrap_or_default());
    set(TERMINATION_MESSAGE_POLICY, container.termination_message_policy.clone().unwrap_or_default());
    if let Some(grace) = pod.metadata.deletion_grace_period_seconds {
        set(DELETION_GRACE_PERIOD, grace.to_string());
    }
    if let Some(grace) = pod::spec_grace_seconds(pod) {
        set(TERMINATION_GRACE_PERIOD, grace.to_string());
    }
    if let Some(handler) = container.lifecycle.as_ref().and_then(|l| l.pre_stop.as_ref()) {
        set(PRE_STOP_HANDLER, gotext::handler_json(handler));
    }
    match container.ports.as_deref() {
        None | Some([]) => {}
        Some(ports) => {
            set(CONTAINER_PORTS, gotext::ports_json(ports));
        }
    }
    out
}

/// `<logs>/<namespace>_<name>_<uid>`: directory of all logs of a pod.
#[must_use]
pub fn pod_log_dir(pod_logs_dir: &str, pod: &Pod) -> String {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    format!("{}/{}_{}_{uid}", pod_logs_dir.trim_end_matches('/'), pod::namespace(pod), pod::name(pod))
}

/// `<container>/<restart count>.log`, relative to the pod's log directory.
#[must_use]
pub fn container_log_path(container: &str, restart_count: u32) -> String {
    format!("{container}/{restart_count}.log")
}

#[cfg(test)]
mod tests;
