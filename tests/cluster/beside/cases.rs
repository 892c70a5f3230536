//! Pods with volumes of a CSI driver, each with what it needs in the cluster.

use csi_driver::{Effect, Rule};
use serde_json::{Value, json};

use crate::node::{LASTS, pod, shell};

/// Rules of this driver: volumes are attached, pods are named to it.
pub(super) const DRIVER: &str = "dir.csi.bosun.test";
/// No attachment, inline volumes, tokens, its own way with groups.
pub(super) const PLAIN: &str = "plain.csi.bosun.test";
/// A driver that nobody runs.
const ABSENT: &str = "absent.csi.bosun.test";

/// How far a case comes before its pods are deleted.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    /// All pods are ready.
    Ready,
    /// An event of this reason is there about each pod.
    Event(&'static str),
}

/// One case.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Claims with their volumes; each is bound by hand.
    pub(super) claims: Vec<Claim>,
    pub(super) secrets: Vec<&'static str>,
    pub(super) pods: Vec<Value>,
    pub(super) faults: Vec<Rule>,
    pub(super) until: Until,
}

/// A claim, and its volume unless it stays unbound.
pub(super) struct Claim {
    pub(super) name: &'static str,
    pub(super) mode: &'static str,
    /// Laid over the volume's source.
    pub(super) source: Value,
    /// Laid over the volume's specification.
    pub(super) volume: Value,
    pub(super) bound: bool,
}

impl Claim {
    fn of(name: &'static str, driver: &str) -> Self {
        let source =
            json!({"driver": driver, "volumeHandle": format!("vol-{name}"), "volumeAttributes": {"kind": "dir"}});
        Self { name, mode: "ReadWriteOnce", source, volume: json!({}), bound: true }
    }

    /// As `kubectl create` wants it, and its volume.
    pub(super) fn objects(&self) -> (Value, Value) {
        let room = json!({"storage": "1Gi"});
        let mut spec = json!({"accessModes": [self.mode], "resources": {"requests": room}, "storageClassName": ""});
        spec["volumeName"] = if self.bound { json!(format!("pv-{}", self.name)) } else { Value::Null };
        let claim =
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": self.name}, "spec": spec});
        let mut spec = json!({"capacity": room, "accessModes": [self.mode], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": self.name}, "csi": self.source});
        lay(&mut spec, &self.volume);
        let name = format!("pv-{}", self.name);
        (claim, json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}))
    }
}

fn lay(over: &mut Value, fields: &Value) {
    if let (Some(own), Some(more)) = (over.as_object_mut(), fields.as_object()) {
        own.extend(more.clone());
    }
}

/// A pod that mounts one volume.
fn user(name: &str, volume: &Value, more: &Value) -> Value {
    let container = shell("main", LASTS, json!({"volumeMounts": [{"name": "d", "mountPath": "/data"}]}));
    let mut volume = volume.clone();
    volume["name"] = json!("d");
    let mut spec = json!({"containers": [container], "volumes": [volume], "automountServiceAccountToken": false});
    lay(&mut spec, more);
    pod(name, spec)
}

fn claimed(claim: &str) -> Value {
    json!({"persistentVolumeClaim": {"claimName": claim}})
}

fn case(name: &'static str, claims: Vec<Claim>, pods: Vec<Value>) -> Case {
    Case { name, claims, secrets: Vec::new(), pods, faults: Vec::new(), until: Until::Ready }
}

fn fails_once(call: &str, code: i32) -> Rule {
    Rule { call: call.to_owned(), times: Some(1), effect: Effect::Code(code) }
}

/// gRPC codes.
const INTERNAL: i32 = 13;
const DEADLINE: i32 = 4;

/// All cases, in the order in which they run.
pub(super) fn all() -> Vec<Case> {
    let secret = |name: &str| json!({"name": name, "namespace": "default"});
    let mut whole = Claim::of("whole", DRIVER);
    lay(
        &mut whole.source,
        &json!({"fsType": "ext4", "nodeStageSecretRef": secret("stage"), "nodePublishSecretRef": secret("publish")}),
    );
    whole.volume = json!({"mountOptions": ["noatime", "nodiratime"]});
    let group = json!({"securityContext": {"fsGroup": 2000}});
    let inline = json!({"csi": {"driver": PLAIN, "volumeAttributes": {"kind": "dir", "colour": "red"}, "nodePublishSecretRef": {"name": "publish"}}});
    let mut read = claimed("read");
    read["persistentVolumeClaim"]["readOnly"] = json!(true);
    let shared = Claim { mode: "ReadWriteMany", ..Claim::of("shared", DRIVER) };
    vec![
        Case {
            secrets: vec!["stage", "publish"],
            ..case("whole", vec![whole], vec![user("whole", &claimed("whole"), &group)])
        },
        case("plain", vec![Claim::of("plain", PLAIN)], vec![user("plain", &claimed("plain"), &group)]),
        case("read-only", vec![Claim::of("read", DRIVER)], vec![user("read", &read, &json!({}))]),
        case(
            "shared",
            vec![shared],
            vec![user("shared-a", &claimed("shared"), &json!({})), user("shared-b", &claimed("shared"), &json!({}))],
        ),
        Case { secrets: vec!["publish"], ..case("inline", vec![], vec![user("inline", &inline, &json!({}))]) },
        Case {
            faults: vec![fails_once("NodeStageVolume", INTERNAL)],
            ..case(
                "stage-fails",
                vec![Claim::of("stage", PLAIN)],
                vec![user("stage-fails", &claimed("stage"), &json!({}))],
            )
        },
        Case {
            faults: vec![fails_once("NodePublishVolume", DEADLINE)],
            ..case(
                "publish-fails",
                vec![Claim::of("late", PLAIN)],
                vec![user("publish-fails", &claimed("late"), &json!({}))],
            )
        },
        Case {
            until: Until::Event("FailedMount"),
            ..case("no-claim", vec![], vec![user("no-claim", &claimed("nothing"), &json!({}))])
        },
        Case {
            until: Until::Event("FailedMount"),
            ..case(
                "unbound",
                vec![Claim { bound: false, ..Claim::of("loose", PLAIN) }],
                vec![user("unbound", &claimed("loose"), &json!({}))],
            )
        },
        Case {
            until: Until::Event("FailedMount"),
            ..case(
                "no-driver",
                vec![Claim::of("absent", ABSENT)],
                vec![user("no-driver", &claimed("absent"), &json!({}))],
            )
        },
    ]
}

/// A pod with a claim of its own, of one driver or the other.
pub(super) fn one_of_twenty(n: u32) -> Case {
    // Names live as long as the process of the test.
    let name: &'static str = Box::leak(format!("moved-{n}").into_boxed_str());
    let claim = Claim::of(name, if n.is_multiple_of(2) { DRIVER } else { PLAIN });
    case(name, vec![claim], vec![user(name, &claimed(name), &json!({}))])
}
