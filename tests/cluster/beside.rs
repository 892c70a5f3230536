//! What a CSI driver and the users of a cluster see of bosun, beside what they see of a Go kubelet.
//!
//! The recording in `tests/golden/csi` is a kubelet's: each case's calls with all their fields, its events about volumes, and
//! the CSINode. With a kubelet at hand (`KUBELET=PATH`) the ignored tests make it anew, and change over from one to the other.

#![cfg_attr(not(feature = "kubelet"), allow(dead_code, reason = "what only the tests with a Go kubelet use"))]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use csi_driver::{Config, Driver};
use serde_json::{Value, json};
use testbed::{ClusterNode, wait_until};

use crate::node::{SOON, create, delete, make, start, wait_gone, wait_running};
use cases::{Case, DRIVER, PLAIN, Until};

mod cases;
#[cfg(feature = "kubelet")]
mod change_over;
mod normal;

const STORAGE: &str = "/apis/storage.k8s.io/v1";
const RECORDING: &str = "tests/golden/csi/kubelet-1.36.2.json";

/// Who serves the node.
#[derive(Clone, Copy, PartialEq)]
enum Agent {
    Bosun,
    Kubelet,
}

/// A node with both drivers.
struct Site {
    node: ClusterNode,
    drivers: Vec<(&'static str, Driver)>,
    runtime: tokio::runtime::Runtime,
}

impl Site {
    fn start(agent: Agent) -> Self {
        let mut node = start();
        let rules = [
            (DRIVER, json!({"attachRequired": true, "podInfoOnMount": true, "fsGroupPolicy": "File"})),
            (
                PLAIN,
                json!({"attachRequired": false, "podInfoOnMount": true, "fsGroupPolicy": "None",
                    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
                    "tokenRequests": [{"audience": "vault", "expirationSeconds": 3600}]}),
            ),
        ];
        for (name, spec) in rules {
            let object = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec});
            node.cluster.admin().create(&format!("{STORAGE}/csidrivers"), &object).expect("a CSIDriver");
        }
        if agent == Agent::Kubelet {
            kubelet(&mut node);
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let mut site = Site { node, drivers: Vec::new(), runtime };
        site.drivers = [DRIVER, PLAIN].map(|name| (name, site.driver(name))).into();
        site
    }

    fn root(&self) -> PathBuf {
        self.node.bed.dir().join("node")
    }

    fn folder(&self, driver: &str) -> PathBuf {
        self.root().join("plugins").join(driver)
    }

    fn driver(&self, name: &str) -> Driver {
        let config = Config {
            name: name.to_owned(),
            folder: self.folder(name),
            registry: Some(self.root().join("plugins_registry")),
            node_id: "bed-id".to_owned(),
            max_volumes: 7,
            topology: [("topology.csi.bosun.test/zone".to_owned(), "z1".to_owned())].into(),
            ..Config::default()
        };
        let driver = self.runtime.block_on(async { Driver::start(config) }).expect("a driver");
        let told = self.runtime.block_on(async { tokio::time::timeout(2 * SOON, driver.registered()).await });
        told.unwrap_or_else(|_| panic!("{name} was not registered\n{}", self.node.bosun.log())).expect("registered");
        driver
    }

    /// Calls about volumes that the drivers noted, oldest first per driver.
    fn calls(&self) -> Vec<Value> {
        let mut calls = Vec::new();
        for (driver, _) in &self.drivers {
            let text = std::fs::read_to_string(self.folder(driver).join("log.jsonl")).expect("the driver's log");
            let lines = text.lines().map(|l| serde_json::from_str::<Value>(l).expect("a line of JSON"));
            calls.extend(lines.filter(|l| l["request"]["volume_id"].is_string() && l["call"] != "NodeGetVolumeStats"));
        }
        calls
    }

    /// What the attach-detach controller and the driver's attacher do for each volume that is told to be in use.
    fn attach(&self) {
        let admin = self.node.cluster.admin();
        let node = self.node.node().expect("a Node");
        let in_use = node["status"]["volumesInUse"].as_array().cloned().unwrap_or_default();
        let attached = node["status"]["volumesAttached"].as_array().cloned().unwrap_or_default();
        let missing: Vec<_> = in_use.iter().filter(|v| attached.iter().all(|a| a["name"] != **v)).collect();
        if missing.is_empty() {
            return;
        }
        let all: Vec<Value> = in_use.iter().map(|v| json!({"name": v, "devicePath": ""})).collect();
        for unique in missing {
            let (driver, handle) = unique
                .as_str()
                .and_then(|u| u.strip_prefix("kubernetes.io/csi/")?.split_once('^'))
                .expect("a CSI volume");
            let name = format!("csi-{}", crate::claims::sha256(&format!("{handle}{driver}bed")));
            let object = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
                "spec": {"attacher": driver, "nodeName": "bed", "source": {"persistentVolumeName": handle.replacen("vol", "pv", 1)}},
            });
            admin.create(&format!("{STORAGE}/volumeattachments"), &object).expect("an attachment");
            let done = json!({"status": {"attached": true, "attachmentMetadata": {"disk": "sdx"}}});
            admin.patch(&format!("{STORAGE}/volumeattachments/{name}/status"), &done).expect("attached");
        }
        admin
            .patch("/api/v1/nodes/bed/status", &json!({"status": {"volumesAttached": all}}))
            .expect("told on the Node");
    }

    /// Makes what a case needs, waits as it says, takes it away; what was seen.
    fn run(&self, case: &Case) -> Value {
        for (driver, _) in &self.drivers {
            let rules = serde_json::to_vec(&case.faults).expect("rules");
            std::fs::write(self.folder(driver).join("control.json"), rules).expect("the faults");
        }
        self.make_objects(case);
        let names: Vec<String> =
            case.pods.iter().map(|p| p["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect();
        for (pod, name) in case.pods.iter().zip(&names) {
            create(&self.node, pod);
            self.wait(case.until, name);
        }
        let events: BTreeSet<String> = names.iter().flat_map(|name| self.events(name)).collect();
        for name in &names {
            delete(&self.node, name);
            wait_gone(&self.node, name);
        }
        let calls = self.taken_back();
        let uids = &normal::Words::of(&self.root());
        json!({"calls": normal::calls(&calls, uids), "events": events})
    }

    fn make_objects(&self, case: &Case) {
        let admin = self.node.cluster.admin();
        for secret in &case.secrets {
            let path = format!("/api/v1/namespaces/default/secrets/{secret}");
            if admin.get(&path).is_err() {
                let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"key": secret}});
                make(&self.node, "secrets", &object);
            }
        }
        for claim in &case.claims {
            let (object, mut volume) = claim.objects();
            make(&self.node, "persistentvolumeclaims", &object);
            if !claim.bound {
                continue;
            }
            let path = format!("/api/v1/namespaces/default/persistentvolumeclaims/{}", claim.name);
            volume["spec"]["claimRef"]["uid"] = admin.get(&path).expect("a claim")["metadata"]["uid"].clone();
            admin.create("/api/v1/persistentvolumes", &volume).expect("a volume");
            let bound =
                json!({"status": {"phase": "Bound", "accessModes": [claim.mode], "capacity": {"storage": "1Gi"}}});
            admin.patch(&format!("{path}/status"), &bound).expect("bound");
        }
    }

    fn wait(&self, until: Until, name: &str) {
        match until {
            Until::Ready => {
                let ready = || {
                    self.attach();
                    let pod =
                        self.node.cluster.admin().get(&format!("{}/{name}", crate::node::PODS)).unwrap_or_default();
                    let ready = crate::node::condition(&pod, "Ready")["status"] == "True";
                    if ready {
                        Ok(())
                    } else {
                        Err(format!("{:#}\n{:?}", pod["status"]["conditions"], self.events(name)))
                    }
                };
                wait_until(&format!("{name} to be ready"), 3 * SOON, ready)
                    .unwrap_or_else(|e| panic!("{e}\n{}", self.node.bosun.log()));
                wait_running(&self.node, name);
            }
            Until::Event(reason) => {
                let told = || {
                    self.attach();
                    let seen = self.events(name);
                    if seen.iter().any(|e| e.contains(reason)) { Ok(()) } else { Err(format!("{seen:?}")) }
                };
                wait_until(&format!("{reason} of {name}"), 3 * SOON, told)
                    .unwrap_or_else(|e| panic!("{e}\n{}", self.node.bosun.log()));
            }
        }
    }

    /// Events about volumes of a pod.
    fn events(&self, pod: &str) -> Vec<String> {
        let words = normal::Words::of(&self.root());
        let events = self.node.events(pod).unwrap_or_default();
        let about = events.iter().filter(|e| {
            let reason = e["reason"].as_str().unwrap_or_default();
            ["Volume", "Mount", "Map", "Resize"].iter().any(|w| reason.contains(w))
        });
        about
            .map(|e| words.text(&format!("{} {}: {}", word(&e["type"]), word(&e["reason"]), word(&e["message"]))))
            .collect()
    }

    /// Waits until all that was made is undone; the calls up to then.
    fn taken_back(&self) -> Vec<Value> {
        let settled = || {
            // Calls stand by driver: the newest of one may stand before older ones of the other.
            let calls = self.calls();
            let undone = |call: &Value| {
                let id = &call["request"]["volume_id"];
                let last = calls.iter().rfind(|c| c["request"]["volume_id"] == *id).unwrap_or(call);
                let staged = calls.iter().any(|c| c["request"]["volume_id"] == *id && c["call"] == "NodeStageVolume");
                let end = if staged { "NodeUnstageVolume" } else { "NodeUnpublishVolume" };
                last["call"] == end && last["code"] == "Ok"
            };
            if calls.iter().all(undone) { Ok(()) } else { Err(normal::short(&calls).join(", ")) }
        };
        wait_until("volumes to be taken back", 2 * SOON, settled)
            .unwrap_or_else(|e| panic!("{e}\n{}", self.node.bosun.log()));
        self.calls()
    }

    /// The CSINode without what differs from run to run.
    fn csi_node(&self) -> Value {
        let object = self.node.cluster.admin().get(&format!("{STORAGE}/csinodes/bed")).expect("a CSINode");
        json!({"annotations": object["metadata"]["annotations"], "spec": object["spec"]})
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A Go kubelet in place of bosun.
fn kubelet(node: &mut ClusterNode) {
    let program = std::env::var_os("KUBELET").expect("KUBELET=PATH of a Go kubelet");
    node.bosun.kill();
    node.bosun.launch_kubelet(&mut node.bed, program.as_ref()).expect("a kubelet");
}

/// Parameters that a kubelet sets on the machine: as they were when this is dropped.
struct Tunables(Vec<(PathBuf, String)>);

impl Tunables {
    fn keep() -> Self {
        let names = [
            "vm/overcommit_memory",
            "vm/panic_on_oom",
            "kernel/panic",
            "kernel/panic_on_oops",
            "kernel/keys/root_maxkeys",
            "kernel/keys/root_maxbytes",
        ];
        let paths = names.map(|name| Path::new("/proc/sys").join(name));
        Self(paths.into_iter().filter_map(|p| std::fs::read_to_string(&p).ok().map(|v| (p, v))).collect())
    }
}

impl Drop for Tunables {
    fn drop(&mut self) {
        for (path, value) in &self.0 {
            if let Err(e) = std::fs::write(path, value) {
                eprintln!("{} cannot be set to {value} again: {e}", path.display());
            }
        }
    }
}

/// Goes through all cases; what was seen, and the minor version of the API server.
fn observe(agent: Agent) -> (Value, u32) {
    let site = Site::start(agent);
    let mut seen = serde_json::Map::new();
    let mut done = 0;
    for case in cases::all() {
        eprintln!("case {}", case.name);
        let mut of_case = site.run(&case);
        // What came before stands first in the log of its driver; a case is told by its volumes.
        let handles: BTreeSet<String> = normal::handles(&case);
        let calls = of_case["calls"].as_array_mut().expect("calls");
        calls.retain(|c| normal::is_of(c, &handles));
        done += calls.len();
        seen.insert(case.name.to_owned(), of_case);
    }
    assert!(done > 0, "no call was seen");
    seen.insert("csinode".to_owned(), site.csi_node());
    (Value::Object(seen), site.node.cluster.minor())
}

fn recording() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(RECORDING)
}

#[test]
fn drivers_and_users_see_what_they_see_of_a_kubelet() {
    let text = std::fs::read_to_string(recording()).expect("the recording");
    let kubelet: Value = serde_json::from_str(&text).expect("JSON");
    let (bosun, minor) = observe(Agent::Bosun);
    let mut differences = normal::differences(&kubelet, &bosun);
    // A CSIDriver of an older server cannot ask for tokens.
    differences.retain(|d| minor >= 21 || !d.contains("serviceAccount.tokens: "));
    assert!(differences.is_empty(), "not as a kubelet:\n{}", differences.join("\n"));
}

#[cfg(feature = "kubelet")]
#[test]
fn record_a_kubelet() {
    let _tunables = Tunables::keep();
    let (seen, _) = observe(Agent::Kubelet);
    let path = recording();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, serde_json::to_string_pretty(&seen).expect("JSON") + "\n").expect("the recording");
}
