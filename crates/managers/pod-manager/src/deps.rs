//! What PodManager is set up with, and what one generation of it works with.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contract::Crew;
use contract::board::{BoardPoster, BoardReader, ValueReader};
use contract::config_sources::Source;
use contract::eviction::NodePressure;
use contract::node::NodeView;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::runtime::{Observed, RuntimeInfo};
use contract::status::StatusEntry;
use model::PodUid;
use model::allocation::Resizable;
use pod_admission::NodeFacts;
use ports::api::ApiServer;
use ports::host::HostFs;
use ports::journal::Journal;

use crate::garbage::GcPolicy;

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sources that must have delivered before anything unknown is touched.
    pub sources: BTreeSet<Source>,
    /// Period of housekeeping (2 s in a kubelet).
    pub housekeeping: Duration,
    /// Period of the container garbage collection (1 min in a kubelet).
    pub gc_period: Duration,
    /// Limits of the garbage collection.
    pub gc: GcPolicy,
    /// Folder of the node's state: what pods are granted is kept there.
    pub root_dir: PathBuf,
    /// What can be resized in place, by the feature gates.
    pub resizable: Resizable,
    /// Folder of pod logs.
    pub pod_logs_dir: PathBuf,
    /// Folder of the legacy log links.
    pub container_logs_dir: PathBuf,
}

/// What PodManager works with.
#[derive(Clone)]
pub struct Deps {
    /// What this machine knows of itself; the Node object adds to it.
    pub facts: NodeFacts,
    /// `None`: standalone. Mirror pods are made here, and the Node is read again.
    pub api: Option<Arc<dyn ApiServer>>,
    /// Log folders.
    pub fs: Arc<dyn HostFs>,
    /// Lines of pods that are gone are swept out of it.
    pub journal: Arc<dyn Journal>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("pod_manager::Deps")
    }
}

/// What one generation of the actor and its effects work with: settings, ports, and the boards of its role.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) crew: Crew<contract::PodManager>,
    pub(crate) rows: BoardPoster<PodUid, DesiredPod>,
    pub(crate) workers: BoardReader<PodUid, WorkerState>,
    pub(crate) observed: BoardReader<PodUid, Observed>,
    pub(crate) runtime: ValueReader<RuntimeInfo>,
    pub(crate) statuses: BoardReader<PodUid, StatusEntry>,
    pub(crate) node: ValueReader<NodeView>,
    pub(crate) pressure: ValueReader<NodePressure>,
}

impl Tools {
    pub(crate) fn new(crew: Crew<contract::PodManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            config,
            deps,
            rows: crew.poster(),
            workers: crew.board(),
            observed: crew.board(),
            runtime: crew.value(),
            statuses: crew.board(),
            node: crew.value(),
            pressure: crew.value(),
            crew,
        }
    }

    /// Whether the runtime was listed and asked for its status, at least once.
    pub(crate) fn runtime_is_known(&self) -> bool {
        let info = self.runtime.get();
        info.listed && !info.name.is_empty()
    }
}
