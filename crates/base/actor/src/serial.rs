//! Blocking work on the pool, one piece per key at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::control::locked;

type Gate = Arc<tokio::sync::Mutex<()>>;

/// Order among the effects on one key, e.g. on one pod. Make it once, outside of the actor: work of a former generation
/// may still run on its thread, and must not meet its successor's.
#[derive(Debug)]
pub struct Serial<K>(Arc<Mutex<BTreeMap<K, Gate>>>);

impl<K> Clone for Serial<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for Serial<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord + Clone> Serial<K> {
    /// Runs `work` on the blocking pool once earlier work on `key` is done. Panics when `work` does.
    pub async fn run<R: Send + 'static>(&self, key: &K, work: impl FnOnce() -> R + Send + 'static) -> R {
        let gate = self.gates().entry(key.clone()).or_default().clone();
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

    fn gates(&self) -> MutexGuard<'_, BTreeMap<K, Gate>> {
        locked(&self.0)
    }
}

/// Runs `work` on the blocking pool; its panic is the caller's.
pub async fn on_pool<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await {
        Ok(out) => out,
        Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
        // The runtime is going down: nobody waits any more.
        Err(_) => std::future::pending().await,
    }
}
