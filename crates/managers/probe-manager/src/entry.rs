//! One pod under probe.

use std::collections::BTreeMap;
use std::sync::Arc;

use actor::SpawnHandle;
use contract::probe::PodProbes;
use model::core::{Container, Pod, Probe};
use model::probe::{ProbeKind, ProbeVerdict};
use model::{ContainerId, PodUid, pod};
use probe_schedule::{Change, Worker};

/// Names one probe.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ProbeId {
    pub(crate) uid: PodUid,
    pub(crate) container: Arc<str>,
    pub(crate) kind: ProbeKind,
}

/// A pod's probes.
pub(crate) struct Entry {
    pub(crate) pod: Arc<Pod>,
    /// Tells this entry from an earlier one of the same UID.
    pub(crate) serial: u64,
    pub(crate) workers: BTreeMap<(Arc<str>, ProbeKind), Worker>,
    /// What the board shows.
    pub(crate) row: PodProbes,
    /// The wait for the next status.
    pub(crate) watch: Option<SpawnHandle>,
}

impl Entry {
    pub(crate) fn new(pod: Arc<Pod>, serial: u64) -> Self {
        Self { pod, serial, workers: BTreeMap::new(), row: PodProbes::default(), watch: None }
    }

    /// Adds a worker, with the verdict that it may bring.
    pub(crate) fn add(&mut self, name: &Arc<str>, worker: Worker) {
        let kind = worker.settings().kind;
        if let (Some(id), Some(verdict)) = (worker.container(), worker.verdict()) {
            self.apply(kind, &Change::Set(id.clone(), verdict));
        }
        self.row.probes.entry(name.to_string()).or_default().insert(kind);
        self.workers.insert((name.clone(), kind), worker);
    }

    /// Removes a worker and its verdict; gives the instance that it watched.
    pub(crate) fn remove(&mut self, name: &Arc<str>, kind: ProbeKind) -> Option<ContainerId> {
        let mut worker = self.workers.remove(&(name.clone(), kind))?;
        let instance = worker.container().cloned();
        if let Some(change) = worker.forget() {
            self.apply(kind, &change);
        }
        if let Some(kinds) = self.row.probes.get_mut(&**name) {
            kinds.remove(&kind);
            if kinds.is_empty() {
                self.row.probes.remove(&**name);
            }
        }
        instance
    }

    /// Applies a change to the row.
    pub(crate) fn apply(&mut self, kind: ProbeKind, change: &Change) {
        match change {
            Change::Set(id, verdict) => {
                self.row.verdicts.entry(id.clone()).or_default().insert(kind, *verdict);
            }
            Change::Remove(id) => {
                if let Some(verdicts) = self.row.verdicts.get_mut(id) {
                    verdicts.remove(&kind);
                    if verdicts.is_empty() {
                        self.row.verdicts.remove(id);
                    }
                }
            }
        }
    }

    /// The verdicts about one instance, by kind.
    pub(crate) fn verdicts(&self, id: &ContainerId) -> impl Iterator<Item = (ProbeKind, ProbeVerdict)> + '_ {
        self.row.verdicts.get(id).into_iter().flatten().map(|(k, v)| (*k, *v))
    }

    /// The container and the probe that an id names.
    pub(crate) fn find(&self, name: &str, kind: ProbeKind) -> Option<(&Container, &Probe)> {
        let mut all = pod::regular_containers(&self.pod).iter().chain(pod::init_containers(&self.pod));
        let container = all.find(|c| c.name == name)?;
        let probe = match kind {
            ProbeKind::Startup => &container.startup_probe,
            ProbeKind::Readiness => &container.readiness_probe,
            ProbeKind::Liveness => &container.liveness_probe,
        };
        probe.as_ref().map(|p| (container, p))
    }
}
