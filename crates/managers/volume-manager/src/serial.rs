//! Blocking work, one piece per pod at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::PodUid;

type Gate = Arc<tokio::sync::Mutex<()>>;

/// Order among the effects on one pod. Outlives the actor: a call of a former generation may still run on its thread, and
/// must not meet its successor's.
#[derive(Clone, Debug, Default)]
pub struct Serial(Arc<Mutex<BTreeMap<PodUid, Gate>>>);

impl Serial {
    /// Runs `work` on the blocking pool once earlier work on `uid` is done. Panics when `work` does.
    pub(crate) async fn run<R: Send + 'static>(&self, uid: &PodUid, work: impl FnOnce() -> R + Send + 'static) -> R {
        let gate = self.gates().entry(uid.clone()).or_default().clone();
        let turn = gate.lock_owned().await;
        let out = on_pool(move || {
            let out = work();
            // Held by the thread, not by the future, which a restart drops.
            drop(turn);
            out
        })
        .await;
        self.gates().retain(|_, g| Arc::strong_count(g) > 1);
        out
    }

    fn gates(&self) -> std::sync::MutexGuard<'_, BTreeMap<PodUid, Gate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` on the blocking pool; its panic is the caller's.
pub(crate) async fn on_pool<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await {
        Ok(out) => out,
        Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
        // The runtime is going down: nobody waits any more.
        Err(_) => std::future::pending().await,
    }
}
