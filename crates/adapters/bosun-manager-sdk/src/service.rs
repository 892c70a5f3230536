//! The service that a node connects to.

use std::pin::Pin;

use futures::stream::{self, Stream};
use seam::WAITING_FRAMES;
use seam::v1::{DescribeRequest, Description, FromManager, MetricsAnswer, MetricsRequest, ToManager};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use crate::stub::manager_server::Manager;

/// A node that has come.
pub(crate) struct Attached {
    pub(crate) incoming: Streaming<ToManager>,
    pub(crate) frames: mpsc::Sender<FromManager>,
}

/// Says who is here, and hands on who comes.
pub(crate) struct Service {
    pub(crate) description: Description,
    pub(crate) attached: mpsc::Sender<Attached>,
}

#[tonic::async_trait]
impl Manager for Service {
    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<Description>, Status> {
        Ok(Response::new(self.description.clone()))
    }

    async fn metrics(&self, _: Request<MetricsRequest>) -> Result<Response<MetricsAnswer>, Status> {
        Ok(Response::new(seam::numbers::said(&metrics::counted())))
    }

    type ServeStream = Pin<Box<dyn Stream<Item = Result<FromManager, Status>> + Send>>;

    async fn serve(&self, request: Request<Streaming<ToManager>>) -> Result<Response<Self::ServeStream>, Status> {
        let (frames, said) = mpsc::channel(WAITING_FRAMES);
        let attached = Attached { incoming: request.into_inner(), frames };
        self.attached.send(attached).await.map_err(|_| Status::unavailable("the manager ends"))?;
        let said = stream::unfold(said, |mut said| async { Some((Ok(said.recv().await?), said)) });
        Ok(Response::new(Box::pin(said)))
    }
}
