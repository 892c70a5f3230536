//! What happened to containers, told to whoever listens (`GetContainerEvents`).

use cri_api::v1;
use futures::{Stream, StreamExt};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tonic::Status;

/// Events that a slow listener may be behind. Then its stream ends, and it lists everything anew.
const BEHIND: usize = 1024;

/// Where events go.
#[derive(Clone, Debug)]
pub(crate) struct Events(broadcast::Sender<v1::ContainerEventResponse>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(BEHIND).0)
    }

    pub(crate) fn tell(&self, event: v1::ContainerEventResponse) {
        // Nobody may listen.
        let _ = self.0.send(event);
    }

    pub(crate) fn listen(&self) -> impl Stream<Item = Result<v1::ContainerEventResponse, Status>> + Send + use<> {
        BroadcastStream::new(self.0.subscribe()).map(|event| {
            event.map_err(|BroadcastStreamRecvError::Lagged(n)| {
                Status::data_loss(format!("{n} events were not taken in time"))
            })
        })
    }
}
