//! How many calls run at once, so that the runtime works at its best and a hung call stalls only its pod.
//!
//! Four classes of calls, each with a limit: sandboxes, containers, stops and removals, commands. Sandboxes have a class of
//! their own so that the containers of the first pods need not wait for the sandboxes of the last. A call that takes longer
//! than `permit_time` goes on, but gives its permit back: hung calls and long grace periods cannot use a limit up. Of calls
//! that start something a pod has one at a time, so a pod that hangs cannot pile up calls either.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::PodUid;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The limits of one runtime. They live in the wiring: calls that outlive a crash of the actor keep their permits.
#[derive(Debug)]
pub struct CallLimits {
    pub(crate) sandbox: CallLimit,
    pub(crate) start: CallLimit,
    pub(crate) stop: CallLimit,
    pub(crate) exec: CallLimit,
}

impl CallLimits {
    /// With this many permits; `starts` counts for sandboxes and for containers each.
    #[must_use]
    pub fn new(starts: usize, stops: usize, execs: usize) -> Self {
        Self {
            // Sandbox setup takes 0.1 s when all is well; ten seconds are a hang or a slow network plugin.
            sandbox: CallLimit::new(starts, Duration::from_secs(10), true),
            start: CallLimit::new(starts, Duration::from_secs(10), true),
            // What takes longer waits for a process to end.
            stop: CallLimit::new(stops, Duration::from_millis(500), false),
            exec: CallLimit::new(execs, Duration::from_secs(1), false),
        }
    }
}

/// Cores from which on more of them change nothing: by then the runtime's own locks and the disk are what starts wait for.
const MOST_CORES: usize = 16;

impl CallLimits {
    /// For a machine of so many cores. On two of them some eight starts at a time, which sandboxes and containers share: measured
    /// with 110 pods, eight at a time took 8.7 s, sixteen 8.8 s, all at once 11.8 s.
    #[must_use]
    pub fn for_cores(cores: u32) -> Self {
        let cores = usize::try_from(cores).unwrap_or(MOST_CORES).clamp(2, MOST_CORES);
        Self::new(cores * 5 / 2, cores * 4, cores * 8)
    }
}

impl Default for CallLimits {
    /// For the smallest machine.
    fn default() -> Self {
        Self::for_cores(0)
    }
}

type Turns = BTreeMap<PodUid, Arc<Semaphore>>;

#[derive(Debug)]
pub(crate) struct CallLimit {
    permits: Semaphore,
    /// After this a call goes on without its permit.
    permit_time: Duration,
    /// One call at a time per pod.
    turns: Option<Mutex<Turns>>,
}

impl CallLimit {
    fn new(permits: usize, permit_time: Duration, one_per_pod: bool) -> Self {
        Self { permits: Semaphore::new(permits.max(1)), permit_time, turns: one_per_pod.then(Mutex::default) }
    }

    /// Runs `call` when it is the pod's turn and there is a permit.
    pub(crate) async fn run<T>(&self, uid: &PodUid, call: impl Future<Output = T>) -> T {
        let turn = self.turn(uid);
        let _turn = match &turn {
            Some(turn) => turn.semaphore.acquire().await.ok(),
            None => None,
        };
        let permit = self.permits.acquire().await;
        let mut call = pin!(call);
        match timeout(self.permit_time, &mut call).await {
            Ok(result) => result,
            Err(_) => {
                drop(permit);
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

/// A call's turn among those of its pod; the last one out removes the entry of the pod.
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
