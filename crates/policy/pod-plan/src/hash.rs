//! The container hash that says whether a running container still is what the specification asks for (pod-lifecycle 4.7).
//!
//! It must equal a Go kubelet's bit for bit: containers that a kubelet started carry it in an annotation, and a mismatch
//! restarts them.

use std::fmt::Write as _;

use model::core::Container;
use model::fnv::fnv1a_32;
use model::go_json;
use model::runtime::ContainerObservation;

/// Hash of what identifies a container: image and name.
#[must_use]
pub fn container_hash(name: &str, image: &str) -> u64 {
    let mut json = String::with_capacity(32 + name.len() + image.len());
    json.push_str("{\"image\":");
    go_json::push_string(&mut json, image);
    json.push_str(",\"name\":");
    go_json::push_string(&mut json, name);
    json.push('}');

    let mut text = String::with_capacity(12 + 4 * json.len());
    text.push_str("([]uint8)[");
    for (i, b) in json.bytes().enumerate() {
        if i > 0 {
            text.push(' ');
        }
        let _ = write!(text, "{b}");
    }
    text.push(']');
    u64::from(fnv1a_32(text.as_bytes()))
}

/// Hash of a container in a specification.
#[must_use]
pub fn spec_hash(container: &Container) -> u64 {
    container_hash(&container.name, container.image.as_deref().unwrap_or_default())
}

/// The value of annotation `io.kubernetes.container.hash`: lower-case hex without padding.
#[must_use]
pub fn hash_annotation(container: &Container) -> String {
    format!("{:x}", spec_hash(container))
}

/// Whether an instance was made from another name or image. An absent or unreadable annotation counts as 0, as in a
/// kubelet, and so as changed.
#[must_use]
pub fn definition_changed(container: &Container, instance: &ContainerObservation) -> bool {
    instance.hash.unwrap_or(0) != spec_hash(container)
}
