//! Whether a volume is attached to this node (node-and-resources 6.2, 6.13).

use std::collections::BTreeMap;

use model::core::Node;
use model::k8s_openapi::api::storage::v1::VolumeAttachment;

/// gRPC's `RESOURCE_EXHAUSTED`.
const EXHAUSTED: i32 = 8;

/// How far a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// It is here; what the controller tells the driver.
    Done(BTreeMap<String, String>),
    /// It is not yet.
    Waits(String),
    /// It cannot be, for now.
    Failed(String),
    /// The node has no place for another one.
    Exhausted(String),
}

/// What the Node object says: the node must have told that it wants the volume, and the controller that it is attached.
///
/// # Errors
/// What is waited for.
pub fn by_node(node: Option<&Node>, unique_name: &str) -> Result<(), String> {
    let status = node.and_then(|n| n.status.as_ref());
    let in_use = status.and_then(|s| s.volumes_in_use.as_deref()).unwrap_or_default();
    if !in_use.iter().any(|v| v == unique_name) {
        return Err(format!("volume {unique_name} is not yet in node's status"));
    }
    let attached = status.and_then(|s| s.volumes_attached.as_deref()).unwrap_or_default();
    if !attached.iter().any(|v| v.name == unique_name) {
        return Err("Volume not attached according to node status".to_owned());
    }
    Ok(())
}

/// What the VolumeAttachment says.
#[must_use]
pub fn by_attachment(found: Option<&VolumeAttachment>) -> Attachment {
    let Some(found) = found else {
        return Attachment::Waits("there is no VolumeAttachment of it yet".to_owned());
    };
    if found.metadata.deletion_timestamp.is_some() {
        return Attachment::Failed("volume attachment is being deleted".to_owned());
    }
    let status = found.status.clone().unwrap_or_default();
    if status.attached {
        return Attachment::Done(status.attachment_metadata.unwrap_or_default());
    }
    match status.attach_error {
        None => Attachment::Waits("its VolumeAttachment is not attached yet".to_owned()),
        Some(e) => {
            let message = e.message.unwrap_or_default();
            if e.error_code == Some(EXHAUSTED) { Attachment::Exhausted(message) } else { Attachment::Failed(message) }
        }
    }
}
