//! Work that blocks has threads of its own: as many as callers allow at once, so that no pool of others fills up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::error::PullError;

/// Runs work that blocks. Who drops this does not wait for it, and it is not ended by that.
pub(crate) async fn blocking<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PullError> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    // Nobody may be waiting any more.
    thread.spawn(move || drop(sender.send(work()))).map_err(|_| PullError::Lost(name))?;
    receiver.await.map_err(|_| PullError::Lost(name))
}

/// Tells work to stop when nobody waits for it any more.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
