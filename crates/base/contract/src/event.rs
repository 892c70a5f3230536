//! EventRecorder: aggregation and spam filter of Events.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::Timestamp;
use model::event::{EventObject, EventType, NodeEvent};

/// Record one occurrence. A tell: losing one on a restart is allowed, a full mailbox drops it (counted by the kernel).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordEvent {
    /// What happened.
    pub event: NodeEvent,
    /// Annotations of the event, for programs. Of events that are alike the first one's stand.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl From<NodeEvent> for RecordEvent {
    fn from(event: NodeEvent) -> Self {
        Self { event, annotations: BTreeMap::new() }
    }
}

/// One line of the event list: occurrences that are alike are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventEntry {
    /// Severity.
    pub kind: EventType,
    /// CamelCase reason.
    pub reason: String,
    /// Text (of the latest occurrence; `(combined from similar events): ...` when aggregated).
    pub message: String,
    /// What it is about.
    pub object: EventObject,
    /// Occurrences.
    pub count: u32,
    /// First occurrence.
    pub first: Timestamp,
    /// Latest occurrence.
    pub last: Timestamp,
    /// Annotations, for programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Recent events, oldest first, bounded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EventView {
    /// The entries.
    pub entries: VecDeque<Arc<EventEntry>>,
    /// Events dropped by the spam filter since the start of the daemon.
    pub dropped: u64,
    /// Events given up on the way to the API server: refused, or no room left in the queue.
    pub undelivered: u64,
}
