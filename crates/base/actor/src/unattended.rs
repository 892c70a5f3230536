//! Futures that outlive the turn which began them.

use crate::crash::guarded;
use crate::record::Record;
use crate::type_name::short;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

/// `fut`, whose panic is logged and counted for the actor of `record`, and gives `None`.
pub(crate) fn caught<R: 'static>(
    record: Arc<Record>,
    message: &'static str,
    fut: impl Future<Output = R> + Send + 'static,
) -> impl Future<Output = Option<R>> + Send {
    Caught { fut: Box::pin(fut), record, message }
}

struct Caught<R> {
    fut: Pin<Box<dyn Future<Output = R> + Send>>,
    record: Arc<Record>,
    message: &'static str,
}

impl<R: 'static> Future for Caught<R> {
    type Output = Option<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<R>> {
        let this = self.get_mut();
        match guarded(|| this.fut.as_mut().poll(cx)) {
            Ok(poll) => poll.map(Some),
            Err(caught) => {
                this.record.count.detached_panics.fetch_add(1, Relaxed);
                let message = short(this.message);
                tracing::error!(target: "actor", actor = %this.record.name, message, cause = %caught.cause,
                    at = caught.location.as_deref(), "detached answer panicked");
                // The future is broken; drop it here, outside of unwinding.
                this.fut = Box::pin(std::future::pending());
                Poll::Ready(None)
            }
        }
    }
}
