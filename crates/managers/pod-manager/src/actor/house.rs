//! Housekeeping: what the boards show against what should be, and what is done about it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actor::Ctx;
use contract::cgroup::PodCgroupRow;
use contract::pod_worker::{GrantStart, KillRequest, RetireWorker, UpdateKind, WorkerState};
use contract::probe::RetainProbes;
use contract::status::RetainPodStatuses;
use contract::volume::PodVolumes;
use model::core::Pod;
use model::{PodUid, Timestamp};
use std::sync::Arc;

use super::{PodManager, is_terminal};
use crate::effects;
use crate::housekeeping::{Chore, DesiredFacts, World, chores};
use crate::merge::is_acted_on;

impl PodManager {
    pub(crate) fn keep_house(&mut self, ctx: &mut Ctx<Self>) {
        self.housekeeping_due = false;
        ctx.fault_point("housekeeping");
        self.let_go(ctx);
        let world = self.look();
        let ready = self.all_sources_ready();
        for chore in chores(&world) {
            // Before all sources have spoken only the desired pods are served; nothing unknown is touched.
            if ready || matches!(chore, Chore::GrantStart(_) | Chore::CreateWorker(_) | Chore::UpdateWorker(_)) {
                // One that is set aside stands on the boards still, and comes again with the next round.
                let uid = chore.uid().clone();
                ctx.for_subject(uid.as_str(), |ctx| self.do_chore(chore, ctx));
            }
        }
        if ready {
            self.retain();
        }
        self.release_objects(ctx);
        self.keep_mirrors(ctx);
    }

    /// cgroups are read before desired pods, so that a pod which appears in between is not taken for an orphan.
    fn look(&self) -> World {
        let cgroups = self.tools.crew.board::<PodCgroupRow>().snapshot().into_keys().collect();
        let runtime = self.tools.observed.snapshot();
        let directories = self.tools.crew.board::<PodVolumes>().snapshot();
        let workers = self.tools.workers.snapshot();
        World {
            desired: self.desired_facts(&workers),
            workers,
            runtime: runtime.into_iter().map(|(uid, row)| (uid, row.pod.is_alive())).collect(),
            cgroups,
            directories: directories.into_iter().map(|(uid, row)| (uid, !row.present.is_empty())).collect(),
            arrivals: self.arrivals.clone(),
        }
    }

    fn desired_facts(&self, workers: &BTreeMap<PodUid, Arc<WorkerState>>) -> BTreeMap<PodUid, DesiredFacts> {
        let acts_on = |uid: &PodUid| workers.get(uid).and_then(|w| w.pod.as_ref());
        let facts = |uid: &PodUid, pod: &Arc<Pod>| DesiredFacts {
            full_name: model::pod::full_name(pod),
            is_static: model::pod::is_static(pod),
            rejected: self.rejected.contains_key(uid),
            undecided: self.held_back.contains_key(uid),
            terminal: is_terminal(pod),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            restart_requested: self.restart_requested.contains(uid),
            changed: acts_on(uid).is_some_and(|known| !is_acted_on(known, pod)),
            preempted: self.is_victim(uid),
        };
        self.desired.values().flatten().map(|(uid, pod)| (uid.clone(), facts(uid, pod))).collect()
    }

    fn do_chore(&mut self, chore: Chore, ctx: &mut Ctx<Self>) {
        match &chore {
            Chore::ForgetWorker(uid) => self.forget_worker(uid, ctx),
            Chore::KillWorker(uid) => self.kill_removed(uid, None),
            Chore::UpdateWorker(uid) => {
                let pod = self.pod(uid).cloned();
                self.tell(uid, pod, UpdateKind::Update);
            }
            Chore::PreemptWorker(uid) => self.kill_victim(uid),
            Chore::CreateWorker(uid) => {
                if let Some(pod) = self.pod(uid).cloned() {
                    self.begin(&pod, ctx);
                }
            }
            Chore::FinishPod(uid) => {
                let pod = self.pod(uid).cloned().map(|pod| self.with_last_word(pod));
                let request = KillRequest { deleted: true, ..KillRequest::default() };
                self.start_worker(uid, pod, UpdateKind::Kill(request));
            }
            Chore::GrantStart(uid) => {
                if self.has_worker(uid)
                    && let Err(e) = self.tools.crew.tell(GrantStart { uid: uid.clone() })
                {
                    tracing::debug!(%uid, error = %e, "start not granted yet, next round tries again");
                }
            }
            Chore::KillRuntimeOrphan(_)
            | Chore::RemovePodDir(_)
            | Chore::RemoveCgroup(_)
            | Chore::ThrottleCgroup(_) => {
                self.run_chore(chore, ctx);
            }
        }
    }

    /// Chores that ask others run beside the actor's turns, each at most once at a time.
    fn run_chore(&mut self, chore: Chore, ctx: &mut Ctx<Self>) {
        if !self.running.insert(chore.clone()) {
            return;
        }
        let crew = self.tools.crew.clone();
        let job = chore.clone();
        ctx.run(async move { effects::chore(&crew, &job).await }, move |act, outcome, _ctx| {
            act.running.remove(&chore);
            match outcome {
                Ok(effects::Done::Nothing) => {}
                Ok(effects::Done::StartKillingOrphan(uid)) => act.kill_orphan(&uid),
                Err(e) => tracing::warn!(?chore, error = %e, "housekeeping did not succeed, next round tries again"),
            }
        });
    }

    fn kill_orphan(&mut self, uid: &PodUid) {
        let nobody = self.pod(uid).is_none_or(|_| self.rejected.contains_key(uid)) && !self.driven.contains(uid);
        if nobody {
            tracing::info!(%uid, "stopping a pod that no source knows");
            metrics::pods::ORPHANED_RUNTIME_PODS.inc();
            let request = KillRequest { grace_s: Some(1), deleted: true, ..KillRequest::default() };
            self.start_worker(uid, None, UpdateKind::Kill(request));
        }
    }

    fn forget_worker(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if let Err(e) = self.tools.crew.tell(RetireWorker { uid: uid.clone() }) {
            return tracing::warn!(%uid, error = %e, "the worker is not retired yet, next round tries again");
        }
        self.driven.remove(uid);
        self.restart_requested.remove(uid);
        if self.pod(uid).is_none() {
            self.arrivals.retain(|u| u != uid);
        }
        self.keep_house_soon(ctx);
        if !std::mem::replace(&mut self.gc_wanted, true) {
            ctx.after(Duration::from_secs(1), |act, ctx| act.collect_garbage(ctx));
        }
    }

    /// A static pod whose UID runs again begins without the status of its first life. Answers whether that is still there.
    pub(super) fn end_first_life(&mut self, pod: &Pod, ctx: &mut Ctx<Self>) -> bool {
        let uid = &model::pod::uid(pod);
        if !model::pod::is_static(pod) || self.tools.statuses.get(uid).is_none_or(|row| !row.finished) {
            return false;
        }
        let mut known = self.known();
        known.remove(uid);
        if let Err(e) = self.tools.crew.tell(RetainPodStatuses { known }) {
            tracing::warn!(%uid, error = %e, "the status of the pod's first life is not dropped yet");
        }
        self.retained.clear();
        self.keep_house_soon(ctx);
        true
    }

    fn known(&self) -> BTreeSet<PodUid> {
        let mut known: BTreeSet<PodUid> = self.desired.values().flat_map(|pods| pods.keys().cloned()).collect();
        known.extend(self.driven.iter().cloned());
        known
    }

    /// Tells Status- and ProbeManager which pods still exist, when that changed.
    fn retain(&mut self) {
        let known = self.known();
        // A message may be lost with whoever dies over it: what is still on the board is asked away again.
        let left = || self.tools.statuses.snapshot().into_keys().any(|uid| !known.contains(&uid));
        if known == self.retained && !left() {
            return;
        }
        let status = self.tools.crew.tell(RetainPodStatuses { known: known.clone() });
        let probes = self.tools.crew.tell(RetainProbes { known: known.clone() });
        if status.is_ok() && probes.is_ok() {
            self.retained = known;
        }
    }

    pub(super) fn collect_garbage(&mut self, ctx: &mut Ctx<Self>) {
        self.gc_wanted = false;
        // Said again now and then, as nobody tells whether it was heard.
        self.retained.clear();
        if std::mem::replace(&mut self.gc_running, true) {
            return;
        }
        let round = effects::GcRound {
            tools: self.tools.clone(),
            desired: self.desired.values().flat_map(|pods| pods.keys().cloned()).collect(),
            sources_ready: self.all_sources_ready(),
            now: Timestamp(ctx.clock().unix_nanos()),
            effects: ctx.effects(),
        };
        ctx.run(round.run(), |act, (), _ctx| act.gc_running = false);
    }
}
