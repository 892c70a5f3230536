//! How clients reach the fake: a unix socket or an in-memory pipe. All connections can be cut at once.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use actor::watch;
use cri_client::{Connector, Io};
use futures::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::Request;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use super::event_service::EventService;
use super::image_service::ImageApi;
use super::service::RuntimeApi;
use super::{FakeRuntime, Inner};
use crate::stubs::containerd::events_server::EventsServer;
use crate::stubs::cri::image_service_server::ImageServiceServer;
use crate::stubs::cri::runtime_service_server::RuntimeServiceServer;

/// As containerd.
const MAX_MESSAGE: usize = 16 << 20;
const PIPE: usize = 256 << 10;

impl Inner {
    pub(super) fn cut_connections(&self) {
        self.cut.send_modify(|n| *n += 1);
    }
}

impl FakeRuntime {
    /// The `traceparent` of each call that had one, in the order of the calls.
    #[must_use]
    pub fn traceparents(&self) -> Vec<String> {
        super::lock(&self.inner.traceparents).clone()
    }

    /// Breaks every connection; new ones are taken. State stays.
    pub fn disconnect(&self) {
        self.inner.cut_connections();
    }

    /// Goes away: every connection breaks, new ones are refused. Containers go on, and their exits are not told.
    pub fn down(&self) {
        self.inner.up.store(false, Ordering::Release);
        self.inner.cut_connections();
    }

    /// Comes back.
    pub fn up(&self) {
        self.inner.up.store(true, Ordering::Release);
    }

    /// In-memory connections for a client, all to one server of its own. Works on a paused clock.
    #[must_use]
    pub fn connector(&self) -> Connector {
        let (tx, rx) = mpsc::channel(64);
        let inner = Arc::clone(&self.inner);
        // The server needs a tokio runtime, which whoever connects has.
        let server = Arc::new(std::sync::Mutex::new(Some(ReceiverStream::new(rx))));
        Arc::new(move || {
            if let Some(incoming) = super::lock(&server).take() {
                tokio::spawn(serve(Arc::clone(&inner), incoming));
            }
            let (inner, tx) = (Arc::clone(&inner), tx.clone());
            Box::pin(async move {
                if !inner.up.load(Ordering::Acquire) {
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"));
                }
                let (ours, theirs) = tokio::io::duplex(PIPE);
                let line = Line::new(theirs, inner.cut.subscribe());
                tx.send(Ok(line)).await.map_err(|_| io::Error::other("the fake's server has ended"))?;
                Ok(Box::new(ours) as Box<dyn Io>)
            })
        })
    }

    /// Serves on a unix socket until the tokio runtime ends. Not for a paused clock.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn serve_unix(&self, path: &Path) -> io::Result<()> {
        let inner = Arc::clone(&self.inner);
        let incoming = UnixListenerStream::new(UnixListener::bind(path)?).filter_map(move |stream| match stream {
            // Dropped at once when down: the nearest that a listening socket has to refusing.
            Ok(_) if !inner.up.load(Ordering::Acquire) => None,
            other => Some(other.map(|s| Line::new(s, inner.cut.subscribe()))),
        });
        tokio::spawn(serve(Arc::clone(&self.inner), incoming));
        Ok(())
    }
}

async fn serve<S>(inner: Arc<Inner>, incoming: impl Stream<Item = io::Result<Line<S>>> + Send + 'static)
where
    S: AsyncRead + AsyncWrite + Connected + Send + Unpin + 'static,
{
    let notes = Arc::clone(&inner);
    let noting = move |request: Request<()>| {
        let told = request.metadata().get("traceparent").and_then(|t| t.to_str().ok());
        super::lock(&notes.traceparents).extend(told.map(str::to_owned));
        Ok(request)
    };
    let runtime = RuntimeServiceServer::new(RuntimeApi(Arc::clone(&inner)));
    let images = ImageServiceServer::new(ImageApi(Arc::clone(&inner)));
    let events = EventsServer::new(EventService(inner));
    let runtime = runtime.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(usize::MAX);
    let server = Server::builder()
        .add_service(InterceptedService::new(runtime, noting.clone()))
        .add_service(InterceptedService::new(images.max_decoding_message_size(MAX_MESSAGE), noting))
        .add_service(events);
    // Ends with the incoming stream; connection errors are the point of the thing.
    let _ = server.serve_with_incoming(incoming).await;
}

type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that ends when it is cut.
struct Line<S> {
    io: S,
    cut: Option<Cut>,
}

impl<S> Line<S> {
    fn new(io: S, mut cut: watch::Receiver<u64>) -> Self {
        cut.mark_unchanged();
        let cut = async move {
            if cut.changed().await.is_err() {
                std::future::pending().await
            }
        };
        Self { io, cut: Some(Box::pin(cut)) }
    }

    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(cut) = &mut self.cut else { return true };
        if cut.as_mut().poll(cx).is_ready() {
            self.cut = None;
        }
        self.cut.is_none()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_cut(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.cut.is_none() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<S> Connected for Line<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}
