//! `vol_data.json`: what a node must know to take a CSI volume away again. It is written to the disk before the driver is called, so
//! it is also the intent: what has such a file may be staged or published, whoever wrote it and whatever became of the call. A
//! kubelet reads and writes the same file.

use std::collections::BTreeMap;

use crate::names::attachment_name;
use crate::source::{Csi, Resolved};

/// Most bytes of such a file.
pub const MAX_BYTES: u64 = 1 << 20;
const CONTEXT: &str = "seLinuxMountContext";

/// What the file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeData {
    /// The driver.
    pub driver: String,
    /// What the driver calls the volume.
    pub handle: String,
    /// It stands in a pod and was never staged.
    pub is_inline: bool,
    /// The SELinux context that it is mounted with; empty: none.
    pub context: String,
}

/// File beside the directory where a volume is staged. `context`: of SELinux, as in [`VolumeData`].
#[must_use]
pub fn of_stage(csi: &Csi, context: &str) -> Vec<u8> {
    let fields = BTreeMap::from([("volumeHandle", csi.handle.as_str()), ("driverName", csi.driver.as_str())]);
    file(with_context(fields, context))
}

/// File beside the directory where a volume is published to a pod. `context`: of SELinux, as in [`VolumeData`].
#[must_use]
pub fn of_publish(volume: &Resolved, csi: &Csi, node: &str, context: &str) -> Vec<u8> {
    let attachment = attachment_name(&csi.handle, &csi.driver, node);
    let fields = BTreeMap::from([
        ("specVolID", volume.name.as_str()),
        ("volumeHandle", &csi.handle),
        ("driverName", &csi.driver),
        ("nodeName", node),
        ("attachmentID", &attachment),
        ("volumeLifecycleMode", if csi.is_inline { "Ephemeral" } else { "Persistent" }),
    ]);
    file(with_context(fields, context))
}

fn with_context<'a>(mut fields: BTreeMap<&'a str, &'a str>, context: &'a str) -> BTreeMap<&'a str, &'a str> {
    fields.extend((!context.is_empty()).then_some((CONTEXT, context)));
    fields
}

/// File of a raw volume, for the node and for all pods.
#[must_use]
pub fn of_device(volume: &Resolved, csi: &Csi, node: &str) -> Vec<u8> {
    let attachment = attachment_name(&csi.handle, &csi.driver, node);
    file(BTreeMap::from([
        ("specVolID", volume.name.as_str()),
        ("volumeHandle", &csi.handle),
        ("driverName", &csi.driver),
        ("nodeName", node),
        ("attachmentID", &attachment),
    ]))
}

fn file(fields: BTreeMap<&str, &str>) -> Vec<u8> {
    let fields: serde_json::Map<_, _> = fields.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
    format!("{}\n", serde_json::Value::Object(fields)).into_bytes()
}

/// Reads such a file.
///
/// # Errors
/// It is none, or names no driver or volume.
pub fn read(text: &[u8]) -> Result<VolumeData, String> {
    let fields: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| format!("vol_data.json cannot be read: {e}"))?;
    let field = |name: &str| match fields[name].as_str() {
        Some(value) if !value.is_empty() => Ok(value.to_owned()),
        _ => Err(format!("vol_data.json has no {name}")),
    };
    let is_inline = fields["volumeLifecycleMode"] == "Ephemeral";
    let context = fields[CONTEXT].as_str().unwrap_or_default().to_owned();
    Ok(VolumeData { driver: field("driverName")?, handle: field("volumeHandle")?, is_inline, context })
}
