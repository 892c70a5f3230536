//! Connections that fail fast while the server is away, and come back by themselves.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use crate::local::Local;
use crate::socket::Socket;

/// Back-off between attempts (interfaces 7.1).
const BACKOFF_BASE: Duration = Duration::from_millis(100);
const BACKOFF_FACTOR: f64 = 1.6;
const BACKOFF_JITTER: f64 = 0.2;
const BACKOFF_MAX: Duration = Duration::from_secs(3);
/// An attempt gets this long before it counts as failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A byte stream to a server.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// The way to a server, once it is open.
pub enum Link {
    /// A byte stream, over which HTTP/2 goes.
    Stream(Box<dyn Io>),
    /// A server of this process, which takes calls as they are.
    Local(Arc<dyn Local>),
}

/// Opens connections: a unix socket in life, a server of the same process in simulated time.
pub type Connector = Arc<dyn Fn() -> BoxFuture<'static, io::Result<Link>> + Send + Sync>;

/// A connector for a unix socket.
#[must_use]
pub fn unix(path: PathBuf) -> Connector {
    Arc::new(move || {
        let path = path.clone();
        Box::pin(async move {
            match Socket::connect(&path).await {
                Ok(s) => Ok(Link::Stream(Box::new(s))),
                Err(e) => Err(io::Error::new(e.kind(), format!("dial unix {}: {e}", path.display()))),
            }
        })
    })
}

/// Counts connections that were made; a new one may lead to another version of the server.
#[derive(Clone, Default, Debug)]
pub struct Connections(Arc<AtomicU64>);

impl Connections {
    /// Connections so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The way to a server: one attempt after the other, each after its wait.
pub struct Gate {
    connector: Connector,
    made: Connections,
    state: Mutex<Backoff>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gate({:?})", self.made)
    }
}

impl Gate {
    /// A way by `connector`; `seed` is that of the jitter in the back-off.
    #[must_use]
    pub fn new(connector: Connector, seed: u64) -> Self {
        Self { connector, made: Connections::default(), state: Mutex::new(Backoff::new(seed)) }
    }

    /// Those that were made through it.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.made
    }

    /// A new connection. Fails at once, with what the last attempt said, while the wait after it is not over.
    pub(crate) async fn open(&self) -> io::Result<Link> {
        if let Some(refused) = self.state().refuse(Instant::now()) {
            return Err(refused);
        }
        let result = match timeout(CONNECT_TIMEOUT, (self.connector)()).await {
            Ok(r) => r,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer from the socket within 5 s")),
        };
        match &result {
            Ok(_) => {
                self.state().succeeded();
                self.made.0.fetch_add(1, Ordering::AcqRel);
            }
            Err(e) => self.state().failed(Instant::now(), e),
        }
        result
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Backoff> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the next attempt is due, and what the last one said.
struct Backoff {
    rng: fastrand::Rng,
    failures: i32,
    last: Option<(Instant, io::ErrorKind, String)>,
}

impl Backoff {
    fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), failures: 0, last: None }
    }

    fn refuse(&self, now: Instant) -> Option<io::Error> {
        let (until, kind, text) = self.last.as_ref()?;
        (now < *until).then(|| io::Error::new(*kind, text.clone()))
    }

    fn succeeded(&mut self) {
        self.failures = 0;
        self.last = None;
    }

    fn failed(&mut self, now: Instant, e: &io::Error) {
        let plain = BACKOFF_BASE.as_secs_f64() * BACKOFF_FACTOR.powi(self.failures);
        let jitter = 1.0 + BACKOFF_JITTER * (self.rng.f64() * 2.0 - 1.0);
        let wait = Duration::from_secs_f64(plain.min(BACKOFF_MAX.as_secs_f64()) * jitter);
        self.failures = (self.failures + 1).min(20);
        self.last = Some((now + wait, e.kind(), e.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Backoff;

    #[test]
    fn backs_off_from_100_ms_to_3_s_with_a_fifth_of_jitter() {
        let mut b = Backoff::new(1);
        let now = Instant::now();
        for want_ms in [100.0, 160.0, 256.0, 409.6, 655.4, 1048.6, 1677.7, 2684.4, 3000.0, 3000.0] {
            b.failed(now, &io::Error::other("gone"));
            let until = b.last.as_ref().unwrap().0;
            let got = (until - now).as_secs_f64() * 1000.0;
            assert!((got - want_ms).abs() <= want_ms * 0.2 + 0.1, "{got} is not about {want_ms}");
        }
    }

    #[test]
    fn refuses_with_the_last_error_until_the_wait_is_over_and_forgets_it_on_success() {
        let mut b = Backoff::new(1);
        let now = Instant::now();
        assert!(b.refuse(now).is_none());
        b.failed(now, &io::Error::other("gone"));
        assert_eq!(b.refuse(now + Duration::from_millis(70)).unwrap().to_string(), "gone");
        assert!(b.refuse(now + Duration::from_millis(130)).is_none());
        b.succeeded();
        assert!(b.refuse(now).is_none());
    }
}
