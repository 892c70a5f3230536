//! Claims and the CSI driver of their volumes. What controllers of a cluster do about these is done already.

use std::path::{Path, PathBuf};

use csi_api::v1::node_service_capability::rpc::Type as Ability;
use fakes::{FakeApi, FakeDriver};
use ports::host::{FileKind, HostFs};
use serde_json::json;
use sim::{DISK, SimNode};

const DRIVER: &str = "disks.example";

fn socket() -> PathBuf {
    Path::new(DISK).join("root/plugins_registry/disks-reg.sock")
}

/// The API server knows the driver.
pub(super) fn announce(api: &FakeApi) {
    api.put_driver(DRIVER, json!({ "attachRequired": false, "podInfoOnMount": true }));
}

/// The driver is there, and its socket, if the disk takes it.
pub(super) fn serve(node: &SimNode) {
    let (socket, files) = (socket(), &node.world.files);
    let capabilities = vec![Ability::StageUnstageVolume];
    node.world.plugins.serve(&socket, FakeDriver { capabilities, ..FakeDriver::driver(DRIVER) });
    let has_folder = socket.parent().is_some_and(|folder| files.create_dir(folder, 0o750).is_ok());
    if has_folder && matches!(files.stat_link(&socket), Ok(None)) {
        files.special(&socket, FileKind::Socket);
        node.world.watch.written("disks-reg.sock");
    }
}

/// A claim that is bound to a volume of the driver.
pub(super) fn put(api: &FakeApi, claim: &str) {
    let volume = json!({
        "csi": { "driver": DRIVER, "volumeHandle": format!("handle-{claim}"), "fsType": "ext4" },
        "accessModes": ["ReadWriteOnce"],
        "capacity": { "storage": "1Gi" },
    });
    let size = json!({ "storage": "1Gi" });
    api.put_claim(claim, volume, json!({ "resources": { "requests": size } }), json!({ "capacity": size }));
}

/// What drivers were asked wrongly, and volumes that are left of pods which are not wanted.
pub(super) fn left(node: &SimNode, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let (staged, published, wrong) = node.world.plugins.volumes(|v| (v.staged(), v.published(), v.wrong().to_vec()));
    let mut left: Vec<String> = wrong.into_iter().map(|text| format!("a driver was asked wrongly: {text}")).collect();
    for (how, handles) in [("staged", staged), ("published", published)] {
        for handle in handles {
            let claim = handle.trim_start_matches("handle-");
            let pod = claim.rsplit_once('-').map_or(claim, |(pod, _)| pod);
            if !wanted(pod) {
                left.push(format!("the volume {claim} is {how}"));
            }
        }
    }
    left
}
