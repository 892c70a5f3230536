//! What volumes add to the start of a pod.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use testbed::{ClusterNode, Watch, wait_until};

use super::super::pods::idle;
use super::super::report::{Report, Unit, percentile};
use super::singles::{self, Posted, STEPS, Steps};
use super::watched::{PODS, gone, pod, ready, wait_for};
use crate::workspace;

/// Pods of each kind, in turns, so that other work on the machine weighs on all.
const COUNT: usize = 40;
const DRIVER: &str = "dir.csi.bosun.test";
const PREFIXES: [&str; 3] = ["bare-", "small-", "claimed-"];
const SPACE: &str = "/api/v1/namespaces/default";

pub(super) fn rounds(node: &ClusterNode, watch: &Watch, report: &mut Report) -> anyhow::Result<()> {
    node.cluster.await_namespace("default")?;
    let driver = Driver::start(node)?;
    let admin = node.cluster.admin();
    for name in ["one", "two"] {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": name}});
        admin.create(&format!("{SPACE}/configmaps"), &object)?;
    }
    let mut posted = [(); 3].map(|()| BTreeMap::new());
    for n in 0..COUNT {
        claim(node, n)?;
        let pods = [pod(&format!("bare-{n}"), node.name()), with_small(n, node.name()), with_claim(n, node.name())];
        for ((prefix, pod), posted) in PREFIXES.iter().zip(pods).zip(&mut posted) {
            posted.insert(format!("{prefix}{n}"), start(node, watch, n, &pod, prefix)?);
        }
    }
    let steps: Result<Vec<_>, _> = posted.iter().map(|p| singles::steps(node, p, watch)).collect();
    let calls = percentile(&driver.calls()?, 0.5);
    for prefix in PREFIXES {
        (0..COUNT).try_for_each(|n| admin.delete(&format!("{PODS}/{prefix}{n}")).map(drop))?;
        wait_for(watch, "pods of this round to be gone", prefix, COUNT, gone)?;
    }
    let [bare, small, claimed] = steps?.try_into().map_err(|_| anyhow::anyhow!("three kinds of pods"))?;
    let what = "token, two configMaps and an emptyDir, added to a start";
    report.add(what, added(&small, &bare), Unit::Ms, Some(5.0), longer(&small, &bare));
    let what = "a claim of a driver, added to a start over the driver's calls";
    let detail = format!("{}; in the driver {calls:.1} ms", longer(&claimed, &bare));
    report.add(what, added(&claimed, &bare) - calls, Unit::Ms, Some(10.0), detail);
    Ok(())
}

/// POST -> Ready, in ms.
fn whole(start: &Steps) -> f64 {
    start.iter().sum()
}

/// By how much a start takes longer than the one before it, p50 in ms: the runtime alone varies by more than that from one minute to
/// the next.
fn added(with: &[Steps], bare: &[Steps]) -> f64 {
    percentile(&with.iter().zip(bare).map(|(with, bare)| whole(with) - whole(bare)).collect::<Vec<_>>(), 0.5)
}

/// By how much which step takes longer.
fn longer(with: &[Steps], bare: &[Steps]) -> String {
    let each = STEPS.iter().zip(singles::medians(with)).zip(singles::medians(bare));
    let parts = each.filter(|((_, w), b)| w - b > 0.2).map(|((step, w), b)| format!("{step} {:.1}", w - b));
    let of = percentile(&with.iter().map(whole).collect::<Vec<_>>(), 0.5);
    format!("of {of:.1} ms; {}", parts.collect::<Vec<_>>().join(", "))
}

/// Starts the pod and waits until it is Ready.
fn start(node: &ClusterNode, watch: &Watch, n: usize, pod: &Value, prefix: &str) -> anyhow::Result<Posted> {
    let posted = Posted::now();
    node.cluster.admin().create(PODS, pod)?;
    wait_for(watch, &format!("{prefix}{n} to be ready"), prefix, n + 1, ready)?;
    idle(Duration::from_millis(200));
    Ok(posted)
}

fn with(mut pod: Value, volumes: &Value) -> Value {
    let mounts = volumes.as_array().into_iter().flatten();
    let mounts: Vec<_> = mounts
        .map(|v| json!({"name": v["name"], "mountPath": format!("/mnt/{}", v["name"].as_str().unwrap_or_default())}))
        .collect();
    pod["spec"]["containers"][0]["volumeMounts"] = json!(mounts);
    pod["spec"]["volumes"] = volumes.clone();
    pod
}

fn with_small(n: usize, node: &str) -> Value {
    let volumes = json!([
        {"name": "one", "configMap": {"name": "one"}}, {"name": "two", "configMap": {"name": "two"}},
        {"name": "room", "emptyDir": {}},
    ]);
    let mut pod = with(pod(&format!("small-{n}"), node), &volumes);
    pod["spec"]["automountServiceAccountToken"] = json!(true);
    pod
}

fn with_claim(n: usize, node: &str) -> Value {
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": format!("claim-{n}")}}]);
    with(pod(&format!("claimed-{n}"), node), &volumes)
}

/// A claim that is bound to a volume of the driver.
fn claim(node: &ClusterNode, n: usize) -> anyhow::Result<()> {
    let (admin, room, name) = (node.cluster.admin(), json!({"storage": "1Gi"}), format!("claim-{n}"));
    let claims = format!("{SPACE}/persistentvolumeclaims");
    let made = admin.create(
        &claims,
        &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": room}, "storageClassName": "", "volumeName": name}}),
    )?;
    let owner =
        json!({"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": made["metadata"]["uid"]});
    let source = json!({"driver": DRIVER, "volumeHandle": name, "volumeAttributes": {"kind": "dir"}});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": room, "accessModes": ["ReadWriteOnce"], "claimRef": owner, "csi": source}});
    admin.create("/api/v1/persistentvolumes", &volume)?;
    let bound = json!({"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": room}});
    admin.patch(&format!("{claims}/{name}/status"), &bound)?;
    Ok(())
}

/// The driver of the tests, as a program of its own.
struct Driver {
    child: Child,
    folder: std::path::PathBuf,
}

impl Driver {
    fn start(node: &ClusterNode) -> anyhow::Result<Self> {
        let rules = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
            "spec": {"attachRequired": false, "podInfoOnMount": true}});
        node.cluster.admin().create("/apis/storage.k8s.io/v1/csidrivers", &rules)?;
        let root = node.bed.dir().join("node");
        let folder = root.join("plugins").join(DRIVER);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("config.json");
        let config = json!({"folder": folder, "registry": root.join("plugins_registry"), "node_id": node.name()});
        std::fs::write(&file, config.to_string())?;
        let child = Command::new(workspace::build("csi-driver", true)?).arg(file).spawn().context("csi-driver")?;
        let driver = Self { child, folder };
        wait_until("the driver to be registered", Duration::from_secs(60), || {
            let path = format!("/apis/storage.k8s.io/v1/csinodes/{}", node.name());
            let object = node.cluster.admin().get(&path).map_err(|e| e.to_string())?;
            if object["spec"]["drivers"][0]["name"] == DRIVER { Ok(()) } else { Err(object.to_string()) }
        })?;
        Ok(driver)
    }

    /// How long it worked on each volume until a pod had it, in ms.
    fn calls(&self) -> anyhow::Result<Vec<f64>> {
        let log = std::fs::read_to_string(self.folder.join("log.jsonl")).context("the driver's log")?;
        let mut took = BTreeMap::<String, f64>::new();
        for line in log.lines() {
            let line: Value = serde_json::from_str(line)?;
            if ["NodeStageVolume", "NodePublishVolume"].iter().any(|call| line["call"] == *call) {
                *took.entry(line["request"]["volume_id"].to_string()).or_default() +=
                    line["ms"].as_f64().unwrap_or_default();
            }
        }
        Ok(took.into_values().collect())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
