//! The kubelet's own defaults for static pods: identity, node, phase (pod-lifecycle 1.8).

use model::core::{Pod, PodStatus, Toleration};
use model::fnv::fnv1a_128;
use model::json;
use model::pod::CONFIG_HASH;

use crate::error::{Fault, FieldError, ManifestError};
use crate::origin::{Origin, Source};

/// Sets UID, name suffix, namespace, node name, hash annotation, toleration and phase.
pub(crate) fn kubelet_defaults(pod: &mut Pod, origin: &Origin<'_>) -> Result<(), ManifestError> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    if name.is_empty() {
        return Err(ManifestError::Invalid(vec![FieldError::new(
            "metadata.name",
            Fault::Required,
            "name is needed for the pod",
        )]));
    }
    let uid = match pod.metadata.uid.as_deref() {
        Some(uid) if !uid.is_empty() => uid.to_owned(),
        _ => generated_uid(pod, origin),
    };
    pod.metadata.name = Some(format!("{name}-{}", origin.node_name.to_lowercase()));
    if pod.metadata.namespace.as_deref().unwrap_or_default().is_empty() {
        pod.metadata.namespace = Some("default".to_owned());
    }
    pod.metadata.annotations.get_or_insert_default().insert(CONFIG_HASH.to_owned(), uid.clone());
    pod.metadata.uid = Some(uid);
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(origin.node_name.to_owned());
    if matches!(origin.source, Source::File(_)) {
        tolerate_every_no_execute(spec.tolerations.get_or_insert_default());
    }
    let status: &mut PodStatus = pod.status.get_or_insert_default();
    status.phase = Some("Pending".to_owned());
    Ok(())
}

fn tolerate_every_no_execute(tolerations: &mut Vec<Toleration>) {
    let wanted = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Toleration::default()
    };
    if !tolerations.contains(&wanted) {
        tolerations.push(wanted);
    }
}

/// Hash of the decoded and defaulted content and of where it came from. Comments, white space and the order of keys do
/// not count; every value does.
fn generated_uid(pod: &Pod, origin: &Origin<'_>) -> String {
    // Objects of serde_json are ordered by key, so the text is canonical. A Pod is plain data, writing it cannot fail.
    let canonical = json::value(pod).map(|v| v.to_string()).unwrap_or_default();
    let text = match origin.source {
        Source::File(path) => format!("{canonical}host:{}file:{path}", origin.node_name),
        Source::Url(url) => format!("{canonical}url:{url}"),
    };
    format!("{:032x}", fnv1a_128(text.as_bytes()))
}
