//! Looks at disks. A disk may hold up whoever looks at it: what else runs short is seen without it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::time::timeout;

use crate::observe::DisksSeen;

/// A look that takes longer holds up nobody any more, and is not begun a second time before it ends.
const LIMIT: Duration = Duration::from_secs(5);

/// The look that was begun last.
#[derive(Clone, Default)]
pub(crate) struct DiskLooks(Arc<Mutex<Option<Shared<BoxFuture<'static, DisksSeen>>>>>);

impl std::fmt::Debug for DiskLooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DiskLooks")
    }
}

impl DiskLooks {
    /// Has it looked at them; `None`: they do not answer. What a late look saw is taken once it is there.
    pub(crate) async fn seen(&self, look: impl FnOnce() -> BoxFuture<'static, DisksSeen>) -> Option<DisksSeen> {
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
