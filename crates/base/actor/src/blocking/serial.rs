//! One piece of work per key at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Class, Effects, Hold};
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
    /// As [`Effects::blocking`], once earlier work on `key` is done.
    pub async fn run<R: Send + 'static>(
        &self,
        key: &K,
        effects: &Effects,
        class: Class,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> R {
        let gate = self.gates().entry(key.clone()).or_default().clone();
        // Held by the work, not by the future, which a restart drops.
        let work = Hold::on(gate).await.during(work);
        let out = effects.blocking(class, work).await;
        self.gates().retain(|_, g| Arc::strong_count(g) > 1);
        out
    }

    /// Whether there is work on `key` now.
    pub fn is_busy(&self, key: &K) -> bool {
        self.gates().get(key).is_some_and(|gate| gate.try_lock().is_err())
    }

    fn gates(&self) -> MutexGuard<'_, BTreeMap<K, Gate>> {
        locked(&self.0)
    }
}
