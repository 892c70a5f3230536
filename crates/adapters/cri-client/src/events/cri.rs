//! `GetContainerEvents`.

use cri_api::v1;
use model::Timestamp;
use ports::runtime::{PodStatuses, RuntimeEvent, RuntimeEventKind};

/// Reads an event. Kinds that we do not know are left out: the audit will see what they meant.
pub(super) fn event(e: v1::ContainerEventResponse) -> Option<RuntimeEvent> {
    let kind = match v1::ContainerEventType::try_from(e.container_event_type).ok()? {
        v1::ContainerEventType::ContainerCreatedEvent => RuntimeEventKind::Created,
        v1::ContainerEventType::ContainerStartedEvent => RuntimeEventKind::Started,
        v1::ContainerEventType::ContainerStoppedEvent => RuntimeEventKind::Stopped,
        v1::ContainerEventType::ContainerDeletedEvent => RuntimeEventKind::Deleted,
    };
    let sandbox = e.pod_sandbox_status.filter(|s| !s.id.is_empty());
    let pod = sandbox.as_ref().and_then(|s| s.metadata.as_ref()).map(|m| m.uid.as_str()).filter(|u| !u.is_empty());
    Some(RuntimeEvent {
        kind,
        id: e.container_id,
        sandbox: sandbox.as_ref().map(|s| s.id.clone()),
        pod: pod.map(Into::into),
        at: Timestamp(e.created_at),
        statuses: sandbox.map(|sandbox| Box::new(PodStatuses { sandbox, containers: e.containers_statuses })),
    })
}
