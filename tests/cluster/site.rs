//! A node of a cluster with CSI drivers, claims of their volumes, and an attacher, which the test plays.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use csi_driver::{Config, Driver, Rule};
use serde_json::{Value, json};
use testbed::{ClusterNode, wait_until};

use crate::node::{LASTS, PODS, SOON, condition, make, pod, shell, wait_running};

pub(crate) const STORAGE: &str = "/apis/storage.k8s.io/v1";
/// Volumes of this driver are attached, pods are named to it.
pub(crate) const DRIVER: &str = "dir.csi.bosun.test";
/// No attachment, inline volumes, tokens, its own way with groups.
pub(crate) const PLAIN: &str = "plain.csi.bosun.test";

/// A node with both drivers.
pub(crate) struct Site {
    pub(crate) node: ClusterNode,
    pub(crate) drivers: Vec<(&'static str, Driver)>,
    pub(crate) runtime: tokio::runtime::Runtime,
    /// Why volumes cannot be attached, by their names at the Node.
    unattachable: Mutex<BTreeMap<String, &'static str>>,
}

impl Site {
    /// Starts the drivers with these settings on a node, by whoever serves it.
    pub(crate) fn on(node: ClusterNode, config: &Config) -> Self {
        let rules = [
            (DRIVER, json!({"attachRequired": true, "podInfoOnMount": true, "fsGroupPolicy": "File"})),
            (
                PLAIN,
                json!({"attachRequired": false, "podInfoOnMount": true, "fsGroupPolicy": "None",
                    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
                    "tokenRequests": [{"audience": "vault", "expirationSeconds": 3600}]}),
            ),
        ];
        let mut site = Site { node, drivers: Vec::new(), runtime: runtime(), unattachable: Mutex::default() };
        rules.iter().for_each(|(name, spec)| site.announce(name, spec));
        site.start_drivers(config);
        site
    }

    fn announce(&self, driver: &str, spec: &Value) {
        let object =
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": driver}, "spec": spec});
        self.node.cluster.admin().create(&format!("{STORAGE}/csidrivers"), &object).expect("a CSIDriver");
    }

    /// One driver more, of which the API server says this.
    pub(crate) fn add(&mut self, name: &'static str, spec: &Value, config: &Config) {
        self.announce(name, spec);
        let driver = self.driver(name, config);
        self.drivers.push((name, driver));
    }

    fn start_drivers(&mut self, config: &Config) {
        self.drivers = [DRIVER, PLAIN].map(|name| (name, self.driver(name, config))).into();
    }

    /// The drivers end, with all that they are at, and come again.
    pub(crate) fn restart_drivers(&mut self, config: &Config) {
        self.drivers.clear();
        std::mem::replace(&mut self.runtime, runtime()).shutdown_background();
        self.start_drivers(config);
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.node.bed.dir().join("node")
    }

    /// Where a driver has its volumes and its log.
    pub(crate) fn folder(&self, driver: &str) -> PathBuf {
        self.root().join("plugins").join(driver)
    }

    /// A driver's settings, as far as they follow from its name.
    fn settings(&self, name: &str, config: &Config) -> Config {
        Config {
            name: name.to_owned(),
            folder: self.folder(name),
            registry: Some(self.root().join("plugins_registry")),
            node_id: "bed-id".to_owned(),
            ..config.clone()
        }
    }

    /// A driver ends, for the caller to run it by these settings.
    pub(crate) fn release(&mut self, name: &str) -> Config {
        self.drivers.retain(|(of, _)| *of != name);
        self.settings(name, &Config::default())
    }

    fn driver(&self, name: &str, config: &Config) -> Driver {
        let config = self.settings(name, config);
        let driver = self.runtime.block_on(async { Driver::start(config) }).expect("a driver");
        self.wait_registered(name, &driver);
        driver
    }

    pub(crate) fn wait_registered(&self, name: &str, driver: &Driver) {
        let told = self.runtime.block_on(async { tokio::time::timeout(2 * SOON, driver.registered()).await });
        told.unwrap_or_else(|_| panic!("{name} was not registered\n{}", self.node.bosun.log())).expect("registered");
    }

    /// What a driver does to calls from now on.
    pub(crate) fn trouble(&self, driver: &str, rules: &[Rule]) {
        let (new, path) = (self.folder(driver).join("control.new"), self.folder(driver).join("control.json"));
        let text = serde_json::to_vec(rules).expect("rules are JSON");
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path)).expect("rules can be written");
    }

    /// Calls about volumes that the drivers noted, oldest first per driver.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let mut calls = Vec::new();
        for (driver, _) in &self.drivers {
            let text = std::fs::read_to_string(self.folder(driver).join("log.jsonl")).expect("the driver's log");
            let lines = text.lines().map(|l| serde_json::from_str::<Value>(l).expect("a line of JSON"));
            calls.extend(lines.filter(|l| l["request"]["volume_id"].is_string()));
        }
        calls
    }

    /// Calls about the volume of a claim, but for readings.
    pub(crate) fn calls_about(&self, claim: &str) -> Vec<Value> {
        let id = json!(format!("vol-{claim}"));
        let mut calls = self.calls();
        calls.retain(|call| call["request"]["volume_id"] == id && call["call"] != "NodeGetVolumeStats");
        calls
    }

    /// What the Node says that it uses.
    pub(crate) fn in_use(&self) -> Vec<String> {
        let node = self.node.node().unwrap_or_default();
        node["status"]["volumesInUse"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str())
            .map(str::to_owned)
            .collect()
    }

    /// What the attach-detach controller and the driver's attacher do for each volume that is told to be in use.
    pub(crate) fn attach(&self) {
        self.attach_these(&self.in_use());
    }

    /// The same for these volumes, by the names that the Node has for them.
    pub(crate) fn attach_these(&self, names: &[String]) {
        let admin = self.node.cluster.admin();
        let node = self.node.node().expect("a Node");
        let attached = node["status"]["volumesAttached"].as_array().cloned().unwrap_or_default();
        let missing: Vec<_> = names.iter().filter(|v| attached.iter().all(|a| a["name"] != v.as_str())).collect();
        if missing.is_empty() {
            return;
        }
        let all: Vec<Value> = names.iter().map(|v| json!({"name": v, "devicePath": ""})).collect();
        for unique in missing {
            let (driver, handle) =
                unique.strip_prefix("kubernetes.io/csi/").and_then(|u| u.split_once('^')).expect("a CSI volume");
            let name = format!("csi-{}", sha256(&format!("{handle}{driver}bed")));
            let object = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
                "spec": {"attacher": driver, "nodeName": "bed", "source": {"persistentVolumeName": handle.replacen("vol", "pv", 1)}},
            });
            admin.create(&format!("{STORAGE}/volumeattachments"), &object).expect("an attachment");
            let error = self.unattachable.lock().expect("no panic").get(unique).copied();
            let done = match error {
                None => json!({"attached": true, "attachmentMetadata": {"disk": "sdx"}}),
                Some(message) => json!({"attached": false, "attachError": {"message": message}}),
            };
            let done = json!({"status": done});
            admin.patch(&format!("{STORAGE}/volumeattachments/{name}/status"), &done).expect("attached");
        }
        admin
            .patch("/api/v1/nodes/bed/status", &json!({"status": {"volumesAttached": all}}))
            .expect("told on the Node");
    }

    /// Makes a claim and, where it is bound, its volume.
    pub(crate) fn claim(&self, claim: &Claim) {
        let admin = self.node.cluster.admin();
        let (object, mut volume) = claim.objects();
        make(&self.node, "persistentvolumeclaims", &object);
        if !claim.bound {
            return;
        }
        if let Some(message) = claim.attach_error {
            self.unattachable.lock().expect("no panic").insert(claim.unique(), message);
        }
        let path = claim.path();
        volume["spec"]["claimRef"]["uid"] = admin.get(&path).expect("a claim")["metadata"]["uid"].clone();
        admin.create("/api/v1/persistentvolumes", &volume).expect("a volume");
        let mut status = json!({"phase": "Bound", "accessModes": [claim.mode], "capacity": {"storage": claim.size}});
        lay(&mut status, &claim.status);
        admin.patch(&format!("{path}/status"), &json!({"status": status})).expect("bound");
        if claim.leaves {
            // It stays for its finalizers: nobody here takes these away.
            admin.delete(&path).expect("it is to go");
        }
    }

    /// Waits until a pod is ready; whatever it wants is attached.
    pub(crate) fn ready(&self, name: &str) -> Value {
        let ready = || {
            self.attach();
            let pod = self.node.cluster.admin().get(&format!("{PODS}/{name}")).unwrap_or_default();
            let ready = condition(&pod, "Ready")["status"] == "True";
            if ready { Ok(()) } else { Err(format!("{:#}\n{:?}", pod["status"]["conditions"], self.node.events(name))) }
        };
        wait_until(&format!("{name} to be ready"), 3 * SOON, ready)
            .unwrap_or_else(|e| panic!("{e}\n{}", self.node.bosun.log()));
        wait_running(&self.node, name)
    }
}

/// A claim, and its volume unless it stays unbound.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) name: String,
    /// `accessModes`.
    pub(crate) mode: &'static str,
    /// `volumeMode`.
    pub(crate) kind: &'static str,
    pub(crate) size: &'static str,
    /// Laid over the claim's specification.
    pub(crate) spec: Value,
    /// Laid over the claim's status.
    pub(crate) status: Value,
    /// Laid over the volume's source.
    pub(crate) source: Value,
    /// Laid over the volume's specification.
    pub(crate) volume: Value,
    pub(crate) bound: bool,
    /// Name and UID of the pod that it is made for.
    pub(crate) owner: Option<(String, Value)>,
    /// Why its volume cannot be attached.
    pub(crate) attach_error: Option<&'static str>,
    /// It is being deleted.
    pub(crate) leaves: bool,
}

impl Claim {
    pub(crate) fn of(name: &str, driver: &str) -> Self {
        let attributes = json!({"kind": "dir"});
        let source = json!({"driver": driver, "volumeHandle": format!("vol-{name}"), "volumeAttributes": attributes});
        Self {
            name: name.to_owned(),
            mode: "ReadWriteOnce",
            kind: "Filesystem",
            size: "1Gi",
            spec: json!({}),
            status: json!({}),
            source,
            volume: json!({}),
            bound: true,
            owner: None,
            attach_error: None,
            leaves: false,
        }
    }

    pub(crate) fn path(&self) -> String {
        format!("/api/v1/namespaces/default/persistentvolumeclaims/{}", self.name)
    }

    /// As `kubectl create` wants it, and its volume.
    fn objects(&self) -> (Value, Value) {
        let (room, name) = (json!({"storage": self.size}), format!("pv-{}", self.name));
        let mut spec = json!({"accessModes": [self.mode], "volumeMode": self.kind, "resources": {"requests": room}, "storageClassName": ""});
        spec["volumeName"] = if self.bound { json!(name) } else { Value::Null };
        lay(&mut spec, &self.spec);
        let mut volume = json!({"capacity": room, "accessModes": [self.mode], "volumeMode": self.kind,
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": spec["storageClassName"],
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": self.name}, "csi": self.source});
        lay(&mut volume, &self.volume);
        let mut claim =
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": self.name}, "spec": spec});
        if let Some((pod, uid)) = &self.owner {
            claim["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid,
                "controller": true, "blockOwnerDeletion": true}]);
        }
        (claim, json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume}))
    }

    /// Name of its volume at the Node.
    pub(crate) fn unique(&self) -> String {
        let word = |field: &str| self.source[field].as_str().unwrap_or_default();
        format!("kubernetes.io/csi/{}^{}", word("driver"), word("volumeHandle"))
    }
}

pub(crate) fn lay(over: &mut Value, fields: &Value) {
    if let (Some(own), Some(more)) = (over.as_object_mut(), fields.as_object()) {
        own.extend(more.clone());
    }
}

/// A pod that has one volume, at `/data`, and runs this script first; `more` is laid over its specification.
pub(crate) fn user_that(name: &str, volume: &Value, script: &str, more: &Value) -> Value {
    let mounts = json!({"volumeMounts": [{"name": "d", "mountPath": "/data"}]});
    with_volume(name, volume, shell("main", &format!("{script} {LASTS}"), mounts), more)
}

/// A pod that has one volume.
pub(crate) fn user(name: &str, volume: &Value, more: &Value) -> Value {
    user_that(name, volume, "", more)
}

/// The same with the volume as the device `/dev/raw`.
pub(crate) fn raw_user(name: &str, volume: &Value, script: &str) -> Value {
    let devices = json!({"volumeDevices": [{"name": "d", "devicePath": "/dev/raw"}]});
    with_volume(name, volume, shell("main", &format!("{script} {LASTS}"), devices), &json!({}))
}

fn with_volume(name: &str, volume: &Value, container: Value, more: &Value) -> Value {
    let mut volume = volume.clone();
    volume["name"] = json!("d");
    let mut spec = json!({"containers": [container], "volumes": [volume], "automountServiceAccountToken": false});
    lay(&mut spec, more);
    pod(name, spec)
}

/// A pod's volume that is a claim's.
pub(crate) fn claimed(claim: &str) -> Value {
    json!({"persistentVolumeClaim": {"claimName": claim}})
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

fn sha256(text: &str) -> String {
    let script = format!("printf %s '{text}' | sha256sum | cut -d' ' -f1");
    let out = std::process::Command::new("sh").args(["-c", &script]).output().expect("sha256sum");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}
