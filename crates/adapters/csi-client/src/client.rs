//! One call: its place, its connection, its deadline.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grpc::{Channel, Gate};
use hyper::Uri;
use ports::grpc::Code;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tonic::{Response, Status};

/// Calls that one socket has at a time; others wait, and their deadline runs. The one limit on calls to a driver: it holds for
/// whoever calls. A kubelet has none. Each call costs a connection, and a call that hangs keeps its own for up to 2 min: this
/// bounds what a hung driver costs, while a node that starts with its 110 pods keeps any driver busy.
pub(crate) const CALLS: usize = 32;
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
}

impl CsiClient {
    /// A client of all sockets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs one call over a connection of its own. `deadline` includes the wait for a place and for the connection.
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
            // A legal host name: some servers refuse a path there. The seed is that of a back-off that one call does not have.
            let gate = Gate::new(grpc::unix(socket.to_owned()), 0);
            let answer = timeout_at(end, call(Channel::new(gate), Uri::from_static("http://localhost"))).await;
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

    fn place(&self, socket: &Path) -> Arc<Semaphore> {
        self.places().entry(socket.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(CALLS))).clone()
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Arc<Semaphore>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
