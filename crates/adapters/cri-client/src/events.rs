//! Container events: the CRI's own stream where there is one, else containerd's event service, else nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use model::runtime::EventTier;
use ports::runtime::{EventStream, RuntimeEvent, RuntimeResult};
use tokio::time::timeout;
use tonic::{Response, Status, Streaming};

use crate::CriClient;
use crate::client::Absent;
use crate::status;
use crate::stubs::containerd as ctrd;

mod containerd;
mod cri;

const CRI: &str = "GetContainerEvents";
const CONTAINERD: &str = "containerd.services.events.v1.Events/Subscribe";

/// Go servers send the headers of a stream with its first message, so "no answer yet" is the normal sign of a quiet
/// stream, while a missing method is answered at once. This is how long we wait to be told.
const REFUSAL: Duration = Duration::from_millis(250);

/// Only what the CRI plugin owns, and only the topics that change a status. `/tasks/exit` is none of them: the plugin stores
/// the new status after it has deleted the task, and every command of an exec probe sends one.
const FILTER: &str = r#"namespace==k8s.io,topic~="^/(tasks/(start|delete)|containers/(create|delete))$""#;

type Events = Pin<Box<dyn Stream<Item = RuntimeResult<RuntimeEvent>> + Send>>;

/// Subscribes to the best tier that the runtime has.
pub(crate) async fn subscribe(client: &CriClient) -> RuntimeResult<EventStream> {
    let absent = client.absent();
    if !absent.knows(CRI) {
        let mut stub = client.stub();
        let call = async move { stub.get_container_events(cri_api::v1::GetEventsRequest {}).await };
        if let Some(events) = open(absent, CRI, call, cri::event).await? {
            return Ok(EventStream { tier: EventTier::CriStream, events });
        }
    }
    if !absent.knows(CONTAINERD) {
        let mut stub = client.containerd();
        let request = ctrd::SubscribeRequest { filters: vec![FILTER.to_owned()] };
        let call = async move { stub.subscribe(request).await };
        if let Some(events) = open(absent, CONTAINERD, call, containerd::event).await? {
            return Ok(EventStream { tier: EventTier::Containerd, events });
        }
    }
    Ok(EventStream { tier: EventTier::Relist, events: Box::pin(stream::empty()) })
}

/// Opens a stream; `None` when the runtime does not implement it.
async fn open<M: Send + 'static>(
    absent: &Arc<Absent>,
    name: &'static str,
    call: impl Future<Output = Result<Response<Streaming<M>>, Status>> + Send + 'static,
    read: fn(M) -> Option<RuntimeEvent>,
) -> RuntimeResult<Option<Events>> {
    let mut call = Box::pin(call);
    let opened = match timeout(REFUSAL, &mut call).await {
        Err(_) => None,
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(s)) => {
            let e = status::error(&s);
            if e.is_unimplemented() {
                absent.remember(name);
                return Ok(None);
            }
            return Err(e);
        }
    };
    let absent = Arc::clone(absent);
    let fail = move |s: Status| {
        let e = status::error(&s);
        if e.is_unimplemented() {
            absent.remember(name);
        }
        e
    };
    let answers = stream::once(async move {
        match opened {
            Some(answer) => Ok(answer),
            None => call.await,
        }
    });
    let messages = answers.flat_map(|answer| match answer {
        Ok(answer) => answer.into_inner().left_stream(),
        Err(s) => stream::once(async move { Err(s) }).right_stream(),
    });
    Ok(Some(Box::pin(messages.filter_map(move |m| {
        let event = match m {
            Ok(m) => read(m).map(Ok),
            Err(s) => Some(Err(fail(s))),
        };
        async move { event }
    }))))
}
