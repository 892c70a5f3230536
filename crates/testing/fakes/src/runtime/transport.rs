//! How clients reach the fake: by a unix socket, or without any bytes. All connections can be cut at once.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use actor::watch;
use cri_client::{Connector, Link, Local};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::Connected;
use tonic::{Request, Status};

use super::event_service::EventService;
use super::image_service::ImageApi;
use super::service::RuntimeApi;
use super::{FakeRuntime, Inner};
use crate::stubs::containerd::events_server::EventsServer;
use crate::stubs::cri::image_service_server::ImageServiceServer;
use crate::stubs::cri::runtime_service_server::RuntimeServiceServer;

/// As containerd.
const MAX_MESSAGE: usize = 16 << 20;

impl Inner {
    pub(super) fn cut_connections(&self) {
        self.cut.send_modify(|n| *n += 1);
    }

    fn note(&self, headers: &http::HeaderMap) {
        let told = headers.get("traceparent").and_then(|t| t.to_str().ok());
        super::lock(&self.traceparents).extend(told.map(str::to_owned));
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

    /// Connections without bytes for a client of this process. Works on a paused clock.
    #[must_use]
    pub fn connector(&self) -> Connector {
        let inner = Arc::clone(&self.inner);
        Arc::new(move || {
            let up = inner.up.load(Ordering::Acquire);
            let link = up.then(|| Link::Local(Arc::new(Connection::new(&inner))));
            let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
            Box::pin(std::future::ready(link.ok_or_else(refused)))
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
    let services = Services::new(&inner);
    let noting = move |request: Request<()>| {
        inner.note(request.metadata().as_ref());
        Ok(request)
    };
    let server = Server::builder()
        .add_service(InterceptedService::new(services.runtime, noting.clone()))
        .add_service(InterceptedService::new(services.images, noting))
        .add_service(services.events);
    // Ends with the incoming stream; connection errors are the point of the thing.
    let _ = server.serve_with_incoming(incoming).await;
}

struct Services {
    runtime: RuntimeServiceServer<RuntimeApi>,
    images: ImageServiceServer<ImageApi>,
    events: EventsServer<EventService>,
}

impl Services {
    fn new(inner: &Arc<Inner>) -> Self {
        let runtime = RuntimeServiceServer::new(RuntimeApi(Arc::clone(inner)));
        let images = ImageServiceServer::new(ImageApi(Arc::clone(inner)));
        Self {
            runtime: runtime.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(usize::MAX),
            images: images.max_decoding_message_size(MAX_MESSAGE),
            events: EventsServer::new(EventService(Arc::clone(inner))),
        }
    }
}

/// A connection without bytes.
struct Connection {
    inner: Arc<Inner>,
    services: Services,
    cut: watch::Receiver<u64>,
}

impl Connection {
    fn new(inner: &Arc<Inner>) -> Self {
        let mut cut = inner.cut.subscribe();
        cut.mark_unchanged();
        Self { services: Services::new(inner), cut, inner: Arc::clone(inner) }
    }
}

const RUNTIME: &str = <RuntimeServiceServer<RuntimeApi> as NamedService>::NAME;
const IMAGES: &str = <ImageServiceServer<ImageApi> as NamedService>::NAME;
const EVENTS: &str = <EventsServer<EventService> as NamedService>::NAME;

impl Local for Connection {
    fn call(&self, call: http::Request<Body>) -> BoxFuture<'static, http::Response<Body>> {
        let services = &self.services;
        let answer = match call.uri().path().split('/').nth(1) {
            Some(RUNTIME) => services.runtime.clone().call(call_of(&self.inner, call)),
            Some(IMAGES) => services.images.clone().call(call_of(&self.inner, call)),
            Some(EVENTS) => services.events.clone().call(call),
            _ => Box::pin(std::future::ready(Ok(Status::unimplemented("unknown service").into_http()))),
        };
        Box::pin(async move {
            // Between the question and what it does, and between that and the answer, others have their turn.
            give_way().await;
            let Ok(answer) = answer.await;
            give_way().await;
            answer
        })
    }

    fn broken(&self) -> BoxFuture<'static, io::Error> {
        let cut = cut(self.cut.clone());
        Box::pin(cut.map(|()| io::ErrorKind::ConnectionReset.into()))
    }
}

fn call_of(inner: &Inner, call: http::Request<Body>) -> http::Request<Body> {
    inner.note(call.headers());
    call
}

/// Whoever is ready goes first.
async fn give_way() {
    let mut gave = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Ends when connections are cut.
async fn cut(mut told: watch::Receiver<u64>) {
    if told.changed().await.is_err() {
        std::future::pending().await
    }
}

type Cut = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection that ends when it is cut.
struct Line<S> {
    io: S,
    cut: Option<Cut>,
}

impl<S> Line<S> {
    fn new(io: S, mut told: watch::Receiver<u64>) -> Self {
        told.mark_unchanged();
        Self { io, cut: Some(Box::pin(cut(told))) }
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
