//! Reads in tasks of their own, beside the actor's turns.

use std::future::Future;

use ports::runtime::{RuntimeCode, RuntimeError, RuntimeResult};
use tokio::task::JoinSet;

/// Runs `read` in a task. Dropping this cancels it; its panic is logged and becomes a failed read, so that what one pod
/// reports cannot crash the actor over and over.
pub(crate) async fn on_pool<T: Send + 'static>(
    read: impl Future<Output = RuntimeResult<T>> + Send + 'static,
) -> RuntimeResult<T> {
    let mut one = JoinSet::new();
    one.spawn(read);
    match one.join_next().await {
        Some(Ok(result)) => result,
        Some(Err(e)) => {
            tracing::error!(error = %e, "a read of the runtime panicked");
            Err(RuntimeError::new(RuntimeCode::Internal, format!("read failed: {e}")))
        }
        None => Err(RuntimeError::new(RuntimeCode::Internal, "read was not started")),
    }
}
