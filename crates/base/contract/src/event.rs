//! EventRecorder: aggregation and spam filter of Events.

use std::collections::VecDeque;
use std::sync::Arc;

use actor::Inlet;
use model::Timestamp;
use model::event::{EventObject, EventType, NodeEvent};

use crate::view::Published;

/// Record one occurrence. A tell: losing one on a restart is allowed, a full mailbox drops it (counted by the kernel).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEvent {
    /// What happened.
    pub event: NodeEvent,
}
message!(RecordEvent => ());

/// One line of the event list: occurrences that are alike are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// Recent events, oldest first, bounded.
#[derive(Clone, Debug, Default)]
pub struct EventView {
    /// The entries.
    pub entries: VecDeque<Arc<EventEntry>>,
    /// Events dropped by the spam filter since the start of the daemon.
    pub dropped: u64,
    /// Events given up on the way to the API server: refused, or no room left in the queue.
    pub undelivered: u64,
}

/// How others reach the EventRecorder.
#[derive(Clone, Debug)]
pub struct EventHandle {
    /// Route of [`RecordEvent`].
    pub record: Inlet<RecordEvent>,
    /// What has been recorded.
    pub view: Published<EventView>,
}

impl Default for EventHandle {
    fn default() -> Self {
        Self { record: Inlet::unbound("EventRecorder.RecordEvent"), view: Published::default() }
    }
}

impl EventHandle {
    /// Records an event; never waits. A lost event is counted by the kernel and is no error for the caller.
    pub fn emit(&self, event: NodeEvent) {
        let _counted_by_the_kernel = self.record.tell(RecordEvent { event });
    }
}

protocol! {
    /// What an EventRecorder answers.
    EventRecorderProtocol for EventHandle {
        record: RecordEvent,
    }
}
