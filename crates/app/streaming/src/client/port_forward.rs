//! Port-forward: many connections over one tunnel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use spdy::headers::Headers;
use spdy::{Connection, OpenError, Receiver, Sender, StreamError};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::connect::{ClientError, connect};
use crate::tunnel;

const PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";
/// Bytes between the tunnel and what runs in it.
const BETWEEN: usize = 64 << 10;
/// The daemon decides when a tunnel is idle; this side holds on.
const IDLE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Error text that is kept of one connection.
const MAX_ERROR: usize = 16 << 10;

/// A tunnel to a pod. Clones share it; it closes when the last one and the last connection are gone.
#[derive(Debug, Clone)]
pub struct PortForward {
    connection: Connection,
    requests: Arc<AtomicU64>,
}

/// Why a connection through the tunnel failed.
#[derive(Debug, Error)]
pub enum ForwardError {
    /// The tunnel takes no connection.
    #[error("the tunnel takes no connection: {0}")]
    Open(#[from] OpenError),
    /// The runtime's words: nobody listens on the port, mostly.
    #[error("{0}")]
    Remote(String),
    /// The tunnel was lost.
    #[error("the tunnel was lost")]
    Lost,
    /// The local side failed.
    #[error("the local connection failed")]
    Local(#[source] std::io::Error),
}

/// Opens a tunnel: `/portForward/NS/POD`.
///
/// # Errors
/// When the daemon refuses or does not answer.
pub async fn port_forward<T>(io: T, path: &str) -> Result<PortForward, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = connect(io, path, PROTOCOL).await?;
    let (near, far) = tokio::io::duplex(BETWEEN);
    let (connection, driver) = spdy::connect(near, &spdy::Options::default());
    tokio::spawn(async move {
        // Cancel-safe: neither is of use without the other.
        let joined = tunnel::join(socket, far, IDLE);
        let ((), _ended) = tokio::join!(async { drop(driver.await) }, joined);
    });
    Ok(PortForward { connection, requests: Arc::default() })
}

impl PortForward {
    /// Whether the tunnel is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Carries one local connection to the pod's `port`, until either side has ended.
    ///
    /// # Errors
    /// See [`ForwardError`]; the tunnel serves others on unless it was lost.
    pub async fn forward<T>(&self, port: u16, local: T) -> Result<(), ForwardError>
    where
        T: AsyncRead + AsyncWrite,
    {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let headers = |kind: &str| {
            let pairs =
                [("streamtype", kind.to_owned()), ("port", port.to_string()), ("requestid", request.to_string())];
            pairs.into_iter().map(|(n, v)| (n.to_owned(), v)).collect::<Headers>()
        };
        let (mut unused, errors) = self.connection.open(headers("error")).await?.split();
        let _ = unused.finish().await;
        let (send, receive) = self.connection.open(headers("data")).await?.split();
        let (read, write) = tokio::io::split(local);
        let upward = upward(read, send);
        let downward = downward(receive, write);
        let carried = async {
            let mut upward = std::pin::pin!(upward);
            let mut downward = std::pin::pin!(downward);
            // Cancel-safe: when the pod's side has ended, what is still sent has no receiver.
            tokio::select! {
                end = &mut downward => end,
                end = &mut upward => match end {
                    Ok(()) => downward.await,
                    Err(e) => Err(e),
                },
            }
        };
        let (carried, told) = tokio::join!(carried, told(errors));
        if told.is_empty() { carried } else { Err(ForwardError::Remote(told)) }
    }
}

async fn upward<R: AsyncRead + Unpin>(mut from: R, mut to: Sender) -> Result<(), ForwardError> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(32 << 10);
        if from.read_buf(&mut buffer).await.map_err(ForwardError::Local)? == 0 {
            let _ = to.finish().await;
            return Ok(());
        }
        if to.send(buffer.split().freeze()).await.is_err() {
            return Ok(()); // the pod's side has ended, which the other direction tells
        }
    }
}

async fn downward<W: AsyncWrite + Unpin>(mut from: Receiver, mut to: W) -> Result<(), ForwardError> {
    while let Some(piece) = from.next().await {
        match piece {
            Ok(piece) => to.write_all(&piece).await.map_err(ForwardError::Local)?,
            Err(StreamError::Reset) => break,
            Err(StreamError::Lost) => return Err(ForwardError::Lost),
        }
    }
    // A local side that has gone needs no end.
    let _ = to.shutdown().await;
    Ok(())
}

/// What the runtime says on the error stream, to its end.
async fn told(mut errors: Receiver) -> String {
    let mut text = Vec::new();
    while let Some(Ok(piece)) = errors.next().await {
        if text.len() + piece.len() <= MAX_ERROR {
            text.extend_from_slice(&piece);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
