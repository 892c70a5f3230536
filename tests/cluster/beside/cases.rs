//! Pods with volumes of a CSI driver, each with what it needs in the cluster.

use csi_driver::{Effect, Rule};
use serde_json::{Value, json};

use crate::site::{Claim, DRIVER, PLAIN, claimed, lay, raw_user, user};

/// A driver that nobody runs.
const ABSENT: &str = "absent.csi.bosun.test";

/// How far a case comes before its pods are deleted.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    /// All pods are ready.
    Ready,
    /// All pods are ready, and the driver was asked for the figures of the volume.
    Measured,
    /// An event of this reason is there about each pod.
    Event(&'static str),
}

/// One case.
pub(super) struct Case {
    pub(super) name: String,
    /// Claims with their volumes; each is bound by hand.
    pub(super) claims: Vec<Claim>,
    pub(super) secrets: Vec<&'static str>,
    pub(super) pods: Vec<Value>,
    pub(super) faults: Vec<Rule>,
    pub(super) until: Until,
}

fn case(name: &str, claims: Vec<Claim>, pods: Vec<Value>) -> Case {
    Case { name: name.to_owned(), claims, secrets: Vec::new(), pods, faults: Vec::new(), until: Until::Ready }
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
    let room = json!({"storage": "64Mi"});
    let grown = Claim {
        size: "32Mi",
        spec: json!({"resources": {"requests": room}}),
        status: json!({"conditions": [{"type": "FileSystemResizePending", "status": "True"}],
            "allocatedResources": room, "allocatedResourceStatuses": {"storage": "NodeResizePending"}}),
        volume: json!({"capacity": room}),
        ..Claim::of("grown", PLAIN)
    };
    let raw = |name, driver| Claim { kind: "Block", ..Claim::of(name, driver) };
    let mut grown_raw = raw("grown-raw", PLAIN);
    (grown_raw.size, grown_raw.spec, grown_raw.volume) = (grown.size, grown.spec.clone(), grown.volume.clone());
    grown_raw.status = grown.status.clone();
    grown_raw.source["volumeAttributes"]["size"] = json!("33554432");
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
        case("raw", vec![raw("raw", DRIVER)], vec![raw_user("raw", &claimed("raw"), "")]),
        Case {
            faults: vec![fails_once("NodePublishVolume", INTERNAL)],
            ..case("raw-fails", vec![raw("raw-late", PLAIN)], vec![raw_user("raw-fails", &claimed("raw-late"), "")])
        },
        case("grown", vec![grown], vec![user("grown", &claimed("grown"), &json!({}))]),
        case("grown-raw", vec![grown_raw], vec![raw_user("grown-raw", &claimed("grown-raw"), "")]),
        Case {
            until: Until::Measured,
            ..case("measured", vec![Claim::of("seen", DRIVER)], vec![user("measured", &claimed("seen"), &json!({}))])
        },
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
    let name = format!("moved-{n}");
    let claim = Claim::of(&name, if n.is_multiple_of(2) { DRIVER } else { PLAIN });
    case(&name, vec![claim], vec![user(&name, &claimed(&name), &json!({}))])
}
