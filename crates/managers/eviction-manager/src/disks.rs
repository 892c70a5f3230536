//! Looks at disks. A disk may hold up whoever looks at it: what else runs short is seen without it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::time::timeout;

/// A look that takes longer holds up nobody any more, and is not begun a second time before it ends.
const LIMIT: Duration = Duration::from_secs(5);

/// The look that was begun last.
#[derive(Clone)]
pub(crate) struct DiskLooks<T: Clone>(Arc<Mutex<Option<Shared<BoxFuture<'static, T>>>>>);

impl<T: Clone> Default for DiskLooks<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> std::fmt::Debug for DiskLooks<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DiskLooks")
    }
}

impl<T: Clone> DiskLooks<T> {
    /// Has it looked at them; `None`: they do not answer. What a late look saw is taken once it is there.
    pub(crate) async fn seen(&self, look: impl FnOnce() -> BoxFuture<'static, T>) -> Option<T> {
        let (look, limit) = {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match last.as_ref().filter(|last| last.peek().is_none()) {
                Some(late) => (late.clone(), Duration::ZERO),
                None => (last.insert(look().shared()).clone(), LIMIT),
            }
        };
        timeout(limit, look).await.ok()
    }
}
