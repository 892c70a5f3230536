//! What users read: reasons, events, messages. Verbatim a kubelet's.

use crate::reference::ReferenceError;

/// Waiting reason of a failed pull.
pub const ERR_IMAGE_PULL: &str = "ErrImagePull";
/// Waiting reason between pulls.
pub const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";
/// Waiting and event reason: absent, and must not be pulled.
pub const ERR_IMAGE_NEVER_PULL: &str = "ErrImageNeverPull";
/// Waiting reason: the name is no image reference.
pub const INVALID_IMAGE_NAME: &str = "InvalidImageName";
/// Waiting reason: the runtime could not say what it has.
pub const IMAGE_INSPECT_ERROR: &str = "ImageInspectError";
/// Waiting reason, and prefix of the runtime's text: registry cannot be reached.
pub const REGISTRY_UNAVAILABLE: &str = "RegistryUnavailable";
/// Waiting reason, and prefix of the runtime's text: signature refused.
pub const SIGNATURE_FAILED: &str = "SignatureValidationFailed";

/// Event reason of a start of a pull.
pub const PULLING: &str = "Pulling";
/// Event reason: it is there.
pub const PULLED: &str = "Pulled";
/// Event reason of a failed pull.
pub const FAILED: &str = "Failed";
/// Event reason between pulls.
pub const BACK_OFF: &str = "BackOff";
/// Event reason of a name or an inspection that failed.
pub const INSPECT_FAILED: &str = "InspectFailed";

/// Error of a pull that came too fast.
pub const QPS_EXCEEDED: &str = "pull QPS exceeded";

/// The image is there. The end of the sentence is that of `KubeletEnsureSecretPulledImages` (on since 1.35).
#[must_use]
pub fn present(image: &str) -> String {
    format!("Container image {} already present on machine and can be accessed by the pod", quoted(image))
}

/// The same without that gate.
#[must_use]
pub fn present_unverified(image: &str) -> String {
    format!("Container image {} already present on machine", quoted(image))
}

/// It must not be pulled.
#[must_use]
pub fn never_pull(image: &str) -> String {
    format!("Container image {} is not present with pull policy of Never", quoted(image))
}

/// A pull begins.
#[must_use]
pub fn pulling(image: &str) -> String {
    format!("Pulling image {}", quoted(image))
}

/// A pull ended well. Durations as a Go program prints them.
#[must_use]
pub fn pulled(image: &str, took: &str, with_waiting: &str, size_bytes: u64) -> String {
    format!(
        "Successfully pulled image {} in {took} ({with_waiting} including waiting). Image size: {size_bytes} bytes.",
        quoted(image)
    )
}

/// A pull failed.
#[must_use]
pub fn pull_failed(image: &str, error: &str) -> String {
    format!("Failed to pull image {}: {error}", quoted(image))
}

/// A pull must wait.
#[must_use]
pub fn back_off(image: &str) -> String {
    format!("Back-off pulling image {}", quoted(image))
}

/// Waiting message between pulls: names the failure before, where it is known.
#[must_use]
pub fn back_off_waiting(image: &str, previous: Option<&str>) -> String {
    let head = back_off(image);
    previous.map_or(head.clone(), |p| format!("{head}: {p}"))
}

/// The runtime could not say what it has.
#[must_use]
pub fn inspect_failed(image: &str, error: &str) -> String {
    format!("Failed to inspect image {}: {error}", quoted(image))
}

/// The name is no reference.
#[must_use]
pub fn bad_name(image: &str, error: &ReferenceError) -> String {
    format!("Failed to apply default image tag {}: couldn't parse image name {}: {error}", quoted(image), quoted(image))
}

/// A Go `%q`, as far as image names need it.
fn quoted(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
