//! Names that are made of others: of directories, attachments, volumes (node-and-resources 6.13).

use model::PodUid;
use sha2::{Digest, Sha256};

fn hex(parts: &[&str]) -> String {
    use std::fmt::Write as _;
    let mut hash = Sha256::new();
    parts.iter().for_each(|p| hash.update(p.as_bytes()));
    hash.finalize().iter().fold(String::new(), |mut out, byte| {
        let _infallible = write!(out, "{byte:02x}");
        out
    })
}

/// Name of the directory of a volume below that of its driver.
#[must_use]
pub fn handle_hash(handle: &str) -> String {
    hex(&[handle])
}

/// What a driver calls a volume that stands in a pod.
#[must_use]
pub fn inline_handle(uid: &PodUid, volume: &str) -> String {
    format!("csi-{}", hex(&[uid.as_str(), volume]))
}

/// Name of the VolumeAttachment of a volume on a node.
#[must_use]
pub fn attachment_name(handle: &str, driver: &str, node: &str) -> String {
    format!("csi-{}", hex(&[handle, driver, node]))
}

/// Name by which the API server and the attach controller know a volume.
#[must_use]
pub fn unique_name(driver: &str, handle: &str) -> String {
    format!("kubernetes.io/csi/{driver}^{handle}")
}

/// Name of a directory of this node that was set aside, or of its disk.
#[must_use]
pub fn local_name(volume: &str) -> String {
    format!("{LOCAL}{volume}")
}

/// Name of what a server shares with a pod.
#[must_use]
pub fn share_name(uid: &PodUid, volume: &str) -> String {
    format!("{NFS}{uid}-{volume}")
}

/// Name of a path of the host that a pod has by a claim.
#[must_use]
pub fn host_path_name(uid: &PodUid, volume: &str) -> String {
    format!("{HOST_PATH}{uid}-{volume}")
}

/// The API's name of the kind that a volume of this name is of.
#[must_use]
pub fn kind(name: &str) -> &'static str {
    let kinds = [(LOCAL, "local"), (HOST_PATH, "hostPath"), (NFS, "nfs"), (ISCSI, "iscsi"), (FC, "fc")];
    kinds.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map_or("csi", |(_, kind)| kind)
}

/// Whether a controller of the cluster may have to attach the volume of this name first.
#[must_use]
pub fn is_attachable(name: &str) -> bool {
    !matches!(kind(name), "local" | "hostPath" | "nfs")
}

const LOCAL: &str = "kubernetes.io/local-volume/";
const HOST_PATH: &str = "kubernetes.io/host-path/";
const NFS: &str = "kubernetes.io/nfs/";
const ISCSI: &str = "kubernetes.io/iscsi/";
const FC: &str = "kubernetes.io/fc/";

/// That a text can be an argument of a program of the host, or a line of its files, and means nothing else there. `what`: the field.
///
/// # Errors
/// It cannot.
pub fn as_argument(what: &str, text: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("{what} {text:?} {why}"));
    if text.starts_with('-') {
        return refused("begins with a dash: a program would take it for an option");
    }
    if text.chars().any(char::is_control) { refused("has a control character in it") } else { Ok(()) }
}
