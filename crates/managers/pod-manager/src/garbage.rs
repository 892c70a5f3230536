//! Container garbage collection: dead containers and sandboxes of the runtime, logs and journal lines of pods that are gone.
//!
//! `plan.rs` says what goes (pure), `round.rs` removes it.

mod plan;
mod round;

pub use plan::GcPolicy;
pub(crate) use round::{Round, worker_line};

/// Whether a round runs or is due. One runs at a time.
#[derive(Debug, Default)]
pub(crate) struct GarbageCollection {
    running: bool,
    scheduled: bool,
}

impl GarbageCollection {
    /// Whether an early round must be scheduled now; `false`: one is scheduled already.
    pub(crate) fn schedule(&mut self) -> bool {
        !std::mem::replace(&mut self.scheduled, true)
    }

    /// Whether a round may begin now; it counts as running from now on.
    pub(crate) fn begin(&mut self) -> bool {
        self.scheduled = false;
        !std::mem::replace(&mut self.running, true)
    }

    pub(crate) fn end(&mut self) {
        self.running = false;
    }
}

#[cfg(test)]
mod tests {
    use super::GarbageCollection;

    #[test]
    fn one_round_runs_and_one_early_round_is_scheduled_at_a_time() {
        let mut gc = GarbageCollection::default();
        assert!(gc.schedule());
        assert!(!gc.schedule(), "one is scheduled already");
        assert!(gc.begin());
        assert!(gc.schedule(), "what ends during a round is for another one");
        assert!(!gc.begin(), "a round is under way");
        gc.end();
        assert!(gc.begin());
    }
}
