//! Questions to others: the same question is asked once at a time, few are asked at a time, and few wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use node_access::Key;
use tokio::sync::{Semaphore, watch};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failed {
    /// Too many questions at once.
    #[error("too many reviews are under way")]
    Busy,
    /// It failed.
    #[error("{0}")]
    Error(String),
}

type Answer<V> = Result<V, Failed>;
type Running<V> = BTreeMap<Key, watch::Receiver<Option<Answer<V>>>>;

/// Questions of one kind.
#[derive(Debug)]
pub(super) struct Lookups<V> {
    running: Mutex<Running<V>>,
    asked: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// Ends a question, whatever became of it.
struct Ending<V> {
    lookups: Arc<Lookups<V>>,
    key: Key,
}

impl<V> Drop for Ending<V> {
    fn drop(&mut self) {
        self.lookups.running().remove(&self.key);
    }
}

impl<V> Lookups<V> {
    fn running(&self) -> MutexGuard<'_, Running<V>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone + Send + Sync + 'static> Lookups<V> {
    /// So many questions at a time, and 8 times as many who wait.
    pub(super) fn new(at_a_time: usize) -> Arc<Self> {
        Arc::new(Self {
            running: Mutex::new(BTreeMap::new()),
            asked: Arc::new(Semaphore::new(at_a_time)),
            waiting: Arc::new(Semaphore::new(at_a_time * 8)),
        })
    }

    /// The answer to a question. It is asked on a task of its own: that the caller goes away does not lose it for others.
    /// `may` is asked first when nobody asks this already.
    pub(super) async fn answer<F>(
        self: &Arc<Self>,
        key: Key,
        may: impl FnOnce() -> bool + Send,
        ask: impl FnOnce() -> F + Send,
    ) -> Answer<V>
    where
        F: Future<Output = Result<V, String>> + Send + 'static,
    {
        let Ok(_waits) = self.waiting.try_acquire() else { return Err(Failed::Busy) };
        let mut answer = {
            let mut running = self.running();
            match running.get(&key) {
                Some(answer) => answer.clone(),
                None => {
                    let Ok(place) = self.asked.clone().try_acquire_owned() else { return Err(Failed::Busy) };
                    if !may() {
                        return Err(Failed::Busy);
                    }
                    let (tell, answer) = watch::channel(None);
                    running.insert(key, answer.clone());
                    let (asking, ending) = (ask(), Ending { lookups: self.clone(), key });
                    tokio::spawn(async move {
                        let answer = asking.await.map_err(Failed::Error);
                        // Others who come from now on find it in the cache.
                        drop(ending);
                        drop(place);
                        tell.send_replace(Some(answer));
                    });
                    answer
                }
            }
        };
        let told = answer.wait_for(Option::is_some).await;
        match told {
            Ok(answer) => answer.clone().unwrap_or(Err(Failed::Busy)),
            Err(_) => Err(Failed::Error("the review ended without an answer".to_owned())),
        }
    }
}
