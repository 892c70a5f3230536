//! What there is for a manager in its process.

use std::sync::Arc;

use actor::Kernel;
use ports::journal::Journal;

/// What a manager has beside its crew.
#[derive(Clone)]
pub struct Outside {
    /// The node's journal, of which it sees its own tables.
    pub journal: Arc<dyn Journal>,
    /// The kernel that it runs in.
    pub kernel: Kernel,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside")
    }
}
