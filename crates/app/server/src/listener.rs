//! A listening socket that is meant to last: it waits while the machine has no connection to give, is opened anew when it is
//! broken, and shows in the node's health when it takes nobody for long.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, unix};
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);
/// A listener that has failed for longer than this makes the node unhealthy.
pub(crate) const TOLERATED: Duration = Duration::from_secs(30);

/// Which listeners take no connections. One for all listeners of a node; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Accepting(Arc<Mutex<BTreeMap<String, Failing>>>);

#[derive(Debug)]
struct Failing {
    since: Instant,
    error: String,
}

impl Accepting {
    fn failing(&self) -> MutexGuard<'_, BTreeMap<String, Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A health check.
    ///
    /// # Errors
    /// A listener has taken no connection for 30 s though there were some, or is not open: which, and why.
    pub fn check(&self) -> Result<(), String> {
        let failing = self.failing();
        let long = failing.iter().find(|(_, f)| f.since.elapsed() > TOLERATED);
        long.map_or(Ok(()), |(name, f)| {
            Err(format!("{name} takes no connections since {} s: {}", f.since.elapsed().as_secs(), f.error))
        })
    }

    fn failed(&self, name: &str, error: &io::Error) {
        let mut failing = self.failing();
        if let Some(known) = failing.get_mut(name) {
            known.error = error.to_string();
            return;
        }
        tracing::warn!(listener = name, %error, "takes no connections, trying again");
        failing.insert(name.to_owned(), Failing { since: Instant::now(), error: error.to_string() });
    }

    fn works(&self, name: &str) {
        if let Some(failed) = self.failing().remove(name) {
            tracing::info!(listener = name, after_s = failed.since.elapsed().as_secs(), "takes connections again");
        }
    }
}

/// A socket of the kernel that connections come from.
pub trait Socket: Send + Sync + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// Where it comes from.
    type Peer: Send;

    /// The next connection. Cancel-safe.
    ///
    /// # Errors
    /// As of `accept(2)`.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Io, Self::Peer)>> + Send;

    /// Whether it listens at all: what is broken never will again.
    fn listens(&self) -> bool;

    /// Where it is bound.
    ///
    /// # Errors
    /// The socket is broken.
    fn address(&self) -> io::Result<Self::Peer>;
}

impl Socket for TcpListener {
    type Io = TcpStream;
    type Peer = SocketAddr;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self).await
    }

    fn listens(&self) -> bool {
        socket2::SockRef::from(self).is_listener().unwrap_or(false)
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}

impl Socket for UnixListener {
    type Io = UnixStream;
    type Peer = unix::SocketAddr;

    async fn accept(&self) -> io::Result<(UnixStream, unix::SocketAddr)> {
        UnixListener::accept(self).await
    }

    fn listens(&self) -> bool {
        socket2::SockRef::from(self).is_listener().unwrap_or(false)
    }

    fn address(&self) -> io::Result<unix::SocketAddr> {
        self.local_addr()
    }
}

/// Opens a socket.
type Open<S> = Box<dyn Fn() -> io::Result<S> + Send + Sync>;

/// A socket with the way to open it again.
pub struct Listener<S> {
    /// `None`: was broken and could not be opened anew yet.
    socket: ArcSwapOption<S>,
    open: Open<S>,
    name: String,
    accepting: Accepting,
    /// The latest `accept` failed.
    failing: AtomicBool,
}

impl<S> std::fmt::Debug for Listener<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listener({})", self.name)
    }
}

impl<S: Socket> Listener<S> {
    /// A listener that opens its socket anew with `open`. `name` says to people which one it is.
    pub fn new(
        socket: S,
        name: String,
        accepting: Accepting,
        open: impl Fn() -> io::Result<S> + Send + Sync + 'static,
    ) -> Self {
        Self {
            socket: ArcSwapOption::from_pointee(socket),
            open: Box::new(open),
            name,
            accepting,
            failing: AtomicBool::new(false),
        }
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn address(&self) -> io::Result<S::Peer> {
        self.socket()?.address()
    }

    /// The next connection, however long that takes. Cancel-safe.
    pub async fn accept(&self) -> (S::Io, S::Peer) {
        loop {
            match self.once().await {
                Ok(connection) => {
                    self.recovered();
                    return connection;
                }
                // The peer gave up before it was taken.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(e) => {
                    self.failing.store(true, Ordering::Relaxed);
                    self.accepting.failed(&self.name, &e);
                    // Out of file descriptors, most probably: the others may give some back.
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn once(&self) -> io::Result<(S::Io, S::Peer)> {
        if self.failing.load(Ordering::Relaxed) {
            if !self.socket.load().as_ref().is_some_and(|socket| socket.listens()) {
                // Closed first: the same address is bound again.
                self.socket.store(None);
                self.socket.store(Some(Arc::new((self.open)()?)));
            }
            if let Ok(accepted) = tokio::time::timeout(PAUSE, self.socket()?.accept()).await {
                return accepted;
            }
            // Nobody waits to be taken.
            self.recovered();
        }
        self.socket()?.accept().await
    }

    fn socket(&self) -> io::Result<Arc<S>> {
        self.socket.load_full().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn recovered(&self) {
        if self.failing.swap(false, Ordering::Relaxed) {
            self.accepting.works(&self.name);
        }
    }
}

impl<S: Socket> axum::serve::Listener for Listener<S> {
    type Io = S::Io;
    type Addr = S::Peer;

    async fn accept(&mut self) -> (S::Io, S::Peer) {
        Listener::accept(self).await
    }

    fn local_addr(&self) -> io::Result<S::Peer> {
        self.address()
    }
}
