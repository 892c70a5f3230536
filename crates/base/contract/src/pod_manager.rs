//! PodManager: the pods that should be here, by UID.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use model::core::Pod;

use crate::config_sources::Source;

/// The complete set of one source (SET semantics: what is missing is removed). Idempotent. An empty set counts as "seen".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetPods {
    /// Where they come from.
    pub source: Source,
    /// All of them.
    pub pods: Vec<Arc<Pod>>,
    /// From a copy that may lack some: they run, but the source has not spoken yet, so that nothing unknown is touched.
    pub provisional: bool,
}
/// One row of the board of desired pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DesiredPod {
    /// The pod, stamped with source and first-seen time.
    pub pod: Arc<Pod>,
    /// Where it comes from.
    pub source: Source,
    /// Admission refused it: reason and message.
    pub rejected: Option<(String, String)>,
    /// The mirror pod that the API server holds for a static pod.
    pub mirror: Option<Arc<Pod>>,
}
