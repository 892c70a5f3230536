//! containerd's event service.

use model::Timestamp;
use ports::runtime::{RuntimeEvent, RuntimeEventKind};
use prost::Message;

use crate::stubs::containerd::{ContainerEvent, Envelope, TaskDelete, TaskStart};

/// Reads an event; `None` for those that are not about the first process of a container.
pub(super) fn event(e: Envelope) -> Option<RuntimeEvent> {
    let body = e.event?.value;
    let sent = e.timestamp.as_ref().map(nanos);
    let (kind, id, at) = match e.topic.as_str() {
        "/containers/create" => (RuntimeEventKind::Created, ContainerEvent::decode(&body[..]).ok()?.id, sent),
        "/containers/delete" => (RuntimeEventKind::Deleted, ContainerEvent::decode(&body[..]).ok()?.id, sent),
        "/tasks/start" => (RuntimeEventKind::Started, TaskStart::decode(&body[..]).ok()?.container_id, sent),
        // The CRI plugin deletes the task of an ended container, and then stores the new status.
        "/tasks/delete" => {
            let gone = TaskDelete::decode(&body[..]).ok().filter(|x| x.id.is_empty() || x.id == x.container_id)?;
            (RuntimeEventKind::Stopped, gone.container_id, gone.exited_at.as_ref().map(nanos))
        }
        _ => return None,
    };
    let at = at.unwrap_or_default();
    (!id.is_empty()).then_some(RuntimeEvent { kind, id, sandbox: None, pod: None, at, statuses: None })
}

fn nanos(t: &prost_types::Timestamp) -> Timestamp {
    Timestamp(t.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(t.nanos)))
}

#[cfg(test)]
mod tests;
