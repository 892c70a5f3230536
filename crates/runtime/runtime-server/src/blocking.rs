//! Calls that wait for a disk, a few at a time and never on the threads that serve.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::{Done, RuntimeError};

/// Calls at a time.
const AT_A_TIME: usize = 16;

/// The door to the pool of threads that may wait.
#[derive(Clone, Debug)]
pub(crate) struct Blocking(Arc<Semaphore>);

impl Blocking {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }

    /// Runs a call that waits. It is not stopped when whoever asked goes away: what was begun is ended.
    pub(crate) async fn run<T: Send + 'static>(&self, call: impl FnOnce() -> Done<T> + Send + 'static) -> Done<T> {
        let closed = |e: &dyn std::fmt::Display| RuntimeError::Refused(format!("the runtime is ending: {e}"));
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|e| closed(&e))?;
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            call()
        });
        task.await.map_err(|e| closed(&e))?
    }
}
