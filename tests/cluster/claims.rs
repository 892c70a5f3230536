//! A pod with a claim, a CSI driver, and an attacher, which the test plays.

use std::path::Path;

use csi_driver::Config;
use serde_json::{Value, json};
use testbed::{ClusterNode, wait_until};

use crate::node::{LASTS, SOON, create, delete, make, pod, shell, start, wait_gone, wait_running};
use crate::plugins::{self, DRIVER};

const STORAGE: &str = "/apis/storage.k8s.io/v1";

/// A volume of the driver, as the Node names it.
fn unique(n: usize) -> String {
    format!("kubernetes.io/csi/{DRIVER}^vol-{n}")
}

/// A claim `data-N` that is bound to a volume `vol-N` of the driver, of this `volumeMode`.
pub(crate) fn claim(node: &ClusterNode, n: usize, mode: &str) {
    let admin = node.cluster.admin();
    let room = json!({"storage": "1Gi"});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": room}, "storageClassName": "", "volumeMode": mode, "volumeName": format!("pv-{n}")});
    make(
        node,
        "persistentvolumeclaims",
        &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("data-{n}")}, "spec": spec}),
    );
    let path = format!("/api/v1/namespaces/default/persistentvolumeclaims/data-{n}");
    let uid = admin.get(&path).expect("a claim")["metadata"]["uid"].clone();
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("pv-{n}")},
        "spec": {
            "capacity": room, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain", "volumeMode": mode,
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": format!("data-{n}"), "uid": uid},
            "csi": {"driver": DRIVER, "volumeHandle": format!("vol-{n}"), "volumeAttributes": {"kind": "dir", "colour": "blue"}},
        },
    });
    admin.create("/api/v1/persistentvolumes", &volume).expect("a volume");
    let bound = json!({"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": room}});
    admin.patch(&format!("{path}/status"), &bound).expect("bound");
}

/// What the attach-detach controller and the driver's attacher do for these volumes.
pub(crate) fn attach(node: &ClusterNode, volumes: &[usize]) {
    let admin = node.cluster.admin();
    let attached: Vec<Value> = volumes.iter().map(|n| json!({"name": unique(*n), "devicePath": ""})).collect();
    let told = json!({"status": {"volumesAttached": attached}});
    admin.patch("/api/v1/nodes/bed/status", &told).expect("told on the Node");
    for n in volumes {
        // sha256 of volume handle, driver and node.
        let name = "csi-".to_owned() + &sha256(&format!("vol-{n}{DRIVER}bed"));
        let attachment = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
            "spec": {"attacher": DRIVER, "nodeName": "bed", "source": {"persistentVolumeName": format!("pv-{n}")}},
        });
        admin.create(&format!("{STORAGE}/volumeattachments"), &attachment).expect("an attachment");
        let done = json!({"status": {"attached": true, "attachmentMetadata": {"disk": "sdx"}}});
        admin.patch(&format!("{STORAGE}/volumeattachments/{name}/status"), &done).expect("attached");
    }
}

pub(crate) fn sha256(text: &str) -> String {
    let script = format!("printf %s '{text}' | sha256sum | cut -d' ' -f1");
    let out = std::process::Command::new("sh").args(["-c", &script]).output().expect("sha256sum");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

pub(crate) fn in_use(node: &ClusterNode) -> Value {
    node.node().map(|n| n["status"]["volumesInUse"].clone()).unwrap_or_default()
}

/// Calls about the first volume that the driver noted: name, request, code.
fn calls(folder: &Path) -> Vec<(String, Value, String)> {
    let text = std::fs::read_to_string(folder.join("log.jsonl")).expect("the driver's log");
    let lines = text.lines().map(|l| serde_json::from_str::<Value>(l).expect("a line of JSON"));
    let word = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let about = lines.filter(|l| l["request"]["volume_id"] == "vol-1");
    about.map(|l| (word(&l["call"]), l["request"].clone(), word(&l["code"]))).collect()
}

pub(crate) fn rules(node: &ClusterNode, attach: bool) {
    let rules = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
        "spec": {"attachRequired": attach, "podInfoOnMount": true}});
    node.cluster.admin().create(&format!("{STORAGE}/csidrivers"), &rules).expect("a CSIDriver");
}

/// The daemon is killed and started again; the pod's container is not.
fn stays_over_a_kill(node: &mut ClusterNode, name: &str, before: &Value) {
    node.bosun.kill();
    node.start_again().expect("starts again");
    node.wait_ready(SOON).expect("ready");
    let after = wait_running(node, name);
    let container = |pod: &Value| pod["status"]["containerStatuses"][0]["containerID"].clone();
    assert_eq!(container(&after), container(before), "no restart");
}

fn wait_undone(node: &ClusterNode, folder: &Path) {
    let unstaged = || {
        let ended: Vec<_> = calls(folder).into_iter().map(|(call, _, code)| format!("{call} {code}")).collect();
        let undone = ["NodeUnpublishVolume Ok".to_owned(), "NodeUnstageVolume Ok".to_owned()];
        if ended.ends_with(&undone) && in_use(node).as_array().is_none_or(Vec::is_empty) {
            Ok(())
        } else {
            Err(format!("{ended:?}, {}", in_use(node)))
        }
    };
    wait_until("the volume to be taken back", SOON, unstaged).unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
}

/// Files behind loop devices that are below a folder.
fn looped(below: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").expect("block devices").flatten();
    let files = devices.filter_map(|d| std::fs::read_to_string(d.path().join("loop/backing_file")).ok());
    files.map(|f| f.trim().to_owned()).filter(|f| Path::new(f).starts_with(below)).collect()
}

#[test]
fn a_claims_volume_is_attached_staged_published_kept_over_a_kill_and_taken_back() {
    let mut node = start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    rules(&node, true);
    let driver = plugins::driver(&node, &runtime, Config::default());
    let folder = plugins::folder(&node);
    claim(&node, 1, "Filesystem");
    let script = format!("echo hello > /data/word; {LASTS}");
    let container = shell("main", &script, json!({"volumeMounts": [{"name": "d", "mountPath": "/data"}]}));
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data-1"}}]);
    create(&node, &pod("claims", json!({"containers": [container], "volumes": volumes})));

    let told = || if in_use(&node) == json!([unique(1)]) { Ok(()) } else { Err(in_use(&node).to_string()) };
    wait_until("the volume to be in use", SOON, told).expect("volumesInUse");
    assert!(calls(&folder).is_empty(), "a driver is not called before its volume is attached");
    attach(&node, &[1]);
    let running = wait_running(&node, "claims");
    let word = folder.join("volumes/vol-1/data/word");
    let written = || std::fs::read_to_string(&word).map_err(|e| e.to_string());
    assert_eq!(wait_until("the word", SOON, written).expect("the word"), "hello\n");
    let made = calls(&folder);
    let names: Vec<_> = made.iter().map(|(call, _, code)| format!("{call} {code}")).collect();
    assert_eq!(names, ["NodeStageVolume Ok", "NodePublishVolume Ok"]);
    assert_eq!(made[0].1["publish_context"], json!({"disk": "sdx"}));
    let context = &made[1].1["volume_context"];
    assert_eq!((&context["colour"], &context["csi.storage.k8s.io/pod.name"]), (&json!("blue"), &json!("claims")));

    stays_over_a_kill(&mut node, "claims", &running);
    delete(&node, "claims");
    wait_gone(&node, "claims");
    wait_undone(&node, &folder);
    assert_eq!(written().as_deref(), Ok("hello\n"), "what users wrote stays");
    drop(driver);
}

#[test]
fn a_raw_volume_is_a_device_of_the_container_held_open_over_a_kill_and_taken_back() {
    let mut node = start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    rules(&node, false);
    let driver = plugins::driver(&node, &runtime, Config::default());
    let folder = plugins::folder(&node);
    claim(&node, 1, "Block");
    let script = format!("echo hello > /dev/raw; sync; {LASTS}");
    let container = shell("main", &script, json!({"volumeDevices": [{"name": "d", "devicePath": "/dev/raw"}]}));
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "data-1"}}]);
    create(&node, &pod("raw", json!({"containers": [container], "volumes": volumes})));

    let running = wait_running(&node, "raw");
    let image = folder.join("volumes/vol-1/image");
    let written = || match std::fs::read(&image) {
        Ok(bytes) if bytes.starts_with(b"hello\n") => Ok(()),
        other => Err(format!("{:?}", other.map(|bytes| bytes[..8.min(bytes.len())].to_vec()))),
    };
    wait_until("the word to be on the disk", SOON, written).expect("the word");
    let made = calls(&folder);
    let names: Vec<_> = made.iter().map(|(call, _, code)| format!("{call} {code}")).collect();
    assert_eq!(names, ["NodeStageVolume Ok", "NodePublishVolume Ok"]);
    assert!(made.iter().all(|(_, request, _)| request["volume_capability"]["block"].is_object()), "{made:?}");
    let maps = node.bed.dir().join("node/plugins/kubernetes.io/csi/volumeDevices");
    let uid = running["metadata"]["uid"].as_str().expect("a UID");
    let held = || looped(&maps);
    assert_eq!(held(), [maps.join("pv-1/dev").join(uid).display().to_string()], "it is held open");

    stays_over_a_kill(&mut node, "raw", &running);
    assert_eq!(held().len(), 1, "once");
    delete(&node, "raw");
    wait_gone(&node, "raw");
    wait_undone(&node, &folder);
    assert_eq!((held(), looped(&folder)), (vec![], vec![]));
    assert!(!maps.join("pv-1").exists() && !maps.join("staging/pv-1").exists(), "nothing is left of it");
    assert_eq!(written(), Ok(()), "what users wrote stays");
    drop(driver);
}
