//! The kubelet's own defaults for static pods: identity, node, phase (pod-lifecycle 1.8).

use model::core::{Pod, PodStatus, Toleration};
use model::json;
use model::pod::CONFIG_HASH;

use crate::error::{Fault, FieldError, ManifestError};
use crate::origin::{Origin, Source};

const FNV128_OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV128_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

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
    let (tag, place) = match origin.source {
        Source::File(path) => ("file:", path),
        Source::Url(url) => ("url:", url),
    };
    let mut hash = FNV128_OFFSET;
    hash = fnv1a(hash, canonical.as_bytes());
    if tag == "file:" {
        hash = fnv1a(hash, b"host:");
        hash = fnv1a(hash, origin.node_name.as_bytes());
    }
    hash = fnv1a(hash, tag.as_bytes());
    hash = fnv1a(hash, place.as_bytes());
    format!("{hash:032x}")
}

fn fnv1a(hash: u128, bytes: &[u8]) -> u128 {
    bytes.iter().fold(hash, |h, b| (h ^ u128::from(*b)).wrapping_mul(FNV128_PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_the_published_fnv_vectors_say() {
        assert_eq!(format!("{:032x}", fnv1a(FNV128_OFFSET, b"")), "6c62272e07bb014262b821756295c58d");
        assert_eq!(format!("{:032x}", fnv1a(FNV128_OFFSET, b"a")), "d228cb696f1a8caf78912b704e4a8964");
    }
}
