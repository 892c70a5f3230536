//! Pods with volumes of a CSI driver, each with what it needs in the cluster.

use csi_driver::{Effect, Rule};
use serde_json::{Value, json};

use super::{AGAIN, MIGRATED};
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
    /// All pods are ready, and the driver was told of the volume once more.
    Republished,
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
    /// Of the last pod, where that is another one.
    pub(super) last: Option<Until>,
    /// First minor version of an API server that knows what the case has.
    pub(super) since: u32,
}

impl Case {
    /// Whether the claims are made for the pod alone, after it.
    pub(super) fn owns_claims(&self) -> bool {
        self.pods.iter().any(|p| p["spec"]["volumes"][0]["ephemeral"].is_object())
    }
}

fn case(name: &str, claims: Vec<Claim>, pods: Vec<Value>) -> Case {
    let (secrets, faults) = (Vec::new(), Vec::new());
    Case { name: name.to_owned(), claims, secrets, pods, faults, until: Until::Ready, last: None, since: 0 }
}

/// A case of one pod with one claim, both of this name.
fn lone(name: &str, claim: Claim) -> Case {
    case(name, vec![claim], vec![user(name, &claimed(name), &json!({}))])
}

fn fails_once(call: &str, code: i32) -> Rule {
    Rule { call: call.to_owned(), times: Some(1), effect: Effect::Code(code) }
}

/// gRPC codes.
const INTERNAL: i32 = 13;
const DEADLINE: i32 = 4;

/// All cases, in the order in which they run.
pub(super) fn all() -> Vec<Case> {
    let mut all = plain();
    all.extend(odd());
    all
}

/// What a driver refuses, what nobody may have, and volumes that come another way.
fn odd() -> Vec<Case> {
    let fails = |until: Until, case: Case| Case { until, ..case };
    let no_mount = Until::Event("FailedMount");
    let one_pod = Claim { mode: "ReadWriteOncePod", ..Claim::of("one-pod", DRIVER) };
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}});
    let ephemeral = json!({"ephemeral": {"volumeClaimTemplate": template}});
    let migrated = json!({"csi": null, "awsElasticBlockStore": {"volumeID": "vol-migrated", "fsType": "ext4"}});
    vec![
        Case { until: Until::Republished, since: 35, ..lone("republished", Claim::of("republished", AGAIN)) },
        Case {
            last: Some(no_mount),
            since: 22,
            ..case(
                "one-pod",
                vec![one_pod],
                ["one-pod-a", "one-pod-b"].map(|name| user(name, &claimed("one-pod"), &json!({}))).into(),
            )
        },
        Case {
            since: 21,
            ..case(
                "ephemeral",
                // Named by the pod and its volume.
                vec![Claim::of("ephemeral-d", PLAIN)],
                vec![user("ephemeral", &ephemeral, &json!({}))],
            )
        },
        fails(
            no_mount,
            lone("unattachable", Claim { attach_error: Some("no such disk"), ..Claim::of("unattachable", DRIVER) }),
        ),
        Case {
            faults: vec![fails_once("NodeUnpublishVolume", INTERNAL)],
            ..lone("unpublish-fails", Claim::of("unpublish-fails", DRIVER))
        },
        Case {
            faults: vec![fails_once("NodeUnstageVolume", DEADLINE)],
            ..lone("unstage-fails", Claim::of("unstage-fails", DRIVER))
        },
        // Protected by its finalizer as long as a pod has it: whoever comes still gets it.
        lone("leaving", Claim { leaves: true, ..Claim::of("leaving", PLAIN) }),
        fails(no_mount, lone("wrong-mode", Claim { kind: "Block", ..Claim::of("wrong-mode", PLAIN) })),
        lone("migrated", Claim { volume: migrated, ..Claim::of("migrated", MIGRATED) }),
    ]
}

/// What most pods have, and the first errors that people meet.
fn plain() -> Vec<Case> {
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

/// A pod with a claim of its own, of one driver or the other, one of five as a device.
pub(super) fn one_of_twenty(n: u32) -> Case {
    let name = format!("moved-{n}");
    let claim = Claim::of(&name, if n.is_multiple_of(2) { DRIVER } else { PLAIN });
    if is_raw(n) {
        let claim = Claim { kind: "Block", ..claim };
        return case(&name, vec![claim], vec![raw_user(&name, &claimed(&name), "")]);
    }
    case(&name, vec![claim], vec![user(&name, &claimed(&name), &json!({}))])
}

pub(super) const fn is_raw(n: u32) -> bool {
    n % 5 == 4
}
