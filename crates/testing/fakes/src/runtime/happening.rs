//! What really happened in the runtime, whoever asked for it and whoever heard of it: for those who check a node from outside.

use std::sync::Arc;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Nanoseconds since the epoch, by the runtime's clock.
    pub at: i64,
    /// Of the sandbox.
    pub sandbox: String,
    /// UID of the pod.
    pub uid: String,
    /// Name of the pod.
    pub pod: String,
    /// Id, name and attempt of the container; `None`: it happened to the sandbox.
    pub container: Option<(String, String, u32)>,
    /// What.
    pub what: What,
}

/// What may happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It was made.
    Made,
    /// A container's process runs.
    Started,
    /// Somebody asked for a stop, with this many seconds of grace.
    StopAsked(i64),
    /// A container's process ended with this code, or a sandbox is no longer ready.
    Ended(i32, Cause),
    /// It is gone from the runtime.
    Removed,
}

/// Why something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By itself, or by something outside of the node daemon.
    Itself,
    /// A stop signal.
    Term,
    /// Killed, as the grace of a stop was over.
    Kill,
    /// Killed, as its sandbox was stopped.
    WithSandbox,
    /// Killed, as it was removed.
    Removal,
    /// It could not be started.
    NoStart,
    /// The machine started anew, or the runtime lost it.
    Lost,
}

/// Who is told, at once and within the call that does it.
pub(super) type Witness = Arc<dyn Fn(&Happening) + Send + Sync>;
