//! Why a pod may not run here.

/// Why a pod is refused: the first reason that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// CamelCase, e.g. `OutOfcpu`: reason of the pod's status and of its event.
    pub reason: String,
    /// Text for people; the pod's status carries it after `Pod was rejected: `.
    pub message: String,
    /// Nothing but node affinity stood in the way: read the Node from the API and decide once more (5.2, step 8).
    pub with_fresh_node: bool,
}

impl Rejection {
    pub(crate) fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), with_fresh_node: false }
    }
}
