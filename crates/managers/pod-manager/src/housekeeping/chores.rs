//! Pure: which workers are to be made, killed or retired, and what is left over of pods that are gone (pod-lifecycle 2.4,
//! 2.8, 2.9).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::pod_worker::{WorkerPhase, WorkerState};
use model::PodUid;

/// What one desired pod means for housekeeping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DesiredFacts {
    /// `<name>_<namespace>`.
    pub(crate) full_name: String,
    /// From a file or URL.
    pub(crate) is_static: bool,
    /// Refused by admission: gets no worker.
    pub(crate) rejected: bool,
    /// Admission has not decided yet, or the pod waits for others to make room: gets its worker later.
    pub(crate) undecided: bool,
    /// Phase is Succeeded or Failed in the API copy.
    pub(crate) terminal: bool,
    /// Has a deletion timestamp.
    pub(crate) deleting: bool,
    /// The same UID was added again while its worker was stopping.
    pub(crate) restart_requested: bool,
    /// Its worker acts on another version of it.
    pub(crate) changed: bool,
    /// Makes room for a critical pod.
    pub(crate) preempted: bool,
    /// The status board says that it was refused.
    pub(crate) told: bool,
}

/// What should be and what is, as the boards show it; read in this order: cgroups, desired pods, the rest.
#[derive(Debug, Default)]
pub(crate) struct Situation {
    /// Desired pods.
    pub(crate) desired: BTreeMap<PodUid, DesiredFacts>,
    /// Workers.
    pub(crate) workers: BTreeMap<PodUid, Arc<WorkerState>>,
    /// Pods of the runtime; `true`: a container runs or a sandbox is ready.
    pub(crate) runtime: BTreeMap<PodUid, bool>,
    /// Pod cgroups that exist.
    pub(crate) cgroups: BTreeSet<PodUid>,
    /// Pod directories that exist; `true`: a volume may be mounted.
    pub(crate) directories: BTreeMap<PodUid, bool>,
    /// Order in which static pods arrived.
    pub(crate) arrivals: Vec<PodUid>,
    /// Static pods that run and that no source has: an earlier daemon started them, and their manifest went or changed since.
    pub(crate) strays: BTreeMap<PodUid, Stray>,
}

/// A static pod of the runtime that is not desired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    /// `<name>_<namespace>`.
    pub(crate) full_name: String,
    /// Its source has delivered a full set, without it.
    pub(crate) is_gone: bool,
}

/// What housekeeping does about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    /// The worker is finished and its UID may be used again.
    RetireWorker(PodUid),
    /// The worker's pod is gone from its source: stop it.
    KillWorker(PodUid),
    /// The worker does not act on what is desired yet.
    UpdateWorker(PodUid),
    /// The worker does not stop its pod yet, which makes room.
    PreemptWorker(PodUid),
    /// Desired and active, but without a worker.
    CreateWorker(PodUid),
    /// Terminal and deleted, but never had a worker: let one finish it.
    FinishPod(PodUid),
    /// Runs, but is neither desired nor has it a worker: kill with grace 1 s, after a fresh list of the runtime confirms it.
    KillRuntimeOrphan(PodUid),
    /// As above, of a static pod whose source has delivered without it, while another one waits for its name: that need not wait
    /// for other sources, least of all for an API server that may be the pod which waits.
    KillStray(PodUid),
    /// The static pod may start: its full name is free.
    GrantStart(PodUid),
    /// Refused, and the status board does not say so yet.
    TellRejection(PodUid),
    /// Neither desired nor with a worker: remove its directory.
    RemovePodDir(PodUid),
    /// Has no worker any more: remove its cgroup.
    RemoveCgroup(PodUid),
    /// As above, but volumes are still there: only take its cpu away.
    ThrottleCgroup(PodUid),
}

impl Chore {
    /// The pod that it is about.
    pub(crate) fn uid(&self) -> &PodUid {
        match self {
            Chore::RetireWorker(uid)
            | Chore::KillWorker(uid)
            | Chore::UpdateWorker(uid)
            | Chore::PreemptWorker(uid)
            | Chore::CreateWorker(uid)
            | Chore::FinishPod(uid)
            | Chore::KillRuntimeOrphan(uid)
            | Chore::KillStray(uid)
            | Chore::GrantStart(uid)
            | Chore::TellRejection(uid)
            | Chore::RemovePodDir(uid)
            | Chore::RemoveCgroup(uid)
            | Chore::ThrottleCgroup(uid) => uid,
        }
    }

    /// Whether it only serves a pod that a source has delivered: done also before all sources have delivered.
    pub(crate) fn is_for_desired(&self) -> bool {
        matches!(
            self,
            Chore::GrantStart(_)
                | Chore::CreateWorker(_)
                | Chore::UpdateWorker(_)
                | Chore::TellRejection(_)
                | Chore::KillStray(_)
        )
    }
}

/// Decides every chore. Idempotent: chores that were done are not asked for again once the boards show it.
pub(crate) fn chores(situation: &Situation) -> Vec<Chore> {
    let mut out = Vec::new();
    worker_chores(situation, &mut out);
    missing_workers(situation, &mut out);
    runtime_orphans(situation, &mut out);
    out.extend(grants(situation));
    leftovers(situation, &mut out);
    out
}

fn worker_chores(situation: &Situation, out: &mut Vec<Chore>) {
    for (uid, worker) in &situation.workers {
        let desired = situation.desired.get(uid);
        let orphan = desired.is_none();
        let again = desired.is_some_and(|d| d.restart_requested);
        if worker.phase == WorkerPhase::Finished {
            if orphan || again {
                out.push(Chore::RetireWorker(uid.clone()));
            }
            continue;
        }
        if orphan && !worker.deleted {
            out.push(Chore::KillWorker(uid.clone()));
        }
        // A pod that comes again gets another worker.
        if desired.is_some_and(|d| d.changed && !again) {
            out.push(Chore::UpdateWorker(uid.clone()));
        }
        if desired.is_some_and(|d| d.preempted) && !worker.termination_requested {
            out.push(Chore::PreemptWorker(uid.clone()));
        }
    }
}

fn missing_workers(situation: &Situation, out: &mut Vec<Chore>) {
    for (uid, pod) in &situation.desired {
        if situation.workers.contains_key(uid) {
            continue;
        }
        let in_runtime = situation.runtime.get(uid).copied().unwrap_or(false);
        if pod.undecided {
            continue;
        }
        if !pod.terminal && !pod.rejected {
            out.push(Chore::CreateWorker(uid.clone()));
        } else if pod.deleting && !in_runtime {
            out.push(Chore::FinishPod(uid.clone()));
        } else if pod.rejected && !pod.terminal && !pod.told && !in_runtime {
            // One that still runs is ended by a worker, which tells how its containers ended, too.
            out.push(Chore::TellRejection(uid.clone()));
        }
    }
}

fn runtime_orphans(situation: &Situation, out: &mut Vec<Chore>) {
    for (uid, alive) in &situation.runtime {
        let desired_and_active = situation.desired.get(uid).is_some_and(|d| !d.rejected && !d.terminal);
        if *alive && !situation.workers.contains_key(uid) && !desired_and_active {
            out.push(Chore::KillRuntimeOrphan(uid.clone()));
        }
    }
}

/// One UID of a full name runs at a time; the first to arrive that is not being stopped is next, once a stray of that name is gone.
fn grants(situation: &Situation) -> Vec<Chore> {
    let name_of = |uid: &PodUid| {
        let from_worker = situation.workers.get(uid).and_then(|w| w.pod.as_deref()).map(model::pod::full_name);
        from_worker.or_else(|| situation.desired.get(uid).map(|d| d.full_name.clone())).unwrap_or_default()
    };
    let mut taken: BTreeSet<String> = situation
        .workers
        .iter()
        .filter(|(_, w)| w.phase > WorkerPhase::Waiting && w.phase < WorkerPhase::Finished)
        .map(|(uid, _)| name_of(uid))
        .collect();
    let mut out = Vec::new();
    for uid in &situation.arrivals {
        // A worker that was just made has no row yet; it is granted what it will wait for.
        let fresh = situation.desired.get(uid).is_some_and(|d| !d.rejected && !d.terminal);
        let waits =
            situation.workers.get(uid).map_or(fresh, |w| w.phase == WorkerPhase::Waiting && !w.termination_requested);
        let name = name_of(uid);
        if !waits || taken.contains(&name) {
            continue;
        }
        let strays: Vec<_> = situation.strays.iter().filter(|(_, stray)| stray.full_name == name).collect();
        if strays.is_empty() {
            out.push(Chore::GrantStart(uid.clone()));
        }
        let to_kill = strays.into_iter().filter(|(uid, stray)| stray.is_gone && !situation.workers.contains_key(*uid));
        out.extend(to_kill.map(|(uid, _)| Chore::KillStray(uid.clone())));
        taken.insert(name);
    }
    out
}

fn leftovers(situation: &Situation, out: &mut Vec<Chore>) {
    let may_run = |uid: &PodUid| situation.workers.get(uid).is_some_and(|w| w.phase < WorkerPhase::Terminated);
    for uid in &situation.cgroups {
        let being_removed = situation.workers.get(uid).is_some_and(|w| w.phase == WorkerPhase::Terminated);
        let wanted = situation.desired.get(uid).is_some_and(|d| !d.rejected && !d.terminal);
        let alive = situation.runtime.get(uid).copied().unwrap_or(false);
        if may_run(uid) || being_removed || (wanted && !situation.workers.contains_key(uid)) || alive {
            continue;
        }
        let mounted = situation.directories.get(uid).copied().unwrap_or(false);
        out.push(if mounted { Chore::ThrottleCgroup(uid.clone()) } else { Chore::RemoveCgroup(uid.clone()) });
    }
    for uid in situation.directories.keys() {
        let known = situation.desired.contains_key(uid) || situation.workers.contains_key(uid);
        let alive = situation.runtime.get(uid).copied().unwrap_or(false);
        if !known && !alive {
            out.push(Chore::RemovePodDir(uid.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
