//! One connection and what its holders may ask of it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use crate::drive::drive;
use crate::error::ConnectionError;
use crate::headers::Headers;
use crate::reader::Acceptor;
use crate::shared::{COMMANDS, Command, End, Handle, Open, OpenError, Options};
use crate::stream::Stream;

/// The holder's hand on a connection. When the last clone and the last stream are gone, the connection closes.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) handle: Handle,
    queue: usize,
}

impl Connection {
    /// Opens a stream and waits until the peer accepts it: data sent earlier would be thrown away by Go peers.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(&self, headers: Headers) -> Result<Stream, OpenError> {
        let (data, pieces) = mpsc::channel(self.queue.max(1));
        let (reply, replied) = oneshot::channel();
        let end = Arc::new(End::default());
        let open = Open { headers, data, end: Arc::clone(&end), reply };
        self.handle.commands.send(Command::Open(Box::new(open))).await.map_err(|_| OpenError::Closed)?;
        let id = replied.await.unwrap_or(Err(OpenError::Closed))?;
        Ok(Stream::new(id, self.handle.clone(), pieces, end))
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.handle.commands.is_closed()
    }
}

/// Streams that the peer opens.
#[derive(Debug)]
pub struct Incoming {
    streams: mpsc::Receiver<(Headers, Stream)>,
}

impl Incoming {
    /// The next stream, already accepted; `None` when the connection ended.
    pub async fn next(&mut self) -> Option<(Headers, Stream)> {
        self.streams.recv().await
    }
}

/// A client's connection over `io`, after the HTTP upgrade. Nothing moves unless the future is polled; it ends when the
/// connection does, and dropping it ends the connection and every stream at once.
pub fn connect<T>(
    io: T,
    options: &Options,
) -> (Connection, impl Future<Output = Result<(), ConnectionError>> + Send + use<T>)
where
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    let (connection, commands) = new(options);
    let driver = drive(io, Arc::clone(&connection.handle.shared), commands, options.clone(), None);
    (connection, driver)
}

/// A server's side over `io`; as [`connect`].
pub fn serve<T>(
    io: T,
    options: &Options,
) -> (Incoming, impl Future<Output = Result<(), ConnectionError>> + Send + use<T>)
where
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    let (connection, commands) = new(options);
    let (accept, streams) = mpsc::channel(options.max_streams.max(1));
    let shared = Arc::clone(&connection.handle.shared);
    let acceptor = Acceptor { accept, commands: connection.handle.commands.downgrade() };
    let driver = drive(io, shared, commands, options.clone(), Some(acceptor));
    // The acceptor's weak hand does not keep the connection open, this strong one does while streams are awaited.
    let driver = async move {
        let held = connection;
        let result = driver.await;
        drop(held);
        result
    };
    (Incoming { streams }, driver)
}

fn new(options: &Options) -> (Connection, mpsc::Receiver<Command>) {
    let (commands, received) = mpsc::channel(COMMANDS);
    (Connection { handle: Handle { commands, shared: Arc::default() }, queue: options.queue }, received)
}
