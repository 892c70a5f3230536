//! The thread that serves callers: a large answer, a slow handshake or a stream never holds up a turn of an actor, and health
//! is told while a turn blocks.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that serve: what a node is asked is little, and what takes long is done elsewhere.
const THREADS: usize = 1;
/// Reads of files and packing that may go on at the same moment for callers.
const BLOCKING_THREADS: usize = 32;
/// How long what is still served at the end is waited for.
const FAREWELL: Duration = Duration::from_secs(2);

/// The runtime of that thread. Owned by whoever is in no runtime: it cannot be dropped inside of one.
pub(super) struct Apart(Runtime);

impl Apart {
    /// # Errors
    /// The kernel has no thread to give.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("server")
            .enable_all()
            .build()?;
        Ok(Self(runtime))
    }

    pub(super) fn handle(&self) -> Handle {
        self.0.handle().clone()
    }

    pub(super) fn end(self) {
        self.0.shutdown_timeout(FAREWELL);
    }
}

/// Runs `work` here, with its sockets, timers and tasks over there.
pub(super) async fn on<F: Future>(there: &Handle, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let _entered = there.enter();
        work.as_mut().poll(cx)
    })
    .await
}
