//! ShutdownManager: whether the machine is going down, and how far its pods are.

use serde::{Deserialize, Serialize};

use model::Timestamp;

/// What ShutdownManager publishes. Outlives its generations: a new one goes on from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shutdown {
    /// The machine is going down: the node takes no pods.
    pub shutting_down: bool,
    /// Since when; 0: it is not.
    pub started_at: Timestamp,
    /// Number of the group of pods that has its turn, by ascending priority. One after the last: all are through.
    pub group: usize,
    /// Since when that group has its turn; 0: it has not begun.
    pub group_since: Timestamp,
    /// The pods had their time, and nothing here holds the machine back any more.
    pub released: bool,
    /// Why a shutdown would not be held back now; `None`: it would, or was not to be.
    pub error: Option<String>,
}
