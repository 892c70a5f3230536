//! What really happened in the runtime, whoever asked for it and whoever heard of it: for those who check a node from outside.

use std::sync::Arc;

use super::state::{FakeContainer, FakeSandbox};
use super::{FakeRuntime, Inner, lock};

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

impl Inner {
    pub(super) fn happened_to_container(&self, c: &FakeContainer, what: What) {
        let Some(witness) = lock(&self.script).witness.clone() else { return };
        let (uid, pod) = {
            let state = lock(&self.state);
            let of = state.sandboxes.get(&c.sandbox);
            of.map(|s| (s.uid().to_owned(), s.pod().to_owned())).unwrap_or_default()
        };
        let container = Some((c.id.clone(), c.name().to_owned(), c.attempt()));
        witness(&Happening { at: self.now(), sandbox: c.sandbox.clone(), uid, pod, container, what });
    }

    pub(super) fn happened_to_sandbox(&self, s: &FakeSandbox, what: What) {
        let Some(witness) = lock(&self.script).witness.clone() else { return };
        let (uid, pod) = (s.uid().to_owned(), s.pod().to_owned());
        witness(&Happening { at: self.now(), sandbox: s.id.clone(), uid, pod, container: None, what });
    }
}

impl FakeRuntime {
    /// Tells `witness` of all that happens from now on, at once and within the call that does it. It may look at anything.
    pub fn witness(&self, witness: impl Fn(&Happening) + Send + Sync + 'static) {
        lock(&self.inner.script).witness = Some(Arc::new(witness));
    }
}
