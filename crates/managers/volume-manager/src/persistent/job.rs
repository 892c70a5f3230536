//! One volume that one pod is to have.

use std::sync::Arc;

use model::core::Pod;

use crate::deps::Tools;
use crate::desired::MountRequest;
use crate::failed::Failed;
use crate::task::TaskContext;

/// One volume for one pod.
pub(crate) struct Job<'a> {
    pub tools: &'a Tools,
    pub pod: &'a Arc<Pod>,
    pub request: &'a MountRequest,
    pub task: &'a TaskContext,
    /// Name in the pod.
    pub volume: &'a str,
}

impl Job<'_> {
    pub(crate) fn failed(&self, step: &'static str, name: &str, error: impl Into<String>) -> Failed {
        Failed::at(step, self.volume, name, error.into())
    }
}
