//! Volumes of kinds that CSI drivers took over.

use contract::volume::{ListVolumes, VolumeStage};
use csi_api::v1::node_service_capability::rpc::Type as Ability;
use metrics::volumes::CSI_OPERATION;
use ports::grpc::Code;
use serde_json::{Value, json};

use super::cluster::{Cluster, pod_of, pod_with, secs, with_cluster};
use super::csi::Lie;

const DRIVER: &str = "disk.csi.azure.com";
const DISK: &str = "/subscriptions/s/d";

fn driver(c: &Cluster) {
    let object = json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": false } });
    c.api.put_json(&format!("/apis/storage.k8s.io/v1/csidrivers/{DRIVER}"), object);
    c.csi.can(&[Ability::StageUnstageVolume, Ability::ExpandVolume]);
}

fn disk() -> Value {
    json!({ "diskName": "d", "diskURI": DISK, "kind": "Managed" })
}

/// Statistics are asked for by what is told of it here. Without a claim nobody asked for more room, and a kubelet lets it not grow.
#[test]
fn one_that_stands_in_a_pod_is_told_as_its_drivers_and_never_grows() {
    with_cluster(async |c| {
        driver(&c);
        c.mount(&pod_of("u1", vec![json!({ "name": "v", "azureDisk": disk() })], json!({}))).await.unwrap();
        c.csi.calls();
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        assert_eq!(rows.len(), 1, "{rows:?}");
        let row = &rows[0];
        let told = [&row.volume, &row.kind, &row.driver, &row.handle, &row.claim].map(String::as_str);
        assert_eq!(told, ["v", "csi", DRIVER, DISK, ""]);
        let path = c.host.path("pods/u1/volumes/kubernetes.io~csi/~subscriptions~s~d/mount");
        assert_eq!((row.path.as_ref(), row.stage, row.raw), (Some(&path), VolumeStage::Mounted, false));
        secs(600).await;
        assert_eq!((c.csi.calls(), c.bench.told()), (vec![], vec![]), "nobody let it grow, and nothing failed");
    });
}

#[test]
fn one_behind_a_claim_that_cannot_grow_is_told_as_any_other() {
    with_cluster(async |c| {
        driver(&c);
        let claim = |size: &str, status: Value| {
            c.claim("a", json!({ "csi": null, "azureDisk": disk(), "capacity": { "storage": size } }));
            let claim = json!({
                "metadata": { "name": "a", "namespace": "default", "uid": "uid-a" },
                "spec": { "volumeName": "pv-a", "resources": { "requests": { "storage": size } } }, "status": status,
            });
            c.api.put_json("/api/v1/namespaces/default/persistentvolumeclaims/a", claim);
        };
        claim("1Gi", json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } }));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.csi.lie("expand", &[Lie::Refuse(Code::Internal)]);
        let resized = json!({
            "phase": "Bound", "capacity": { "storage": "1Gi" }, "allocatedResources": { "storage": "2Gi" },
            "allocatedResourceStatuses": { "storage": "NodeResizePending" },
        });
        claim("2Gi", resized);
        secs(65).await;
        let error = "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = because";
        let failed = "NodeExpandVolume.NodeExpandVolume failed for volume \"pv-a\"";
        let grown = "Normal FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume \"pv-a\" n1";
        let told = c.bench.told();
        assert!(told.contains(&format!("Warning VolumeResizeFailed: {failed} : {error}")), "{told:?}");
        assert!(told.contains(&grown.to_owned()), "the next try is good: {told:?}");
        let method = "/csi.v1.Node/NodeExpandVolume";
        let counted = CSI_OPERATION.with_label_values(&[DRIVER, "Internal", method, "true"]);
        assert_eq!(counted.get_sample_count(), 1, "as of a volume that is written as one of another kind");
    });
}
