//! EvictionManager: what runs short on the node.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use model::{PodUid, Timestamp};

/// What EvictionManager publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePressure {
    /// Pressure conditions that hold now, e.g. `MemoryPressure`, in the order in which a Node has them.
    pub conditions: Vec<String>,
}

/// What EvictionManager publishes for people: all that may run short, and what came of it. Nobody else acts on it: it is made anew with
/// each look. Outlives generations; what came of it is told of this daemon only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureView {
    /// When the machine was looked at last; 0: not yet, or never, as there are neither thresholds nor limits.
    pub looked_at: Timestamp,
    /// What was seen, and what has a threshold, by name.
    pub signals: Vec<SignalView>,
    /// Conditions that hold, in the order in which a Node has them.
    pub conditions: Vec<ConditionView>,
    /// What was tidied up last.
    pub reclaim: Option<ReclaimView>,
    /// Who was evicted last.
    pub victim: Option<VictimView>,
    /// Who is told to end just now: nobody knows yet whether the pod's worker was reached. A rebuilt EvictionManager goes on from here.
    #[serde(default)]
    pub ordered: Option<OrderView>,
}

/// An order to end a pod that was not answered yet. What it counts as is counted when it is known to be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderView {
    /// Pod.
    pub uid: PodUid,
    /// As whom it is shown once the order is taken.
    pub victim: VictimView,
    /// Annotations of its event.
    pub annotations: BTreeMap<String, String>,
    /// Signals of all thresholds that were due; none for a limit of its own.
    pub due: Vec<String>,
    /// When they were looked at.
    pub looked_at: Timestamp,
}

/// Something that may run short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalView {
    /// `memory.available`, ...
    pub signal: String,
    /// What is left, in bytes, inodes or processes; `None`: it cannot be seen, and its thresholds are passed over.
    pub available: Option<i64>,
    /// What there is.
    pub capacity: Option<i64>,
    /// Hard and soft ones.
    pub thresholds: Vec<ThresholdView>,
}

/// How much is too little.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdView {
    /// As it was configured: `100Mi`, `10%`.
    pub below: String,
    /// So much must be free again on top; empty: nothing.
    pub reclaim: String,
    /// For how long it must be crossed; 0: it is a hard one.
    pub grace_ms: u64,
    /// Since when it is crossed without a break.
    pub since: Option<Timestamp>,
    /// It has been for its grace: pods go.
    pub due: bool,
}

/// A condition of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionView {
    /// `MemoryPressure`, ...
    pub condition: String,
    /// When it ends if nothing runs short again; `None`: something does.
    pub until: Option<Timestamp>,
}

/// What was done before a pod had to go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimView {
    /// When it was done.
    pub at: Timestamp,
    /// For what.
    pub signal: String,
    /// Bytes of images that went; `None`: it is not known.
    pub freed_bytes: Option<u64>,
    /// No pod had to go.
    pub enough: bool,
}

/// A pod that was evicted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VictimView {
    /// When it was told to end.
    pub at: Timestamp,
    /// `namespace/name`.
    pub pod: String,
    /// What ran short, or which limit of its own it met.
    pub signal: String,
    /// As its status says it.
    pub message: String,
}
