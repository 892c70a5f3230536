//! containerd's event service, as far as a node daemon uses it.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use ports::runtime::RuntimeEventKind;
use prost::Message;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;
use tonic::{Request, Response, Status, async_trait};

use super::state::Change;
use super::{Inner, lock};
use crate::stubs::containerd::events_server::Events;
use crate::stubs::containerd::{ContainerEvent, Envelope, SubscribeRequest, TaskDelete, TaskStart};

pub(super) struct EventService(pub(super) Arc<Inner>);

#[async_trait]
impl Events for EventService {
    type SubscribeStream = Pin<Box<dyn Stream<Item = Result<Envelope, Status>> + Send>>;

    async fn subscribe(&self, _: Request<SubscribeRequest>) -> Result<Response<Self::SubscribeStream>, Status> {
        if !lock(&self.0.script).features.containerd_events {
            return Err(Status::unimplemented("unknown service containerd.services.events.v1.Events"));
        }
        let changes = BroadcastStream::new(self.0.changes.subscribe());
        let envelopes = changes.filter_map(Result::ok).map(envelopes);
        Ok(Response::new(Box::pin(futures::StreamExt::flat_map(envelopes, |e| {
            tokio_stream::iter(e.into_iter().map(Ok))
        }))))
    }
}

/// One change is one or two events: an exit is followed by the removal of its task.
fn envelopes(change: Change) -> Vec<Envelope> {
    let at = Some(prost_types::Timestamp {
        seconds: change.at.div_euclid(1_000_000_000),
        nanos: i32::try_from(change.at.rem_euclid(1_000_000_000)).unwrap_or(0),
    });
    let container_id = change.id.clone();
    let envelope = |topic: &str, message: &str, value: Vec<u8>| Envelope {
        timestamp: at,
        namespace: "k8s.io".to_owned(),
        topic: topic.to_owned(),
        event: Some(prost_types::Any { type_url: format!("containerd.events.{message}"), value }),
    };
    match change.kind {
        RuntimeEventKind::Created => {
            vec![envelope("/containers/create", "ContainerCreate", ContainerEvent { id: change.id }.encode_to_vec())]
        }
        RuntimeEventKind::Deleted => {
            vec![envelope("/containers/delete", "ContainerDelete", ContainerEvent { id: change.id }.encode_to_vec())]
        }
        RuntimeEventKind::Started => {
            vec![envelope("/tasks/start", "TaskStart", TaskStart { container_id }.encode_to_vec())]
        }
        RuntimeEventKind::Stopped => {
            let exit_status = u32::try_from(change.exit_code).unwrap_or(255);
            let gone = TaskDelete { container_id, pid: 1, exit_status, exited_at: at, id: String::new() };
            vec![envelope("/tasks/delete", "TaskDelete", gone.encode_to_vec())]
        }
    }
}
