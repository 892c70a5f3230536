//! The server's side of a WebSocket.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::handlers::{Refusal, refuse};

/// Largest message that a client may send: what API servers take, too.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;
/// Output that may wait for a slow reader.
const MAX_WAITING: usize = 256 << 10;

pub(crate) type Socket<T> = WebSocketStream<T>;
pub(crate) type Sink<T> = SplitSink<Socket<T>, Message>;
pub(crate) type Source<T> = SplitStream<Socket<T>>;

/// The 101 for a client's offer.
///
/// # Errors
/// The 400 for a request that is no WebSocket handshake.
pub(crate) fn accept(headers: &HeaderMap, protocol: Option<&str>) -> Result<Response, Refusal> {
    let bad = |why: &str| refuse(StatusCode::BAD_REQUEST, format!("unable to upgrade: {why}\n"));
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
    if version != Some(b"13") {
        return Err(bad("websocket version 13 is required"));
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|k| k.len() == 24);
    let key = key.ok_or_else(|| bad("websocket key is missing"))?;
    let accepted = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| bad("websocket key"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    if let Some(protocol) = protocol {
        let value = HeaderValue::from_str(protocol).map_err(|_| bad("subprotocol"))?;
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
    Ok(response)
}

/// The socket on a connection that has switched.
pub(crate) async fn socket(io: TokioIo<Upgraded>, role: Role) -> Socket<TokioIo<Upgraded>> {
    let config = WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_WAITING)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    WebSocketStream::from_raw_socket(io, role, Some(config)).await
}

/// Sends bytes as one binary message, and waits until the transport has them.
pub(crate) async fn send<T>(sink: &mut Sink<T>, bytes: bytes::Bytes) -> Result<(), ()>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    sink.send(Message::Binary(bytes)).await.map_err(drop)
}

/// The next message's bytes; `None` when the client closed or broke off. Pings are answered on the way.
pub(crate) async fn next<T>(source: &mut Source<T>) -> Option<bytes::Bytes>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        match source.next().await?.ok()? {
            Message::Binary(bytes) => return Some(bytes),
            Message::Text(text) => return Some(text.into()),
            Message::Close(_) => return None,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}
