//! All cases on real parts: etcd, kube-apiserver, containerd, and the node under test between them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use testbed::{BosunOptions, ClusterNode, ClusterOptions, Identity, Image, NodeOptions, Options, Watch};

use crate::life::{Life, differences};
use crate::node_object;
use crate::normal::Dirs;
use crate::recorder::Recorder;
use crate::recording::{Call, Case, NODE, case, golden_node, names};
use crate::report::Outcome;
use crate::server::{NEEDS, NO_MIRROR};

/// Namespace of all cases.
const NAMESPACE: &str = "gold";
/// How long a pod may take to be gone.
const GONE: Duration = Duration::from_secs(90);
/// What a node does after a pod is gone comes within this time.
const AFTERWARDS: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(100);

/// Lets real time pass on a thread of this program.
fn pass(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
        std::thread::park_timeout(left);
    }
}

/// The name under which the Node object is reported.
pub const NODE_CASE: &str = "_node";

/// A folder for the bed and our own files beside it. Goes when it is dropped, unless something of the bed stayed in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            // Fails for folders: those are the bed's.
            let _ = std::fs::remove_file(entry.path());
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A node with a recorder between it and its runtime. Field order is drop order.
pub struct GoldenBed {
    node: ClusterNode,
    recorder: Recorder,
    pods: Watch,
    events: Watch,
    folder: Folder,
}

/// The socket of the bed's runtime: containerd's, or that of bosun's own.
fn upstream(parent: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(parent).ok()?.flatten();
    let mut sockets = entries.flat_map(|e| ["containerd.sock", "cri.sock"].map(|name| e.path().join(name)));
    sockets.find(|p| p.exists())
}

/// Stands in for the image of the recording: serves HTTP, and ends as it did.
fn agnhost() -> anyhow::Result<Image> {
    let script = "#!/bin/sh\n[ \"$1\" = netexec ] || exit 0\ntrap 'exit 2' TERM\nhttpd -f -p 8080 -h /www &\nwait\n";
    let image = Image::busybox("registry.k8s.io/e2e-test-images/agnhost:2.53")?;
    let image = image.file("agnhost", script.into(), 0o755).file("www/healthz", b"ok".to_vec(), 0o644);
    Ok(image.config("Entrypoint", json!(["/agnhost"])))
}

impl GoldenBed {
    /// Starts everything; the node is ready when it returns.
    ///
    /// # Errors
    /// When a part does not start.
    pub fn start(say: fn(&str)) -> anyhow::Result<Self> {
        // Short: below it are the sockets of pods on bosun's own runtime.
        let parent = std::env::temp_dir().join(format!("g{:x}", std::process::id()));
        std::fs::create_dir_all(&parent)?;
        let folder = Folder(parent.clone());
        let resolv_conf = parent.join("resolv.conf");
        std::fs::write(&resolv_conf, "nameserver 10.255.255.53\n")?;
        let seen_from = parent.clone();
        let recorder = Recorder::start(&parent.join("cri.sock"), move || upstream(&seen_from))?;
        let config = json!({
            "containerRuntimeEndpoint": format!("unix://{}", recorder.socket().display()),
            "clusterDNS": ["10.96.0.10"],
            "clusterDomain": "cluster.local",
            "resolvConf": resolv_conf,
            "maxPods": 300,
            "registryPullQPS": 0,
            "eventRecordQPS": 0,
            "evictionHard": {"imagefs.available": "1%", "memory.available": "100Mi", "nodefs.available": "1%"},
        });
        let node = ClusterNode::start(NodeOptions {
            bed: Options { parent: parent.clone(), say, ..Options::default() },
            cluster: ClusterOptions { say, ..ClusterOptions::default() },
            bosun: BosunOptions { hostname: NODE.to_owned(), config, ..BosunOptions::default() },
            identity: Identity::Certificate,
        })?;
        node.bed.import(&agnhost()?)?;
        // The one of the recordings does not run as root.
        let pause = Image::pause("registry.k8s.io/pause:3.10", &parent)?.config("User", json!("65535:65535"));
        node.bed.import(&pause)?;
        say("the node");
        node.wait_ready(Duration::from_secs(60))?;
        let admin = node.cluster.admin();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        admin.create("/api/v1/namespaces", &namespace)?;
        node.cluster.await_namespace(NAMESPACE)?;
        let pods = admin.watch(&format!("/api/v1/namespaces/{NAMESPACE}/pods"))?;
        let events = admin.watch(&format!("/api/v1/namespaces/{NAMESPACE}/events"))?;
        Ok(GoldenBed { node, recorder, pods, events, folder })
    }

    /// Minor version of the API server.
    pub fn minor(&self) -> u32 {
        self.node.cluster.minor()
    }

    fn dirs(&self) -> Dirs {
        let text = |p: &str| self.node.bed.dir().join(p).to_string_lossy().into_owned();
        Dirs { root: text("node"), logs: text("logs"), cgroups: self.node.bed.cgroup_root().to_owned() }
    }

    /// The Node object beside the recorded one.
    ///
    /// # Errors
    /// When there is none.
    pub fn compare_node(&self) -> anyhow::Result<Outcome> {
        let ours = self.node.node()?;
        Ok(Outcome {
            case: NODE_CASE.to_owned(),
            compared: (0, 1, 0),
            skipped: None,
            differences: node_object::differences(&golden_node(), &ours, self.minor()),
        })
    }

    /// Runs cases, `lanes` at a time.
    pub fn run(&self, cases: Vec<String>, lanes: usize, say: fn(&str)) -> Vec<Outcome> {
        let queue = Mutex::new(VecDeque::from(cases));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let work = || {
            let mut out = Vec::new();
            while let Some(name) = next() {
                let began = Instant::now();
                let outcome = self.outcome(&name);
                say(&format!("{name}: {} differences in {:.0?}", outcome.differences.len(), began.elapsed()));
                out.push(outcome);
            }
            out
        };
        let mut outcomes: Vec<Outcome> = std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..lanes.max(1)).map(|_| scope.spawn(work)).collect();
            lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_default()).collect()
        });
        outcomes.sort_by(|a, b| a.case.cmp(&b.case));
        outcomes
    }

    fn outcome(&self, name: &str) -> Outcome {
        let case = case(name);
        let none = Outcome { case: name.to_owned(), compared: (0, 0, 0), skipped: None, differences: Vec::new() };
        if let Some((_, since, what)) = NEEDS.iter().find(|(c, since, _)| *c == name && self.minor() < *since) {
            let why = format!("{what} came with API servers of 1.{since}");
            return Outcome { skipped: Some(why), ..none };
        }
        let mut recorded = Life::from(&case);
        if NO_MIRROR.iter().any(|(c, since)| *c == name && self.minor() < *since) {
            recorded.mirror = None;
        }
        let seen = if case.is_static() { self.live_from_folder(&case) } else { self.live_from_api(&case) };
        match seen {
            Ok(seen) => Outcome {
                compared: (seen.calls.len(), seen.history.len(), seen.events.len()),
                differences: differences(&recorded, &seen, self.minor()),
                ..none
            },
            Err(error) => Outcome { differences: vec![format!("it did not run: {error:#}")], ..none },
        }
    }

    fn live_from_api(&self, case: &Case) -> anyhow::Result<Life> {
        let manifest = self.folder.0.join(format!("{}.yaml", case.name));
        std::fs::write(&manifest, &case.manifest)?;
        self.node.cluster.kubectl(&["apply", "--validate=false", "-f", &manifest.to_string_lossy()])?;
        self.let_live(case, &case.name);
        self.node.cluster.admin().delete(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{}", case.name))?;
        self.wait_gone(&case.name);
        pass(AFTERWARDS);
        let seen = self.pods.about(&case.name);
        let version = |s: &testbed::Seen| {
            let metadata = &s.object["metadata"];
            json!({
                "event": s.kind,
                "deletionTimestamp": metadata["deletionTimestamp"],
                "deletionGracePeriodSeconds": metadata["deletionGracePeriodSeconds"],
                "status": s.object["status"],
            })
        };
        let uid = seen.first().and_then(|s| s.object["metadata"]["uid"].as_str()).context("no pod was seen")?;
        Ok(Life {
            calls: self.calls_of(&case.name),
            dirs: self.dirs(),
            uid: uid.to_owned(),
            history: seen.iter().map(version).collect(),
            events: self.events_of(&case.name),
            mirror: None,
        })
    }

    fn live_from_folder(&self, case: &Case) -> anyhow::Result<Life> {
        let file = format!("{}.yaml", case.name);
        let manifest = case.static_manifest();
        let own = manifest.lines().find_map(|l| l.strip_prefix("  name: ")).context("a manifest without name")?;
        let name = format!("{own}-{NODE}");
        self.node.bosun.put(&file, &manifest)?;
        self.let_live(case, &name);
        let mirror = self.node.cluster.admin().get(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}")).ok();
        let events = self.events_of(&name);
        self.node.bosun.remove(&file)?;
        // Its mirror may never have been there.
        let gone = || match self.node.bosun.pod(own) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err("it is still there".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        testbed::wait_until(&format!("{name} to be gone"), GONE, gone)?;
        self.wait_gone(&name);
        pass(AFTERWARDS);
        let calls = self.calls_of(&name);
        let uid = calls.first().and_then(|c| c.request["config"]["metadata"]["uid"].as_str()).unwrap_or_default();
        Ok(Life { uid: uid.to_owned(), calls, dirs: self.dirs(), history: Vec::new(), events, mirror })
    }

    /// Lets a pod live as long as it was recorded, counted from its first call where it made one.
    fn let_live(&self, case: &Case, name: &str) {
        let end = Instant::now() + GONE;
        while !case.calls.is_empty() && self.calls_of(name).is_empty() && Instant::now() < end {
            pass(LOOK);
        }
        pass(Duration::from_secs_f64(case.lived_s));
    }

    /// Waits until the pod's object is gone; one that never is shows in the versions.
    fn wait_gone(&self, name: &str) {
        let end = Instant::now() + GONE;
        while Instant::now() < end {
            match self.pods.about(name).last() {
                Some(last) if last.kind != "DELETED" => pass(LOOK),
                _ => return,
            }
        }
    }

    /// Calls about the pod of this name.
    fn calls_of(&self, name: &str) -> Vec<Call> {
        let mut ours = std::collections::BTreeSet::new();
        let mut out = Vec::new();
        for call in self.recorder.calls() {
            let request = &call.request;
            let named = ["config", "sandbox_config"].iter().any(|c| {
                let metadata = &request[*c]["metadata"];
                metadata["name"] == name && metadata["namespace"] == NAMESPACE
            });
            let known = ["pod_sandbox_id", "container_id"]
                .iter()
                .any(|f| request[*f].as_str().is_some_and(|id| ours.contains(id)));
            if named || known {
                ours.extend(call.made.clone());
                out.push(call);
            }
        }
        out
    }

    fn events_of(&self, name: &str) -> Vec<(String, String)> {
        let mut out: Vec<(String, String)> = Vec::new();
        for seen in self.events.seen().iter().filter(|s| s.object["involvedObject"]["name"] == name) {
            let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
            let event = (
                format!("{}: {}", text(&seen.object["reason"]), text(&seen.object["message"])),
                text(&seen.object["involvedObject"]["fieldPath"]),
            );
            if !out.contains(&event) {
                out.push(event);
            }
        }
        out
    }

    /// Where the daemon's log is, to look for causes.
    pub fn log_path(&self) -> PathBuf {
        self.node.bosun.log_path()
    }
}

/// Every recorded pod.
pub fn all_cases() -> Vec<String> {
    // The long ones first.
    let mut all = names();
    all.sort_by(|a, b| case(b).lived_s.total_cmp(&case(a).lived_s));
    all
}
