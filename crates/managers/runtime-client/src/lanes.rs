//! How many calls run at once, so that the runtime works at its best and a hung call stalls only its pod.
//!
//! Four lanes: sandboxes, containers, stops and removals, commands. Sandboxes have a lane of their own so that the
//! containers of the first pods need not wait for the sandboxes of the last. Each lane has a number of places. A call that takes
//! longer than the lane's patience goes on, but gives its place back: hung calls and long grace periods cannot fill a
//! lane. In the start lane a pod has one call at a time, so a pod that hangs cannot pile up calls either.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::PodUid;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The lanes of one runtime. They live in the wiring: calls that outlive a crash of the actor keep their places.
#[derive(Debug)]
pub struct Lanes {
    pub(crate) sandbox: Lane,
    pub(crate) start: Lane,
    pub(crate) stop: Lane,
    pub(crate) exec: Lane,
}

impl Lanes {
    /// With this many places; `starts` counts for sandboxes and for containers each.
    #[must_use]
    pub fn new(starts: usize, stops: usize, execs: usize) -> Self {
        Self {
            // Sandbox setup takes 0.1 s when all is well; ten seconds are a hang or a slow network plugin.
            sandbox: Lane::new(starts, Duration::from_secs(10), true),
            start: Lane::new(starts, Duration::from_secs(10), true),
            // What takes longer is waiting for a process to obey.
            stop: Lane::new(stops, Duration::from_millis(500), false),
            exec: Lane::new(execs, Duration::from_secs(1), false),
        }
    }
}

impl Default for Lanes {
    /// Eight at a time was best on two cores (design/test-bed.md); sandboxes and containers share them.
    fn default() -> Self {
        Self::new(5, 8, 16)
    }
}

type Turns = BTreeMap<PodUid, Arc<Semaphore>>;

#[derive(Debug)]
pub(crate) struct Lane {
    places: Semaphore,
    patience: Duration,
    /// One call at a time per pod.
    turns: Option<Mutex<Turns>>,
}

impl Lane {
    fn new(places: usize, patience: Duration, one_per_pod: bool) -> Self {
        Self { places: Semaphore::new(places.max(1)), patience, turns: one_per_pod.then(Mutex::default) }
    }

    /// Runs `call` when the pod and the lane have a place for it.
    pub(crate) async fn run<T>(&self, uid: &PodUid, call: impl Future<Output = T>) -> T {
        let turn = self.turn(uid);
        let _turn = match &turn {
            Some(turn) => turn.semaphore.acquire().await.ok(),
            None => None,
        };
        let place = self.places.acquire().await;
        let mut call = pin!(call);
        match timeout(self.patience, &mut call).await {
            Ok(result) => result,
            Err(_) => {
                drop(place);
                call.await
            }
        }
    }

    fn turn(&self, uid: &PodUid) -> Option<Turn<'_>> {
        let all = self.turns.as_ref()?;
        let semaphore = Arc::clone(lock(all).entry(uid.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
        Some(Turn { all, uid: uid.clone(), semaphore })
    }
}

/// A pod's place in line; the last one out takes the line away.
struct Turn<'a> {
    all: &'a Mutex<Turns>,
    uid: PodUid,
    semaphore: Arc<Semaphore>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut all = lock(self.all);
        // One count is ours, one the map's.
        if Arc::strong_count(&self.semaphore) <= 2 {
            all.remove(&self.uid);
        }
    }
}

fn lock(turns: &Mutex<Turns>) -> MutexGuard<'_, Turns> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
