//! Pure: what is left over, and who must be told (pod-lifecycle 2.4, 2.8, 2.9).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contract::pod_worker::{WorkerPhase, WorkerState};
use model::PodUid;

/// What one desired pod means for housekeeping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredFacts {
    /// `<name>_<namespace>`.
    pub full_name: String,
    /// From a file or URL.
    pub is_static: bool,
    /// Refused by admission: gets no worker.
    pub rejected: bool,
    /// Admission has not decided yet, or the pod waits for others to make room: gets its worker later.
    pub undecided: bool,
    /// Phase is Succeeded or Failed in the API copy.
    pub terminal: bool,
    /// Has a deletion timestamp.
    pub deleting: bool,
    /// The same UID was added again while its worker was stopping.
    pub restart_requested: bool,
    /// Its worker acts on something else.
    pub changed: bool,
    /// Makes room for a critical pod.
    pub preempted: bool,
}

/// The world as the boards show it, read in this order: cgroups, desired, the rest.
#[derive(Debug, Default)]
pub struct World {
    /// Desired pods.
    pub desired: BTreeMap<PodUid, DesiredFacts>,
    /// Workers.
    pub workers: BTreeMap<PodUid, Arc<WorkerState>>,
    /// Pods of the runtime; `true`: a container runs or a sandbox is ready.
    pub runtime: BTreeMap<PodUid, bool>,
    /// Pod cgroups that exist.
    pub cgroups: BTreeSet<PodUid>,
    /// Pod directories that exist; `true`: a volume may be mounted.
    pub directories: BTreeMap<PodUid, bool>,
    /// Order in which static pods arrived.
    pub arrivals: Vec<PodUid>,
}

/// What housekeeping does about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chore {
    /// The worker is finished and its UID may be used again.
    ForgetWorker(PodUid),
    /// The worker's pod is gone from its source: stop it.
    KillWorker(PodUid),
    /// The worker does not know yet what is desired.
    UpdateWorker(PodUid),
    /// The worker does not know yet that its pod makes room.
    PreemptWorker(PodUid),
    /// Desired and active, but nobody drives it.
    CreateWorker(PodUid),
    /// Terminal and deleted, but never had a worker: let one finish it.
    FinishPod(PodUid),
    /// Runs, but neither desired nor driven: kill with grace 1, after a fresh look at the runtime.
    KillRuntimeOrphan(PodUid),
    /// The static pod may start: its full name is free.
    GrantStart(PodUid),
    /// Nobody knows the pod any more: remove its directory.
    RemovePodDir(PodUid),
    /// Nobody drives the pod any more: remove its cgroup.
    RemoveCgroup(PodUid),
    /// As above, but volumes are still there: only take its cpu away.
    ThrottleCgroup(PodUid),
}

impl Chore {
    /// Whom it is about.
    pub(crate) fn uid(&self) -> &PodUid {
        match self {
            Chore::ForgetWorker(uid)
            | Chore::KillWorker(uid)
            | Chore::UpdateWorker(uid)
            | Chore::PreemptWorker(uid)
            | Chore::CreateWorker(uid)
            | Chore::FinishPod(uid)
            | Chore::KillRuntimeOrphan(uid)
            | Chore::GrantStart(uid)
            | Chore::RemovePodDir(uid)
            | Chore::RemoveCgroup(uid)
            | Chore::ThrottleCgroup(uid) => uid,
        }
    }
}

/// Decides every chore. Idempotent: chores that were done are not asked for again once the boards show it.
pub fn chores(world: &World) -> Vec<Chore> {
    let mut out = Vec::new();
    worker_chores(world, &mut out);
    missing_workers(world, &mut out);
    runtime_orphans(world, &mut out);
    out.extend(grants(world).into_iter().map(Chore::GrantStart));
    leftovers(world, &mut out);
    out
}

fn worker_chores(world: &World, out: &mut Vec<Chore>) {
    for (uid, worker) in &world.workers {
        let desired = world.desired.get(uid);
        let orphan = desired.is_none();
        let again = desired.is_some_and(|d| d.restart_requested);
        if worker.phase == WorkerPhase::Finished {
            if orphan || again {
                out.push(Chore::ForgetWorker(uid.clone()));
            }
            continue;
        }
        if orphan && !worker.deleted {
            out.push(Chore::KillWorker(uid.clone()));
        }
        // What is desired again comes to a worker of its own.
        if desired.is_some_and(|d| d.changed && !again) {
            out.push(Chore::UpdateWorker(uid.clone()));
        }
        if desired.is_some_and(|d| d.preempted) && !worker.termination_requested {
            out.push(Chore::PreemptWorker(uid.clone()));
        }
    }
}

fn missing_workers(world: &World, out: &mut Vec<Chore>) {
    for (uid, pod) in &world.desired {
        if world.workers.contains_key(uid) {
            continue;
        }
        let in_runtime = world.runtime.get(uid).copied().unwrap_or(false);
        if pod.undecided {
            continue;
        }
        if !pod.terminal && !pod.rejected {
            out.push(Chore::CreateWorker(uid.clone()));
        } else if pod.deleting && !in_runtime {
            out.push(Chore::FinishPod(uid.clone()));
        }
    }
}

fn runtime_orphans(world: &World, out: &mut Vec<Chore>) {
    for (uid, alive) in &world.runtime {
        let desired_and_active = world.desired.get(uid).is_some_and(|d| !d.rejected && !d.terminal);
        if *alive && !world.workers.contains_key(uid) && !desired_and_active {
            out.push(Chore::KillRuntimeOrphan(uid.clone()));
        }
    }
}

/// One UID of a full name runs at a time; the first to arrive that is not being stopped is next.
fn grants(world: &World) -> Vec<PodUid> {
    let name_of = |uid: &PodUid| {
        let from_worker = world.workers.get(uid).and_then(|w| w.pod.as_deref()).map(model::pod::full_name);
        from_worker.or_else(|| world.desired.get(uid).map(|d| d.full_name.clone())).unwrap_or_default()
    };
    let mut taken: BTreeSet<String> = world
        .workers
        .iter()
        .filter(|(_, w)| w.phase > WorkerPhase::Waiting && w.phase < WorkerPhase::Finished)
        .map(|(uid, _)| name_of(uid))
        .collect();
    let mut granted = Vec::new();
    for uid in &world.arrivals {
        // A worker that was just made has no row yet; it is granted what it will wait for.
        let fresh = world.desired.get(uid).is_some_and(|d| !d.rejected && !d.terminal);
        let waits =
            world.workers.get(uid).map_or(fresh, |w| w.phase == WorkerPhase::Waiting && !w.termination_requested);
        if waits && taken.insert(name_of(uid)) {
            granted.push(uid.clone());
        }
    }
    granted
}

fn leftovers(world: &World, out: &mut Vec<Chore>) {
    let may_run = |uid: &PodUid| world.workers.get(uid).is_some_and(|w| w.phase < WorkerPhase::Terminated);
    for uid in &world.cgroups {
        let being_removed = world.workers.get(uid).is_some_and(|w| w.phase == WorkerPhase::Terminated);
        let wanted = world.desired.get(uid).is_some_and(|d| !d.rejected && !d.terminal);
        let alive = world.runtime.get(uid).copied().unwrap_or(false);
        if may_run(uid) || being_removed || (wanted && !world.workers.contains_key(uid)) || alive {
            continue;
        }
        let mounted = world.directories.get(uid).copied().unwrap_or(false);
        out.push(if mounted { Chore::ThrottleCgroup(uid.clone()) } else { Chore::RemoveCgroup(uid.clone()) });
    }
    for uid in world.directories.keys() {
        let known = world.desired.contains_key(uid) || world.workers.contains_key(uid);
        let alive = world.runtime.get(uid).copied().unwrap_or(false);
        if !known && !alive {
            out.push(Chore::RemovePodDir(uid.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
