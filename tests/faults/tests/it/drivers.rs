//! CSI drivers and claims for their volumes. What controllers of the cluster do about these, the test does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use csi_api::v1::node_service_capability::rpc::Type as Ability;
use fakes::{FakeApi, FakeDriver};
use model::core::{AttachedVolume, Node, PersistentVolumeClaim};
use ports::host::{FileKind, HostFs};
use serde_json::{Value, json};
use sim::{DISK, NODE_NAME, SimNode};
use volume_plan::names::{attachment_name, unique_name};

use crate::{luns, secs};

/// The driver whose volumes are claimed.
pub(crate) const DRIVER: &str = "resident.example";
/// What a controller takes to attach.
const ATTACHES: u64 = 2;

pub(crate) fn socket(name: &str) -> PathBuf {
    Path::new(DISK).join("root/plugins_registry").join(format!("{name}-reg.sock"))
}

/// A driver comes, or makes its socket anew.
pub(crate) fn comes(node: &SimNode, name: &str) {
    let capabilities = vec![Ability::StageUnstageVolume, Ability::ExpandVolume];
    comes_as(node, name, FakeDriver { capabilities, ..FakeDriver::driver(name) });
}

/// A plugin comes with a socket of this name, whatever it says of itself.
pub(crate) fn comes_as(node: &SimNode, name: &str, driver: FakeDriver) {
    let socket = socket(name);
    let folder = socket.parent().expect("a socket has a folder");
    node.world.files.create_dir(folder, 0o750).expect("the disk takes a folder");
    if node.world.has(&socket) {
        node.world.files.remove_file(&socket).expect("the disk gives a socket back");
    }
    node.world.plugins.serve(&socket, driver);
    node.world.files.special(&socket, FileKind::Socket);
    node.world.watch.written(name);
}

/// Volumes of the driver are attached before they are used.
pub(crate) fn announce(api: &FakeApi) {
    let spec = json!({ "attachRequired": true, "podInfoOnMount": true, "nodeAllocatableUpdatePeriodSeconds": 30 });
    api.put_driver(DRIVER, spec);
}

fn handle(claim: &str) -> String {
    format!("handle-{claim}")
}

/// The volume of a pod that stands for a claim.
pub(crate) fn volume(claim: &str) -> Value {
    json!({ "name": "disk", "persistentVolumeClaim": { "claimName": claim } })
}

/// A claim that is bound to a volume of the driver, which has grown since and has to grow on the node.
pub(crate) fn claim(api: &FakeApi, name: &str) {
    let volume = json!({
        "csi": { "driver": DRIVER, "volumeHandle": handle(name), "fsType": "ext4" },
        "accessModes": ["ReadWriteOnce"],
        "capacity": { "storage": "2Gi" },
    });
    let status = json!({
        "capacity": { "storage": "1Gi" },
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "NodeResizePending" },
    });
    api.put_claim(name, volume, json!({ "resources": { "requests": { "storage": "2Gi" } } }), status);
}

/// The volumes of these claims and these disks are attached in a moment, and no others.
pub(crate) fn attach(node: &SimNode, claims: &[String], luns: &[usize]) {
    let (api, handles) = (node.api().clone(), claims.iter().map(|c| handle(c)).collect::<Vec<_>>());
    let disks: Vec<String> = luns.iter().map(|lun| luns::unique_name(*lun)).collect();
    tokio::task::spawn_local(async move {
        tokio::time::sleep(secs(ATTACHES)).await;
        for handle in &handles {
            let name = attachment_name(handle, DRIVER, NODE_NAME);
            let spec = json!({ "attacher": DRIVER, "nodeName": NODE_NAME, "source": {} });
            let object = json!({ "metadata": { "name": name }, "spec": spec, "status": { "attached": true } });
            api.put_json(&format!("/apis/storage.k8s.io/v1/volumeattachments/{name}"), object);
        }
        api.change::<Node>(None, NODE_NAME, |node| {
            let names = handles.iter().map(|h| unique_name(DRIVER, h)).chain(disks);
            let all = names.map(|name| AttachedVolume { name, device_path: String::new() }).collect();
            node.status.get_or_insert_default().volumes_attached = Some(all);
        });
    });
}

/// What the Node says that it uses.
pub(crate) fn in_use(node: &SimNode) -> BTreeSet<String> {
    let object = node.api().read::<Node>(None, NODE_NAME);
    object.and_then(|n| n.status?.volumes_in_use).into_iter().flatten().collect()
}

/// Whether the volume of a claim has grown, as its claim says.
fn has_grown(node: &SimNode, claim: &str) -> bool {
    let object = node.api().read::<PersistentVolumeClaim>(Some("default"), claim);
    let capacity = object.and_then(|c| c.status?.capacity);
    capacity.and_then(|c| c.get("storage").cloned()).is_some_and(|size| size.0 == "2Gi")
}

/// Whether the volumes of these claims are staged and published, each once, have grown, the Node says so, nothing of others is left, and
/// drivers were asked for nothing that they should not be.
pub(crate) fn volumes_are(node: &SimNode, claims: &[String]) -> Result<(), String> {
    let mut wanted: Vec<String> = claims.iter().map(|c| handle(c)).collect();
    wanted.sort();
    let (staged, published, wrong) = node.world.plugins.volumes(|v| (v.staged(), v.published(), v.wrong().to_vec()));
    for (what, mut found) in [("staged", staged), ("published", published)] {
        found.sort();
        if found != wanted {
            return Err(format!("{what}: {found:?}, not {wanted:?}"));
        }
    }
    if let Some(claim) = claims.iter().find(|c| !has_grown(node, c)) {
        return Err(format!("the volume of {claim} has not grown"));
    }
    let used: BTreeSet<String> = wanted.iter().map(|h| unique_name(DRIVER, h)).collect();
    let mut told = in_use(node);
    told.retain(|name| name.starts_with("kubernetes.io/csi/"));
    if told != used {
        return Err(format!("in use by the Node: {told:?}, not {used:?}"));
    }
    let folder = Path::new(DISK).join("root/plugins/kubernetes.io/csi").join(DRIVER);
    let left = node.world.files.list_dir(&folder).map_or(0, |entries| entries.len());
    if left != wanted.len() {
        return Err(format!("{left} folders of staged volumes, not {}", wanted.len()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("a driver was asked wrongly: {wrong:?}")) }
}
