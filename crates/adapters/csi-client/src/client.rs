//! One call: its place, its connection, its deadline.
//!
//! A connection is kept for a moment after a good answer, for who has more to ask: a volume is staged and then published. It is not
//! used any more when the socket is another one by then, as that of a driver that was started anew.

use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grpc::{Channel, Gate};
use hyper::Uri;
use ports::grpc::Code;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tonic::{Response, Status};

/// Calls that one socket has at a time; others wait, and their deadline runs. The one limit on calls to a driver: it holds for
/// whoever calls. A kubelet has none. Calls at the same time have a connection each, and a call that hangs keeps its own for up to
/// 2 min: this bounds what a hung driver costs, while a node that starts with its 110 pods keeps any driver busy.
pub(crate) const CALLS: usize = 32;
/// So long a connection is kept for the next call.
const KEPT: Duration = Duration::from_secs(1);
/// Largest answer that is accepted.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

/// A call that failed.
pub(crate) enum Failure {
    /// It was not made: all places of the socket were taken until the deadline.
    NoPlace,
    /// It was answered so, or not in time.
    Status(Code, String),
}

/// Calls to the sockets of drivers and plugins. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CsiClient {
    /// Sockets that have calls now.
    places: Arc<Mutex<BTreeMap<PathBuf, Arc<Semaphore>>>>,
    /// Connections that are kept, one for each socket at most.
    kept: Arc<Mutex<BTreeMap<PathBuf, Kept>>>,
    /// Connections that were kept so far.
    count: Arc<AtomicU64>,
}

/// Which socket is at a path: its device, its inode, and when it was made.
type Made = (u64, u64, i64, i64);

/// A connection that waits for the next call.
#[derive(Debug)]
struct Kept {
    channel: Channel,
    of: Made,
    number: u64,
}

impl CsiClient {
    /// A client of all sockets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs one call over a connection that nobody else uses meanwhile. `deadline` includes the wait for a place and for the connection.
    pub(crate) async fn call<T, F: Future<Output = Result<Response<T>, Status>>>(
        &self,
        socket: &Path,
        deadline: Duration,
        call: impl FnOnce(Channel, Uri) -> F,
    ) -> Result<T, Failure> {
        let (place, end) = (self.place(socket), Instant::now() + deadline);
        let work = async {
            // Never closed.
            let mine = timeout_at(end, place.acquire()).await;
            // A place that comes with the deadline is none: those who had it ran into the same one.
            if mine.is_err() || Instant::now() >= end {
                return Err(Failure::NoPlace);
            }
            let made = made(socket);
            let channel = self.channel(socket, made);
            // A legal host name: some servers refuse a path there.
            let answer = timeout_at(end, call(channel.clone(), Uri::from_static("http://localhost"))).await;
            if let (Ok(Ok(_)), Some(of)) = (&answer, made) {
                self.keep(socket, channel, of);
            }
            let late = |_| Failure::Status(Code::DeadlineExceeded, "context deadline exceeded".to_owned());
            let refused = |status: Status| {
                let (code, message) = grpc::read(&status);
                Failure::Status(code, message)
            };
            answer.map_err(late)?.map(Response::into_inner).map_err(refused)
        };
        let answer = work.await;
        drop(place);
        self.places().retain(|_, place| Arc::strong_count(place) > 1);
        answer
    }

    /// The connection that is kept for the socket (`made`: which one it is), or a new one.
    fn channel(&self, socket: &Path, made: Option<Made>) -> Channel {
        let kept = self.kept().remove(socket).filter(|kept| Some(kept.of) == made);
        // The seed is that of a back-off that one call does not have.
        kept.map_or_else(|| Channel::new(Gate::new(grpc::unix(socket.to_owned()), 0)), |kept| kept.channel)
    }

    /// Keeps a connection for the next call, for a moment.
    fn keep(&self, socket: &Path, channel: Channel, of: Made) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (kept, socket) = (self.kept.clone(), socket.to_owned());
        self.kept().insert(socket.clone(), Kept { channel, of, number });
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.get(&socket).is_some_and(|kept| kept.number == number) {
                kept.remove(&socket);
            }
        });
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, socket: &Path) -> Arc<Semaphore> {
        self.places().entry(socket.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(CALLS))).clone()
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Arc<Semaphore>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn made(socket: &Path) -> Option<Made> {
    let stat = std::fs::metadata(socket).ok()?;
    Some((stat.dev(), stat.ino(), stat.ctime(), stat.ctime_nsec()))
}
