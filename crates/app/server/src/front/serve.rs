//! One connection from its first byte to its last.

use std::fmt::Display;
use std::pin::{Pin, pin};
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::access::{Access, Shown};
use super::connection_state::{ConnectionState, Phase};
use super::counts::add;
use super::places::Place;
use super::service::{Connection, Served};
use super::tls::ServerTls;
use super::wire::Wire;

/// How connections of a server are secured.
#[derive(Clone)]
pub(super) enum Transport {
    /// Plain HTTP, everybody may ask.
    Plain,
    /// TLS, authentication, authorization.
    Tls { tls: Arc<ServerTls>, access: Arc<Access> },
}

/// Requests at a time on one HTTP/2 connection: of a stranger, and of others.
const STREAMS: (u32, u32) = (16, 250);
/// Bytes that are taken in advance of their use, on one stream and on a connection.
const WINDOW: (u32, u32) = (64 << 10, 256 << 10);
/// Bytes of answers that wait for a slow reader, on one stream.
const SEND_BUFFER: usize = 64 << 10;
/// Largest HTTP/1 buffer besides heads, bytes.
const BUFFER: usize = 64 << 10;

/// Serves until the other side leaves, the server stops, or the connection is ended.
pub(super) async fn serve_connection(socket: TcpStream, place: Place, transport: Transport, served: Arc<Served>) {
    let conn = place.conn.clone();
    let wire = Wire::new(socket, place);
    let connection = |shown| Connection { served: served.clone(), conn: conn.clone(), shown };
    match transport {
        Transport::Plain => {
            conn.enter(Phase::Http1);
            http1(wire, connection(Shown::default()), false).await;
        }
        Transport::Tls { tls, access } => {
            // In a box: the size of a handshake is not carried through the life of a connection.
            let stream = match Box::pin(tls.acceptor().accept(wire)).await {
                Ok(stream) => stream,
                Err(error) => {
                    // Who had to make room or was too slow is counted as that.
                    if !conn.is_closed() {
                        add(&served.counts.failed_handshakes);
                        tracing::debug!(peer = %conn.peer, %error, "a TLS handshake failed");
                    }
                    return;
                }
            };
            let facts = stream.get_ref().1;
            let two = facts.alpn_protocol() == Some(b"h2");
            let shown: Shown = facts.peer_certificates().unwrap_or_default().iter().cloned().collect();
            let known = access.is_known(&shown);
            if known {
                served.places.trust(&conn);
            }
            conn.enter(if two { Phase::Http2 } else { Phase::Http1 });
            if two {
                http2(stream, connection(shown), known).await;
            } else {
                http1(stream, connection(shown), known).await;
            }
        }
    }
}

async fn http1(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, connection: Connection, known: bool) {
    let conn = connection.conn.clone();
    let limits = &connection.served.limits;
    let head = if known { limits.head_bytes } else { limits.stranger_head_bytes };
    let mut builder = http1::Builder::new();
    // Slow heads and idle connections are ended by the sweep.
    builder.header_read_timeout(None).max_buf_size(head.max(BUFFER)).max_header_size(head);
    let service = service_fn(move |request| connection.clone().answer(request));
    let serving = builder.serve_connection(TokioIo::new(io), service).with_upgrades();
    until_the_end(serving, |serving| serving.graceful_shutdown(), &conn).await;
}

async fn http2(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, connection: Connection, known: bool) {
    let conn = connection.conn.clone();
    let limits = &connection.served.limits;
    let head = if known { limits.head_bytes } else { limits.stranger_head_bytes };
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(if known { STREAMS.1 } else { STREAMS.0 })
        .max_header_list_size(u32::try_from(head).unwrap_or(u32::MAX))
        .initial_stream_window_size(WINDOW.0)
        .initial_connection_window_size(WINDOW.1)
        .max_send_buf_size(SEND_BUFFER);
    let service = service_fn(move |request| connection.clone().answer(request));
    let serving = builder.serve_connection(TokioIo::new(io), service);
    until_the_end(serving, |serving| serving.graceful_shutdown(), &conn).await;
}

/// Serves on; when the connection is asked to leave, it does so in good order.
async fn until_the_end<T, E>(serving: T, graceful_shutdown: impl FnOnce(Pin<&mut T>), conn: &ConnectionState)
where
    T: Future<Output = Result<(), E>>,
    E: Display,
{
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = conn.leave.notified() => {
            graceful_shutdown(serving.as_mut());
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(peer = %conn.peer, %error, "a connection ended badly");
    }
}
