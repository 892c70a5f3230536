//! What work holds that runs while the actor goes on.

use std::sync::Arc;

use actor::{Class, Clock, Effects, Hold, Serial};
use contract::volume::VolumeError;

/// Time, effects and randomness for work that runs while the actor goes on, and the turns that it is done in.
#[derive(Clone, Debug)]
pub(crate) struct TaskContext {
    pub clock: Clock,
    pub effects: Effects,
    pub random: u32,
    turns: Vec<Hold>,
}

impl TaskContext {
    pub(crate) fn new(clock: Clock, effects: Effects, random: u32) -> Self {
        Self { clock, effects, random, turns: Vec::new() }
    }

    /// The same, once it is its turn with what has this gate. The turn lasts as long as the answer, and as long as any blocking work
    /// that was begun with it: that goes on when a restart of the actor drops whoever waits for it.
    pub(crate) async fn in_turn(&self, gate: Arc<tokio::sync::Mutex<()>>) -> Self {
        let mut out = self.clone();
        out.turns.push(Hold::on(gate).await);
        out
    }

    /// As [`Effects::blocking`].
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.effects.blocking(class, self.held(work)).await
    }

    /// As [`Serial::run`].
    pub(crate) async fn serially<K: Ord + Clone, T: Send + 'static>(
        &self,
        (serial, key): (&Serial<K>, &K),
        class: Class,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        serial.run(key, &self.effects, class, self.held(work)).await
    }

    fn held<T>(&self, work: impl FnOnce() -> T + Send + 'static) -> impl FnOnce() -> T + Send + 'static {
        let turns = self.turns.clone();
        move || {
            let out = work();
            drop(turns);
            out
        }
    }
}

/// What a request hears whose pod was unmounted meanwhile.
pub(crate) fn cancelled() -> VolumeError {
    VolumeError::new("the pod no longer wants its volumes")
}

/// Names of the fault points before and after a piece of work, for those who look for them in the source.
pub(crate) const fn fault_points(before: &'static str, after: &'static str) -> [&'static str; 2] {
    [before, after]
}
