//! A byte stream within the binary messages of a WebSocket: SPDY of a port-forward, from clients that speak WebSocket only.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::backend::Backend;
use crate::deps::Deps;
use crate::options::{TUNNEL, tunnelled};
use crate::refusal::refuse;
use crate::relay::{ask, replayed};
use crate::splice::{Activity, Ended};
use crate::websocket::{self, Role, Sink, Source};

const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// Bytes of one message of ours.
const MESSAGE: usize = 32 << 10;
/// How long the other side's close is waited for.
const GOODBYE: Duration = Duration::from_secs(5);

/// Asks the runtime for SPDY, and on success the client gets its WebSocket.
pub(crate) async fn tunnel(deps: &Deps, backend: &Backend, mut request: Request) -> Response {
    let client = hyper::upgrade::on(&mut request);
    let Some(headers) = spdy_request(&request) else {
        let text = "unable to upgrade: no tunneling spdy protocols provided\n";
        return *refuse(StatusCode::BAD_REQUEST, text.to_owned());
    };
    let (parts, runtime) = match ask(&deps.settings, backend, Method::POST, headers).await {
        Ok(switched) => switched,
        Err(answer) => return *answer,
    };
    let has = |name, what: &str| {
        let value = parts.headers.get(name).and_then(|v| v.to_str().ok());
        value.is_some_and(|v| v.to_ascii_lowercase().contains(what))
    };
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "spdy/3.1") {
        let text = "unable to upgrade: missing upgrade headers in response\n";
        return *refuse(StatusCode::INTERNAL_SERVER_ERROR, text.to_owned());
    }
    let chosen = parts.headers.get(VERSION).and_then(|v| v.to_str().ok());
    let protocol = chosen.filter(|c| tunnelled(request.headers()).contains(c)).map(|c| format!("{TUNNEL}{c}"));
    let response = match websocket::accept(&request, protocol.as_deref()) {
        Ok(response) => response,
        Err(refusal) => return *refusal,
    };
    let idle = deps.settings.idle_timeout;
    deps.streams.spawn(async move {
        let Ok(client) = client.await else { return };
        let socket = websocket::socket(TokioIo::new(client), Role::Server);
        let ended = join(socket, runtime, idle).await;
        tracing::debug!(?ended, "tunnel closed");
    });
    response
}

/// The client's headers, as those of a request for SPDY. `None` when the client offers nothing to speak.
fn spdy_request(request: &Request) -> Option<HeaderMap> {
    let protocols = tunnelled(request.headers());
    if protocols.is_empty() {
        return None;
    }
    let mut headers = replayed(request);
    for name in [header::SEC_WEBSOCKET_PROTOCOL, header::SEC_WEBSOCKET_KEY, header::SEC_WEBSOCKET_VERSION] {
        headers.remove(name);
    }
    headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
    headers.insert(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    headers.remove(VERSION);
    for protocol in protocols {
        headers.append(VERSION, HeaderValue::from_str(protocol).ok()?);
    }
    Some(headers)
}

/// Joins a WebSocket and a byte stream until either ends; both are closed on return.
pub(crate) async fn join<S, T>((mut sink, mut source): (Sink<S>, Source<S>), io: T, idle: Duration) -> Ended
where
    S: AsyncRead + AsyncWrite,
    T: AsyncRead + AsyncWrite,
{
    let activity = Activity::default();
    let (mut read, mut write) = tokio::io::split(io);
    let ended = {
        let inward = async {
            // What the stream takes no more is thrown away: its last bytes are still on their way to the peer.
            let mut deaf = false;
            while let Some(piece) = source.next().await {
                if !deaf {
                    deaf = write.write_all(&piece.bytes).await.is_err() || write.flush().await.is_err();
                    activity.moved();
                }
            }
            write.shutdown().await
        };
        let outward = async {
            let broken = |()| std::io::ErrorKind::BrokenPipe;
            let mut buffer = vec![0; MESSAGE];
            loop {
                // Cancel-safe: both are.
                let len = tokio::select! {
                    len = read.read(&mut buffer) => len?,
                    () = sink.pinged() => {
                        sink.flush().await.map_err(broken)?;
                        continue;
                    }
                };
                if len == 0 {
                    return std::io::Result::Ok(());
                }
                sink.send(&[], &buffer[..len]).await.map_err(broken)?;
                activity.moved();
            }
        };
        // Cancel-safe: a WebSocket cannot be half-closed, so the end of one direction is the end of both.
        tokio::select! {
            end = inward => if end.is_ok() { Ended::Finished } else { Ended::Broken },
            end = outward => if end.is_ok() { Ended::Finished } else { Ended::Broken },
            () = activity.idle(idle) => Ended::Idle,
        }
    };
    let goodbye = async {
        let _ = sink.close().await;
        while source.next().await.is_some() {}
    };
    let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    ended
}
