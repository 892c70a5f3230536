//! The WebSocket on a connection to the daemon.

use std::time::Duration;

use axum::http::{HeaderValue, header};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use crate::handshake::{Answer, upgrade};
use crate::websocket::{self, Role, Sink, Source};

/// How long the daemon may take to answer; it asks the runtime meanwhile.
const ANSWER: Duration = Duration::from_secs(60);

/// Why there is no session.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The daemon refused, with its words.
    #[error("{body}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its text, trimmed.
        body: String,
    },
    /// The path and query are none.
    #[error("not a path: {0:?}")]
    Path(String),
    /// No answer, or none that fits.
    #[error("no answer that fits: {0}")]
    Handshake(String),
}

pub(super) type Socket = (Sink<TokioIo<Upgraded>>, Source<TokioIo<Upgraded>>);

/// Asks the daemon for a WebSocket with a subprotocol.
pub(super) async fn connect<T>(io: T, path: &str, protocol: &str) -> Result<Socket, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut request = hyper::Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = path.parse().map_err(|_| ClientError::Path(path.to_owned()))?;
    let key = generate_key();
    for (name, value) in [
        (header::HOST, "localhost"),
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_VERSION, "13"),
        (header::SEC_WEBSOCKET_KEY, key.as_str()),
        (header::SEC_WEBSOCKET_PROTOCOL, protocol),
    ] {
        let value = HeaderValue::from_str(value).map_err(|e| ClientError::Handshake(e.to_string()))?;
        request.headers_mut().insert(name, value);
    }
    match upgrade(io, request, ANSWER).await.map_err(|e| ClientError::Handshake(e.to_string()))? {
        Answer::Switched(parts, io) => {
            let chosen = parts.headers.get(header::SEC_WEBSOCKET_PROTOCOL);
            if chosen.is_none_or(|c| c.as_bytes() != protocol.as_bytes()) {
                return Err(ClientError::Handshake(format!("subprotocol {chosen:?} instead of {protocol}")));
            }
            Ok(websocket::socket(io, Role::Client))
        }
        Answer::Refused(parts, body) => {
            let body = String::from_utf8_lossy(&body).trim_end().to_owned();
            Err(ClientError::Refused { status: parts.status.as_u16(), body })
        }
    }
}
