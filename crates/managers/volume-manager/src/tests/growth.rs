//! Volumes that their controllers made larger.

use csi_api::v1::node_service_capability::rpc::Type as Ability;
use model::core::PersistentVolumeClaim;
use ports::grpc::Code;
use serde_json::{Value, json};

use super::cluster::{Cluster, DRIVER, pod_of, pod_with, secs, spawn, with_cluster};
use super::csi::Lie;

const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/a";

/// The claim `a` of 1Gi, bound to a volume of this size, as a controller leaves it.
fn claim(c: &Cluster, volume: &str, status: &Value) {
    let secret = json!({ "namespace": "default", "name": "s" });
    let csi = json!({ "driver": DRIVER, "volumeHandle": "h-a", "fsType": "ext4", "nodeExpandSecretRef": secret });
    c.claim("a", json!({ "csi": csi, "capacity": { "storage": volume }, "mountOptions": ["noatime"] }));
    let mut told = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" } });
    for (key, value) in status.as_object().unwrap() {
        told[key] = value.clone();
    }
    let claim = json!({
        "metadata": { "name": "a", "namespace": "default", "uid": "uid-a" },
        "spec": { "volumeName": "pv-a", "resources": { "requests": { "storage": volume } } }, "status": told,
    });
    c.api.put_json(CLAIM, claim);
    let data = json!({ "key": model::k8s_openapi::ByteString(b"grow".to_vec()) });
    let secret = json!({ "metadata": { "name": "s", "namespace": "default" }, "data": data });
    c.api.put_json("/api/v1/namespaces/default/secrets/s", secret);
}

/// The controller is done, and it is the node's turn.
fn pending() -> Value {
    let conditions = json!([{ "type": "FileSystemResizePending", "status": "True" }]);
    json!({ "allocatedResources": { "storage": "2Gi" }, "allocatedResourceStatuses": { "storage": "NodeResizePending" }, "conditions": conditions })
}

fn status(c: &Cluster) -> Value {
    let claim: PersistentVolumeClaim = c.api.read(Some("default"), "a").unwrap();
    serde_json::to_value(claim.status).unwrap()
}

fn able(c: &Cluster) {
    c.csi.can(&[Ability::StageUnstageVolume, Ability::ExpandVolume]);
}

#[test]
fn a_volume_that_grew_while_nobody_had_it_grows_at_its_mount() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "2Gi", &pending());
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a", "expand h-a"]);
        let asked = c.csi.last_expand();
        assert_eq!((asked.capacity_range.unwrap().required_bytes, asked.secrets["key"].as_str()), (2 << 30, "grow"));
        let target = c.host.path("pods/u1/volumes/kubernetes.io~csi/pv-a/mount");
        let staged = c.host.path(c.stage_dir("h-a")).join("globalmount");
        assert_eq!(
            (asked.volume_path.as_str(), asked.staging_target_path.as_str()),
            (target.to_str().unwrap(), staged.to_str().unwrap())
        );
        let now = status(&c);
        assert_eq!(now["capacity"], json!({ "storage": "2Gi" }));
        assert!(now["allocatedResourceStatuses"].as_object().is_none_or(serde_json::Map::is_empty), "{now}");
        assert!(now["conditions"].as_array().is_none_or(Vec::is_empty), "{now}");
        let line = "Normal FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume \"pv-a\" n1";
        assert_eq!(c.bench.told(), [line; 2], "of the pod, and of the claim");
        let patches = c.api.requests_of("PATCH", &format!("{CLAIM}/status"));
        assert_eq!(
            patches[0].body["status"],
            json!({ "allocatedResourceStatuses": { "storage": "NodeResizeInProgress" } })
        );
        assert_eq!(patches.len(), 2);
    });
}

#[test]
fn a_volume_in_use_grows_without_a_mount_and_nobody_asks_when_it_has_not_grown() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "1Gi", &json!({}));
        let pod = pod_with("u1", &["a"]);
        c.mount(&pod).await.unwrap();
        c.csi.calls();
        c.api.forget_requests();
        secs(600).await;
        assert_eq!(c.csi.calls(), [""; 0]);
        assert_eq!(c.api.requests().len(), 10, "one look a minute: {:?}", c.api.requests());
        claim(&c, "2Gi", &pending());
        secs(61).await;
        assert_eq!(c.csi.calls(), ["expand h-a"]);
        assert_eq!(status(&c)["capacity"], json!({ "storage": "2Gi" }));
        secs(300).await;
        assert_eq!(c.csi.calls(), [""; 0], "it has grown");
    });
}

#[test]
fn a_failure_is_told_and_tried_again_with_pauses_that_double() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "1Gi", &json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.csi.calls();
        claim(&c, "2Gi", &pending());
        c.csi.lie("expand", &[Lie::Refuse(Code::Internal); 3]);
        secs(65).await;
        assert_eq!(c.csi.calls(), ["expand h-a"; 4]);
        let error = "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = because";
        let event = format!(
            "Warning VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume \"pv-a\" : {error}"
        );
        let told = c.bench.told();
        assert_eq!(told.iter().filter(|line| **line == event).count(), 3, "{told:?}");
        let patches = c.api.requests_of("PATCH", &format!("{CLAIM}/status"));
        let condition = patches.iter().find_map(|p| p.body["status"]["conditions"][0]["message"].as_str());
        assert_eq!(condition, Some(format!("failed to expand pvc with {error}").as_str()));
        assert!(status(&c)["conditions"].as_array().is_none_or(Vec::is_empty), "the end takes it back");
    });
}

#[test]
fn what_cannot_be_is_said_and_left_to_the_controller() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "1Gi", &json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        claim(&c, "2Gi", &pending());
        c.csi.calls();
        c.csi.lie("expand", &[Lie::Refuse(Code::OutOfRange); 9]);
        secs(400).await;
        assert_eq!(c.csi.calls(), ["expand h-a"], "the claim says that it is of no use");
        let now = status(&c);
        assert_eq!(now["allocatedResourceStatuses"], json!({ "storage": "NodeResizeInfeasible" }));
        assert!(now["conditions"].to_string().contains("NodeResizeError"), "{now}");
        assert_eq!(now["capacity"], json!({ "storage": "1Gi" }));
    });
}

#[test]
fn a_driver_that_lets_nothing_grow_in_use_is_asked_again_with_the_next_mount() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "1Gi", &json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        claim(&c, "2Gi", &pending());
        c.csi.calls();
        c.csi.lie("expand", &[Lie::Refuse(Code::FailedPrecondition)]);
        secs(400).await;
        assert_eq!(c.csi.calls(), ["expand h-a"]);
        c.unmount("u1").await.unwrap();
        secs(61).await;
        c.csi.calls();
        c.mount(&pod_with("u2", &["a"])).await.unwrap();
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a", "expand h-a"]);
        assert_eq!(status(&c)["capacity"], json!({ "storage": "2Gi" }));
    });
}

#[test]
fn a_pod_does_not_get_a_volume_that_could_not_grow() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "2Gi", &pending());
        c.csi.lie("expand", &[Lie::Refuse(Code::Internal); 2]);
        let waiting = spawn(&c, &pod_with("u1", &["a"]));
        waiting.await.unwrap().unwrap();
        let told = c.bench.told();
        let start =
            "Warning FailedMount: MountVolume.Setup failed while expanding volume for volume \"pv-a\" : Expander";
        assert_eq!(told.iter().filter(|line| line.starts_with(start)).count(), 2, "{told:?}");
        c.unmount("u1").await.unwrap();
        secs(2).await;
        assert!(c.is_clean() && c.csi.is_idle());
        assert_eq!(c.csi.wrong(), [""; 0]);
    });
}

#[test]
fn what_is_read_only_does_not_grow() {
    with_cluster(async |c| {
        able(&c);
        claim(&c, "2Gi", &pending());
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a", "readOnly": true } });
        c.mount(&pod_of("u1", vec![volume], json!({}))).await.unwrap();
        let line = "Warning FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume \"pv-a\" requested read-only file system";
        assert_eq!(c.bench.told(), [line; 2]);
        secs(200).await;
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
    });
}

#[test]
fn a_crash_before_or_after_the_driver_grew_a_volume_costs_nothing() {
    for rule in ["panic@before expand#1", "panic@after expand#1", "kill@before expand#1", "kill@after expand#1"] {
        actor::testing::run(1, async |kernel| {
            let c = Cluster::start(&kernel);
            able(&c);
            claim(&c, "2Gi", &pending());
            kernel.faults().enable();
            kernel.faults().add_text(&format!("volume-manager: {rule}")).unwrap();
            let pod = pod_with("u1", &["a"]);
            let mut tries = 0;
            while c.mount(&pod).await.is_err() {
                tries += 1;
                assert!(tries < 3, "{rule}");
            }
            assert_eq!(kernel.faults().log().len(), 1, "{rule} did not strike");
            assert_eq!(status(&c)["capacity"], json!({ "storage": "2Gi" }), "{rule}");
        });
    }
}
