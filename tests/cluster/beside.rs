//! What a CSI driver and the users of a cluster see of bosun, beside what they see of a Go kubelet.
//!
//! The recording in `tests/golden/csi` is a kubelet's: each case's calls with all their fields, its events about volumes, and
//! the CSINode. With a kubelet at hand (`KUBELET=PATH`) the ignored tests make it anew, and change over from one to the other.

#![cfg_attr(not(feature = "kubelet"), allow(dead_code, reason = "what only the tests with a Go kubelet use"))]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use csi_driver::Config;
use serde_json::{Value, json};
use testbed::{BosunOptions, ClusterNode, NodeOptions, wait_until};

use crate::node::{SOON, create, delete, kubectl, make, start_with, wait_gone};
use crate::site::{Claim, STORAGE, Site};
use cases::{Case, Until};

mod cases;
#[cfg(feature = "kubelet")]
mod change_over;
pub(crate) mod normal;

const RECORDING: &str = "tests/golden/csi/kubelet-1.36.2.json";

/// Who serves the node.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Agent {
    Bosun,
    Kubelet,
}

impl Agent {
    /// Takes the node over, on which bosun runs.
    pub(crate) fn serve(self, node: &mut ClusterNode) {
        if self == Agent::Kubelet {
            kubelet(node);
        }
    }
}

/// A node with both drivers, in the hands of an agent.
fn site(agent: Agent) -> Site {
    let config = json!({"volumeStatsAggPeriod": "2s"});
    let bosun = BosunOptions { config, ..BosunOptions::default() };
    let mut node = start_with(NodeOptions { bosun, ..NodeOptions::default() });
    agent.serve(&mut node);
    let topology = [("topology.csi.bosun.test/zone".to_owned(), "z1".to_owned())].into();
    let config = Config { max_volumes: 7, topology, ..Config::default() };
    let mut site = Site::on(node, &config);
    let tokens = json!([{"audience": "vault", "expirationSeconds": 3600}]);
    let again = json!({"attachRequired": false, "podInfoOnMount": true, "requiresRepublish": true, "tokenRequests": tokens,
        "serviceAccountTokenInSecrets": true});
    site.add(AGAIN, &again, &config);
    site.add(MIGRATED, &json!({"attachRequired": false}), &Config::default());
    site
}

/// Is told of its volumes again and again, with tokens among the secrets.
pub(crate) const AGAIN: &str = "again.csi.bosun.test";
/// Has the volumes of an in-tree kind.
pub(crate) const MIGRATED: &str = "ebs.csi.aws.com";

impl Site {
    /// Makes what a case needs, waits as it says, takes it away; what was seen.
    fn run(&self, case: &Case) -> Value {
        for (driver, _) in &self.drivers {
            self.trouble(driver, &case.faults);
        }
        let names: Vec<String> =
            case.pods.iter().map(|p| p["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect();
        if !case.owns_claims() {
            self.make_objects(case, None);
        }
        for (at, (pod, name)) in case.pods.iter().zip(&names).enumerate() {
            let made = create(&self.node, pod);
            if case.owns_claims() {
                self.make_objects(case, Some((name, &made["metadata"]["uid"])));
            }
            self.wait(case, name, case.last.filter(|_| at + 1 == names.len()).unwrap_or(case.until));
        }
        let events: BTreeSet<String> = names.iter().flat_map(|name| self.events(name)).collect();
        for (at, name) in names.iter().enumerate() {
            if at > 0 && case.last.is_some() {
                // What it waited for was with the one before.
                self.ready(name);
            }
            delete(&self.node, name);
            wait_gone(&self.node, name);
        }
        self.taken_back();
        let mut calls = self.calls();
        let mut asked = false;
        // One reading, where that is the point of the case: when there is one depends on time.
        calls.retain(|call| {
            !is_reading(call)
                || case.until == Until::Measured && is_about(call, case) && !std::mem::replace(&mut asked, true)
        });
        let claims: Vec<Value> = case.claims.iter().map(|claim| self.told(claim)).collect();
        let uids = &normal::Words::of(&self.root());
        json!({"calls": normal::calls(&calls, uids), "events": events, "claims": claims})
    }

    /// `owner`: pod that the claims are made for.
    fn make_objects(&self, case: &Case, owner: Option<(&String, &Value)>) {
        let admin = self.node.cluster.admin();
        for secret in &case.secrets {
            let path = format!("/api/v1/namespaces/default/secrets/{secret}");
            if admin.get(&path).is_err() {
                let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "stringData": {"key": secret}});
                make(&self.node, "secrets", &object);
            }
        }
        for claim in &case.claims {
            let owner = owner.map(|(name, uid)| (name.clone(), uid.clone()));
            self.claim(&Claim { owner, ..claim.clone() });
        }
    }

    fn wait(&self, case: &Case, name: &str, until: Until) {
        match until {
            Until::Ready => drop(self.ready(name)),
            Until::Measured => {
                self.ready(name);
                let is_asked = |call: &Value| is_reading(call) && is_about(call, case);
                let asked = || {
                    // bosun asks drivers for what somebody reads.
                    kubectl(&self.node, &["get", "--raw", "/api/v1/nodes/bed/proxy/stats/summary"]);
                    self.calls().iter().any(is_asked).then_some(()).ok_or_else(|| "not asked".to_owned())
                };
                wait_until("the figures to be asked for", 3 * SOON, asked)
                    .unwrap_or_else(|e| panic!("{e}\n{}", self.node.bosun.log()));
            }
            Until::Republished => {
                self.ready(name);
                let told = || {
                    let published = |call: &&Value| call["call"] == "NodePublishVolume" && is_about(call, case);
                    let times = self.calls().iter().filter(published).count();
                    if times > 1 { Ok(()) } else { Err(format!("{times} times")) }
                };
                wait_until("the driver to be told again", 4 * SOON, told)
                    .unwrap_or_else(|e| panic!("{e}\n{}", self.node.bosun.log()));
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

    /// What a claim says of its size.
    fn told(&self, claim: &Claim) -> Value {
        let status = self.node.cluster.admin().get(&claim.path()).expect("a claim")["status"].clone();
        let conditions = status["conditions"].as_array().into_iter().flatten().map(|c| c["type"].clone());
        json!({"capacity": status["capacity"], "conditions": conditions.collect::<Vec<_>>()})
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

    /// Waits until all that was made is undone.
    fn taken_back(&self) {
        let settled = || {
            // Calls stand by driver: the newest of one may stand before older ones of the other.
            let mut calls = self.calls();
            calls.retain(|call| !is_reading(call));
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
    }

    /// The CSINode without what differs from run to run.
    fn csi_node(&self) -> Value {
        let object = self.node.cluster.admin().get(&format!("{STORAGE}/csinodes/bed")).expect("a CSINode");
        json!({"annotations": object["metadata"]["annotations"], "spec": object["spec"]})
    }
}

/// Whether a driver was asked for figures only.
fn is_reading(call: &Value) -> bool {
    call["call"] == "NodeGetVolumeStats"
}

fn is_about(call: &Value, case: &Case) -> bool {
    normal::is_of(call, &normal::handles(case))
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
pub(crate) struct Tunables(Vec<(PathBuf, String)>);

impl Tunables {
    pub(crate) fn keep() -> Self {
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
    let site = site(agent);
    let mut seen = serde_json::Map::new();
    let mut done = 0;
    for case in cases::all().into_iter().filter(|case| site.node.cluster.minor() >= case.since) {
        eprintln!("case {}", case.name);
        let mut of_case = site.run(&case);
        // What came before stands first in the log of its driver; a case is told by its volumes.
        let handles: BTreeSet<String> = normal::handles(&case);
        let calls = of_case["calls"].as_array_mut().expect("calls");
        calls.retain(|c| normal::is_of(c, &handles));
        done += calls.len();
        seen.insert(case.name.clone(), of_case);
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
    let mut kubelet: Value = serde_json::from_str(&text).expect("JSON");
    let (bosun, minor) = observe(Agent::Bosun);
    for case in cases::all().iter().filter(|case| case.since > minor) {
        println!("{} is left out: an API server of 1.{} does not know it", case.name, minor);
        kubelet.as_object_mut().expect("cases").remove(&case.name);
    }
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
