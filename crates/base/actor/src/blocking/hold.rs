//! The right to work on something, which blocking work takes along.

use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The right to work on something, which one has at a time. It lasts as long as a copy of it: work that was begun on a thread goes on
/// when whoever asked for it is dropped, so it has one of its own, see [`Hold::during`].
#[derive(Debug, Clone)]
pub struct Hold(Option<Arc<OwnedMutexGuard<()>>>);

impl Hold {
    /// Waits for it. `gate`: of what is worked on; make it once, outside of the actor.
    pub async fn on(gate: Arc<Mutex<()>>) -> Self {
        Hold(Some(Arc::new(gate.lock_owned().await)))
    }

    /// `work`, which has this until its end.
    pub fn during<R>(self, work: impl FnOnce() -> R) -> impl FnOnce() -> R {
        move || {
            let out = work();
            drop(self);
            out
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Work that hangs never gives it back.
        if super::pool::hangs() {
            std::mem::forget(self.0.take());
        }
    }
}
