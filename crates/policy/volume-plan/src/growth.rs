//! Growing a volume on this node after its controller made it larger (node-and-resources 6.13, Expansion). Rules, texts and
//! what is written to the claim are a kubelet's.

use std::collections::BTreeMap;

use model::Timestamp;
use model::core::{PersistentVolumeClaim, PersistentVolumeClaimStatus};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::quantity::Quantity;
use serde_json::{Map, Value, json};

const STORAGE: &str = "storage";
const PENDING: &str = "NodeResizePending";
const IN_PROGRESS: &str = "NodeResizeInProgress";
const INFEASIBLE: &str = "NodeResizeInfeasible";
const ERROR: &str = "NodeResizeError";
/// Conditions that tell of a volume that grows: all go when it has.
const CONDITIONS: [&str; 4] = ["FileSystemResizePending", "Resizing", "ControllerResizeError", ERROR];
/// On a claim: nodes have nothing to do when its volume grows.
const NOT_ON_NODES: &str = "volume.kubernetes.io/node-expansion-not-required";

/// What is to be done about the size of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It counts as having this size: nothing is left to do.
    Reached(Quantity),
    /// The claim says that the node is not to do anything, for now.
    NotNow,
    /// The driver is to be asked.
    Ask(Ask),
}

/// What the driver is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Size that the volume is to have.
    pub to: Quantity,
    protocol: Protocol,
    /// A failure ends the growth for good: the user wants another size by now, and it failed before.
    gives_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Controller and node tell in the claim's status how far they are.
    Told,
    /// Another node told already: the volume is with several, and grows on each.
    Again,
    /// The controller is one of before 1.34 that tells nothing but the size of the PersistentVolume.
    Silent,
}

/// Why a volume did not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The driver is not there: nothing was tried.
    Absent,
    /// The driver grows no volumes on nodes.
    Unsupported,
    /// Not while it is in use.
    InUse,
    /// Not to this size.
    Infeasible,
    /// Anything else.
    Other,
}

/// What follows from a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterRefusal {
    /// What the claim is told, see [`failed`]; `None`: nothing.
    pub told: Option<Told>,
    /// How the operation ends.
    pub end: End,
}

/// What a claim is told of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A condition.
    Error,
    /// A condition, and that it is not tried again.
    Infeasible,
}

/// How an operation ended that made nothing grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As if it had grown: the driver has nothing to do for that.
    Reached,
    /// It is not tried again while the volume is in use here; whether it counts as grown.
    NotInUse {
        /// It does.
        reached: bool,
    },
    /// With an error: it is tried again.
    Failed,
}

fn storage(of: Option<&BTreeMap<String, ApiQuantity>>) -> Quantity {
    of.and_then(|all| Quantity::try_from(all.get(STORAGE)?).ok()).unwrap_or(Quantity::ZERO)
}

fn status(claim: &PersistentVolumeClaim) -> Option<&PersistentVolumeClaimStatus> {
    claim.status.as_ref()
}

/// Size that the claim says it has; zero: it says none.
#[must_use]
pub fn size(claim: &PersistentVolumeClaim) -> Quantity {
    storage(status(claim).and_then(|s| s.capacity.as_ref()))
}

fn resize_status(claim: &PersistentVolumeClaim) -> &str {
    let all = status(claim).and_then(|s| s.allocated_resource_statuses.as_ref());
    all.and_then(|all| all.get(STORAGE)).map_or("", String::as_str)
}

/// What is to be done for a claim whose PersistentVolume has this size, which is larger than the volume here. `failed`: an
/// attempt here failed before.
#[must_use]
pub fn growth(claim: &PersistentVolumeClaim, volume_size: Quantity, failed: bool) -> Growth {
    let (has, how) = (size(claim), resize_status(claim));
    let allocated = status(claim).and_then(|s| s.allocated_resources.as_ref());
    if how.is_empty() && allocated.is_none() {
        return Growth::Ask(Ask { to: volume_size, protocol: Protocol::Silent, gives_up: false });
    }
    let to = storage(allocated);
    let spec = claim.spec.as_ref();
    let wanted = storage(spec.and_then(|s| s.resources.as_ref()?.requests.as_ref()));
    let gives_up = failed && wanted != to;
    let is_told = how.is_empty() && has >= to;
    let with_many = spec.is_some_and(|s| s.access_modes.iter().flatten().any(|m| m == "ReadWriteMany"));
    let on_nodes = claim.metadata.annotations.as_ref().is_none_or(|a| !a.contains_key(NOT_ON_NODES));
    match how {
        _ if is_told && with_many && on_nodes => Growth::Ask(Ask { to, protocol: Protocol::Again, gives_up }),
        _ if is_told => Growth::Reached(to),
        PENDING | IN_PROGRESS => Growth::Ask(Ask { to, protocol: Protocol::Told, gives_up }),
        _ => Growth::NotNow,
    }
}

impl Ask {
    /// The patch of the claim's status before the driver is asked; `None`: there is nothing to tell.
    #[must_use]
    pub fn begun(&self, claim: &PersistentVolumeClaim) -> Option<Value> {
        if self.protocol != Protocol::Told || resize_status(claim) == IN_PROGRESS {
            return None;
        }
        Some(patch(claim, json!({ "allocatedResourceStatuses": { STORAGE: IN_PROGRESS } })))
    }

    /// The patch of the claim's status after the volume has grown; `None`: the claim tells of it already.
    #[must_use]
    pub fn finished(&self, claim: &PersistentVolumeClaim) -> Option<Value> {
        let is_told = match self.protocol {
            Protocol::Told => false,
            Protocol::Again => true,
            Protocol::Silent => size(claim) >= self.to,
        };
        if is_told {
            return None;
        }
        let mut fields = Map::new();
        fields.insert("capacity".to_owned(), json!({ STORAGE: self.to.to_string() }));
        if !resize_status(claim).is_empty() {
            fields.insert("allocatedResourceStatuses".to_owned(), json!({ STORAGE: null }));
        }
        let conditions = status(claim).and_then(|s| s.conditions.as_ref()).into_iter().flatten();
        let gone = conditions.filter(|c| CONDITIONS.contains(&c.type_.as_str()));
        let gone: Vec<Value> = gone.map(|c| json!({ "$patch": "delete", "type": c.type_ })).collect();
        if !gone.is_empty() {
            fields.insert("conditions".to_owned(), gone.into());
        }
        Some(patch(claim, fields.into()))
    }

    /// What follows from a refusal.
    #[must_use]
    pub fn after(&self, refusal: Refusal) -> AfterRefusal {
        let told = match (self.protocol, refusal) {
            (Protocol::Silent, _) | (_, Refusal::Absent) | (Protocol::Again, Refusal::Unsupported) => None,
            (_, Refusal::Infeasible) => Some(Told::Infeasible),
            _ if self.gives_up => Some(Told::Infeasible),
            _ => Some(Told::Error),
        };
        let end = match (self.protocol, refusal) {
            (Protocol::Silent | Protocol::Again, Refusal::Unsupported) => End::Reached,
            (protocol, Refusal::InUse) => End::NotInUse { reached: protocol == Protocol::Silent },
            _ => End::Failed,
        };
        AfterRefusal { told, end }
    }
}

/// A patch that holds only for this version of the claim.
fn patch(claim: &PersistentVolumeClaim, status: Value) -> Value {
    json!({ "metadata": { "resourceVersion": claim.metadata.resource_version }, "status": status })
}

/// The patch of the claim's status after a failure; `None`: it tells of it already.
#[must_use]
pub fn failed(claim: &PersistentVolumeClaim, told: Told, error: &str, now: Timestamp) -> Option<Value> {
    let mut fields = Map::new();
    if told == Told::Infeasible && resize_status(claim) != INFEASIBLE {
        fields.insert("allocatedResourceStatuses".to_owned(), json!({ STORAGE: INFEASIBLE }));
    }
    let mut conditions = status(claim).and_then(|s| s.conditions.as_ref()).into_iter().flatten();
    if !conditions.any(|c| c.type_ == ERROR && c.status == "True") {
        let message = format!("failed to expand pvc with {error}");
        let at = now.to_api();
        let condition = json!({ "type": ERROR, "status": "True", "lastTransitionTime": at, "message": message });
        fields.insert("conditions".to_owned(), json!([condition]));
    }
    (!fields.is_empty()).then(|| json!({ "status": fields }))
}
