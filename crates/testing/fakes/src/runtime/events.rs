//! Events: what they tell, and what becomes of them on their way.

use cri_api::v1;
use ports::runtime::RuntimeEventKind;
use tokio::time::sleep;

use super::state::{Change, EventTrouble};
use super::{Inner, lock};

impl Inner {
    pub(super) fn emit(&self, kind: RuntimeEventKind, id: &str, exit_code: i32) {
        let trouble = lock(&self.script).events;
        if trouble == EventTrouble::Lost {
            return;
        }
        let change = Change { kind, id: id.to_owned(), at: self.now(), exit_code, cri: self.cri_event(kind, id) };
        let late = match trouble {
            EventTrouble::Late(by) => Some(by),
            EventTrouble::Reordered(by) => lock(&self.state).every_other().then_some(by),
            _ => None,
        };
        // Nobody listening is fine.
        let changes = self.changes.clone();
        if let Some(by) = late {
            tokio::spawn(async move {
                sleep(by).await;
                let _ = changes.send(change);
            });
            return;
        }
        if trouble == EventTrouble::Twice {
            let _ = changes.send(change.clone());
        }
        let _ = changes.send(change);
    }

    /// What CRI tells, where this runtime has events of CRI.
    fn cri_event(&self, kind: RuntimeEventKind, id: &str) -> v1::ContainerEventResponse {
        let (has_events, with_resources) = {
            let features = &lock(&self.script).features;
            (features.cri_events, features.resources_in_status)
        };
        if !has_events {
            return v1::ContainerEventResponse::default();
        }
        let state = lock(&self.state);
        let sandbox_id = state.containers.get(id).map_or(id, |c| c.sandbox.as_str());
        let of_sandbox = state.containers.values().filter(|c| c.sandbox == sandbox_id);
        v1::ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: cri_kind(kind).into(),
            created_at: self.now(),
            pod_sandbox_status: state.sandboxes.get(sandbox_id).map(super::FakeSandbox::to_status),
            containers_statuses: of_sandbox.map(|c| c.to_status(with_resources)).collect(),
        }
    }
}

fn cri_kind(kind: RuntimeEventKind) -> v1::ContainerEventType {
    match kind {
        RuntimeEventKind::Created => v1::ContainerEventType::ContainerCreatedEvent,
        RuntimeEventKind::Started => v1::ContainerEventType::ContainerStartedEvent,
        RuntimeEventKind::Stopped => v1::ContainerEventType::ContainerStoppedEvent,
        RuntimeEventKind::Deleted => v1::ContainerEventType::ContainerDeletedEvent,
    }
}
