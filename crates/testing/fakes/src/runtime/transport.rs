//! How clients reach the fake: without any bytes, by HTTP/2 over pipes in memory, or over a unix socket. All connections can be cut at
//! once.

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
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
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
const PIPE: usize = 256 << 10;
const TRACEPARENT: &str = "traceparent";

impl Inner {
    pub(super) fn cut_connections(&self) {
        self.cut.send_modify(|n| *n += 1);
    }

    /// Tells a new connection when it is cut. Refused while the runtime is away.
    fn subscribe(&self) -> io::Result<watch::Receiver<u64>> {
        let mut cut = self.cut.subscribe();
        cut.mark_unchanged();
        // After that: whoever goes away meanwhile has cut this one.
        let up = self.up.load(Ordering::Acquire);
        up.then_some(cut).ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"))
    }

    fn note(&self, traceparent: Option<&http::HeaderValue>) {
        let told = traceparent.and_then(|t| t.to_str().ok());
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
            let opened = Connection::open(&inner).map(|connection| Link::Local(Arc::new(connection)));
            Box::pin(std::future::ready(opened))
        })
    }

    /// As [`FakeRuntime::connector`], by HTTP/2 over pipes in memory, all to one server of its own.
    #[must_use]
    pub fn piped_connector(&self) -> Connector {
        let (tx, rx) = mpsc::channel(64);
        let inner = Arc::clone(&self.inner);
        // The server needs a tokio runtime, which whoever connects has.
        let server = Arc::new(std::sync::Mutex::new(Some(ReceiverStream::new(rx))));
        Arc::new(move || {
            if let Some(incoming) = super::lock(&server).take() {
                tokio::spawn(serve(Arc::clone(&inner), incoming));
            }
            let (ours, theirs) = tokio::io::duplex(PIPE);
            let line = inner.subscribe().map(|cut| Line::new(theirs, cut));
            let tx = tx.clone();
            Box::pin(async move {
                tx.send(Ok(line?)).await.map_err(|_| io::Error::other("the fake's server has ended"))?;
                Ok(Link::Stream(Box::new(ours)))
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
            other => Some(other.and_then(|s| Ok(Line::new(s, inner.subscribe()?)))),
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
        inner.note(request.metadata().as_ref().get(TRACEPARENT));
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
    fn open(inner: &Arc<Inner>) -> io::Result<Self> {
        let cut = inner.subscribe()?;
        Ok(Self { services: Services::new(inner), cut, inner: Arc::clone(inner) })
    }
}

const RUNTIME: &str = <RuntimeServiceServer<RuntimeApi> as NamedService>::NAME;
const IMAGES: &str = <ImageServiceServer<ImageApi> as NamedService>::NAME;
const EVENTS: &str = <EventsServer<EventService> as NamedService>::NAME;

impl Local for Connection {
    fn call(&self, call: http::Request<Body>) -> BoxFuture<'static, http::Response<Body>> {
        let told = call.headers().get(TRACEPARENT).cloned();
        let (services, inner) = (&self.services, Arc::clone(&self.inner));
        let answer = match call.uri().path().split('/').nth(1) {
            Some(RUNTIME) => services.runtime.clone().call(call),
            Some(IMAGES) => services.images.clone().call(call),
            Some(EVENTS) => services.events.clone().call(call),
            _ => Box::pin(std::future::ready(Ok(Status::unimplemented("unknown service").into_http()))),
        };
        Box::pin(async move {
            inner.note(told.as_ref());
            let Ok(answer) = answer.await;
            // A daemon may die, and time be asked for, between what a call does and its answer.
            tokio::task::yield_now().await;
            answer
        })
    }

    fn broken(&self) -> BoxFuture<'static, io::Error> {
        let cut = cut(self.cut.clone());
        Box::pin(cut.map(|()| io::ErrorKind::ConnectionReset.into()))
    }
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
    fn new(io: S, told: watch::Receiver<u64>) -> Self {
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
