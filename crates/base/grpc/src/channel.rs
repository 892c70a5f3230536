//! gRPC calls over one HTTP/2 connection, straight on `h2`.
//!
//! A call's headers and its message are queued together and leave in one write, and its answer is read by whoever asked:
//! no task, no queue between them. The connection is made by the first call and again after it broke. It may lead to a server of this
//! process, which takes calls as they are ([`Local`]).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use h2::RecvStream;
use h2::client::{self, SendRequest};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use hyper::header::{HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use tokio::runtime::Handle;
use tonic::codegen::Service;

use crate::connect::{Gate, Io, Link};
use crate::local::{self, Error, Local, LocalBody};
use crate::traced::Traced;

/// What the peer may send unasked, of one call and of all: more than any answer, so that a call needs no round trip more.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 5 << 20;
/// Headers of an answer that are larger than this are refused.
const MAX_HEADERS: u32 = 16 << 10;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("bosun/", env!("CARGO_PKG_VERSION")));

/// A connection that is made when it is needed. Clones share it.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
    is_traced: bool,
}

struct Shared {
    gate: Gate,
    /// Where connections live, whoever makes them necessary.
    home: Handle,
    /// One attempt at a time.
    connecting: tokio::sync::Mutex<()>,
    open: Mutex<Option<Open>>,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("grpc::Channel")
    }
}

/// The connection in use, and which one it is.
#[derive(Clone)]
struct Open {
    number: u64,
    way: Way,
}

/// How calls get to the server.
#[derive(Clone)]
enum Way {
    Stream(SendRequest<Bytes>),
    Local(Arc<dyn Local>),
}

impl Channel {
    /// Connects on first use. Connections live on the tokio runtime in which this is called.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        let (home, open) = (Handle::current(), Mutex::default());
        let shared = Shared { gate, home, connecting: tokio::sync::Mutex::default(), open };
        Self { shared: Arc::new(shared), is_traced: false }
    }

    /// The same connection, by which each call is a span and tells the server of it.
    #[must_use]
    pub fn traced(&self) -> Self {
        Self { is_traced: true, ..self.clone() }
    }

    async fn send(&self, mut call: Request<tonic::body::Body>, traced: &Traced) -> Result<Response<Content>, Error> {
        call.headers_mut().insert(USER_AGENT, AGENT);
        traced.tell(call.headers_mut());
        let mut sender = match self.way().await? {
            Way::Local(server) => return Ok(local::send(&*server, call).await?.map(Content::Local)),
            Way::Stream(sender) => sender,
        };
        let (head, message) = call.into_parts();
        let message = message.collect().await?.to_bytes();
        // Both are queued, and sent when the connection has room for one call more.
        let (answer, mut stream) = sender.send_request(Request::from_parts(head, ()), false)?;
        stream.send_data(message, true)?;
        Ok(answer.await?.map(Content::Stream))
    }

    /// The connection in use, or a new one.
    async fn way(&self) -> Result<Way, Error> {
        if let Some(way) = self.shared.in_use().await {
            return Ok(way);
        }
        let _turn = self.shared.connecting.lock().await;
        if let Some(way) = self.shared.in_use().await {
            return Ok(way);
        }
        let shared = Arc::clone(&self.shared);
        // A task of its own: it lives where the channel does, and goes on when this caller gives up.
        self.shared.home.spawn(shared.connect()).await?
    }
}

impl Shared {
    async fn connect(self: Arc<Self>) -> Result<Way, Error> {
        match self.gate.open().await? {
            Link::Local(server) => Ok(self.use_from_now_on(Way::Local(server))),
            Link::Stream(io) => self.handshake(io).await,
        }
    }

    /// Begins HTTP/2. When the connection ends it is not in use any more.
    async fn handshake(self: Arc<Self>, io: Box<dyn Io>) -> Result<Way, Error> {
        let (sender, connection) = client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEADERS)
            .enable_push(false)
            .handshake::<_, Bytes>(io)
            .await?;
        let way = self.use_from_now_on(Way::Stream(sender));
        let (number, shared) = (self.gate.connections().count(), Arc::downgrade(&self));
        tokio::spawn(async move {
            if let Err(e) = connection.await {
                tracing::debug!(error = %e, "a gRPC connection has ended");
            }
            if let Some(shared) = shared.upgrade() {
                shared.forget(number);
            }
        });
        Ok(way)
    }

    fn use_from_now_on(&self, way: Way) -> Way {
        *self.lock() = Some(Open { number: self.gate.connections().count(), way: way.clone() });
        way
    }

    /// A connection that takes no calls any more (the server is going) is not in use.
    async fn in_use(&self) -> Option<Way> {
        let Open { number, way } = self.lock().clone()?;
        let ready = match way {
            Way::Stream(sender) => sender.ready().await.ok().map(Way::Stream),
            Way::Local(server) => server.broken().now_or_never().is_none().then_some(Way::Local(server)),
        };
        if ready.is_none() {
            self.forget(number);
        }
        ready
    }

    /// The next call makes another connection, unless somebody has done so.
    fn forget(&self, number: u64) {
        self.lock().take_if(|open| open.number == number);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service<Request<tonic::body::Body>> for Channel {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Request<tonic::body::Body>) -> Self::Future {
        let channel = self.clone();
        let mut traced = if self.is_traced { Traced::begin(call.uri().path()) } else { Traced::none() };
        Box::pin(async move {
            let answer = channel.send(call, &traced).await;
            match answer {
                Ok(answer) => {
                    traced.note(answer.headers());
                    Ok(answer.map(|content| Answer { content, traced }))
                }
                Err(e) => {
                    traced.fail(&*e);
                    Err(e)
                }
            }
        })
    }
}

/// The body of an answer: messages, then the status as trailers.
#[derive(Debug)]
pub struct Answer {
    content: Content,
    traced: Traced,
}

#[derive(Debug)]
enum Content {
    Stream(RecvStream),
    Local(LocalBody),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(match &mut self.content {
            Content::Stream(stream) => poll_stream(stream, cx).map_err(Error::from),
            Content::Local(body) => body.poll_frame(cx),
        });
        if let Some(Ok(frame)) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            self.traced.note(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Stream(stream) => stream.is_end_stream(),
            Content::Local(body) => body.is_end_stream(),
        }
    }
}

fn poll_stream(stream: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
    if let Some(data) = ready!(stream.poll_data(cx)) {
        let freed = |data: Bytes| stream.flow_control().release_capacity(data.len()).map(|()| Frame::data(data));
        return Poll::Ready(Some(data.and_then(freed)));
    }
    let trailers = ready!(stream.poll_trailers(cx))?;
    Poll::Ready(trailers.map(|t| Ok(Frame::trailers(t))))
}
