//! What work holds that runs while the actor goes on.

use actor::{Clock, Effects};
use contract::volume::VolumeError;

/// Time, effects and randomness for work that runs while the actor goes on.
#[derive(Clone, Debug)]
pub(crate) struct TaskContext {
    pub clock: Clock,
    pub effects: Effects,
    pub random: u32,
}

/// What a request hears whose pod was unmounted meanwhile.
pub(crate) fn cancelled() -> VolumeError {
    VolumeError::new("the pod no longer wants its volumes")
}

/// Names of the fault points before and after a piece of work, for those who look for them in the source.
pub(crate) const fn fault_points(before: &'static str, after: &'static str) -> [&'static str; 2] {
    [before, after]
}
