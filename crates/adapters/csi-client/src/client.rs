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
use tokio::time::timeout;
use tonic::{Response, Status};

/// Calls that one socket has at a time; others wait, and their deadline runs.
const CALLS: usize = 32;
/// Largest answer that is accepted.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

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
    ) -> Result<T, (Code, String)> {
        let place = self.place(socket);
        let work = async {
            // Never closed.
            let _mine = place.acquire().await;
            // A legal host name: some servers refuse a path there. The seed is that of a back-off that one call does not have.
            call(Channel::new(Gate::new(grpc::unix(socket.to_owned()), 0)), Uri::from_static("http://localhost")).await
        };
        let answer = timeout(deadline, work).await;
        drop(place);
        self.places().retain(|_, place| Arc::strong_count(place) > 1);
        match answer {
            Err(_) => Err((Code::DeadlineExceeded, "context deadline exceeded".to_owned())),
            Ok(answer) => answer.map(Response::into_inner).map_err(|status| grpc::read(&status)),
        }
    }

    fn place(&self, socket: &Path) -> Arc<Semaphore> {
        self.places().entry(socket.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(CALLS))).clone()
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Arc<Semaphore>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
