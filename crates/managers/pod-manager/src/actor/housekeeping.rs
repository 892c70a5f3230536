//! A round of housekeeping: what the boards show against what should be, and what is done about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use contract::cgroup::PodCgroupRow;
use contract::config_sources::Source;
use contract::pod_worker::{KillRequest, UpdateKind, WorkerState};
use contract::probe::RetainProbes;
use contract::status::RetainPodStatuses;
use contract::volume::PodVolumes;
use model::core::Pod;
use model::runtime::PodObservation;
use model::{PodUid, Timestamp};

use super::PodManager;
use crate::desired::is_acted_on;
use crate::garbage;
use crate::housekeeping::{self, Chore, DesiredFacts, Done, Scope, Situation, Stray, chores};

/// Changes that come within this time are answered by one round of housekeeping.
const SETTLE: Duration = Duration::from_millis(5);
/// A retired worker leaves dead containers behind: they are collected after this time, together with those of others.
const EARLY_GC: Duration = Duration::from_secs(1);

impl PodManager {
    pub(super) fn schedule_housekeeping(&mut self, ctx: &mut Ctx<Self>) {
        if self.housekeeping.schedule() {
            ctx.after(SETTLE, |act, ctx| act.run_housekeeping(ctx));
        }
    }

    /// A period is over: what was not done yet is tried again.
    pub(super) fn repeat_housekeeping(&mut self, ctx: &mut Ctx<Self>) {
        self.housekeeping.tell_orphans();
        self.housekeeping.attention.touch_open();
        self.run_housekeeping(ctx);
    }

    /// Looks at the pods of which something changed.
    pub(super) fn run_housekeeping(&mut self, ctx: &mut Ctx<Self>) {
        self.housekeeping.begin();
        ctx.fault_point("housekeeping");
        self.start_preemptors(ctx);
        self.decide_left_undecided(ctx);
        self.retry_resizes("pod_terminated", ctx);
        self.note_actuated(ctx);
        let ready = self.all_sources_ready();
        let (scope, strays) = self.scope();
        let chores = if scope.is_empty() { Vec::new() } else { chores(&self.situation(&scope, strays)) };
        for chore in chores {
            self.housekeeping.attention.keep_open(chore.uid().clone());
            // Before all sources have delivered only the desired pods are served; nothing unknown is touched.
            if ready || chore.is_for_desired() {
                // One that is set aside stays open.
                let uid = chore.uid().clone();
                ctx.for_subject(uid.as_str(), |ctx| self.do_chore(chore, ctx));
            }
        }
        if ready {
            self.retain(&scope);
        }
        self.release_objects(&scope, ctx);
        self.sync_mirrors(&scope, ctx);
    }

    /// What the next round looks at: with a pod those of its name, which take turns with it. And the strays among them.
    fn scope(&mut self) -> (Scope, BTreeMap<PodUid, Stray>) {
        let delivered = self.desired.delivered();
        let mut scope = self.housekeeping.attention.take(&self.tools.crew, delivered);
        let mut strays = self.strays(&scope);
        for (uid, stray) in &strays {
            self.desired.know_name(uid, stray.full_name.clone());
        }
        if let Scope::Of(uids) = &mut scope {
            let names = self.desired.names();
            let namesakes = uids.iter().filter_map(|uid| names.of(uid)).flat_map(|name| names.all_of(name));
            let namesakes: BTreeSet<PodUid> = namesakes.filter(|uid| !uids.contains(*uid)).cloned().collect();
            uids.extend(namesakes.iter().cloned());
            strays.extend(self.strays(&Scope::Of(namesakes)));
            uids.iter().for_each(|uid| self.forget_stray(uid));
        }
        (scope, strays)
    }

    /// Static pods that run and that no source has: while they run, others of their name wait.
    fn strays(&self, scope: &Scope) -> BTreeMap<PodUid, Stray> {
        scope
            .rows(&self.tools.observed)
            .into_iter()
            .filter_map(|(uid, row)| self.stray(&row.pod).map(|s| (uid, s)))
            .collect()
    }

    fn stray(&self, pod: &PodObservation) -> Option<Stray> {
        let source = pod.sandbox().map_or("", |s| s.config_source.as_str());
        let of = [Source::File, Source::Http].into_iter().find(|of| of.as_str() == source)?;
        let is_gone = self.desired.has_delivered(of) || !self.tools.config.sources.contains(&of);
        (pod.is_alive() && self.desired.pod(&pod.uid).is_none()).then(|| Stray { full_name: pod.full_name(), is_gone })
    }

    /// One that neither runs nor has a worker any more has no name, either.
    fn forget_stray(&mut self, uid: &PodUid) {
        let runs = || self.tools.observed.get(uid).is_some_and(|row| row.pod.is_alive());
        if self.desired.names().of(uid).is_some() && !self.is_known(uid) && !runs() {
            self.desired.leave(uid);
        }
    }

    /// cgroups are read before desired pods, so that a pod which appears in between is not taken for an orphan.
    fn situation(&self, scope: &Scope, strays: BTreeMap<PodUid, Stray>) -> Situation {
        let cgroups = scope.rows(&self.tools.crew.board::<PodCgroupRow>()).into_keys().collect();
        let runtime = scope.rows(&self.tools.observed);
        let directories = scope.rows(&self.tools.crew.board::<PodVolumes>());
        let workers = scope.rows(&self.tools.workers);
        let names = self.desired.names();
        let arrivals = match scope {
            Scope::All => names.arrivals().cloned().collect(),
            Scope::Of(uids) => {
                let mut of_scope: BTreeSet<&String> = BTreeSet::new();
                of_scope.extend(uids.iter().filter_map(|uid| names.of(uid)));
                of_scope.into_iter().flat_map(|name| names.arrivals_of(name)).cloned().collect()
            }
        };
        Situation {
            desired: self.desired_facts(scope, &workers),
            workers,
            runtime: runtime.into_iter().map(|(uid, row)| (uid, row.pod.is_alive())).collect(),
            cgroups,
            directories: directories.into_iter().map(|(uid, row)| (uid, !row.present.is_empty())).collect(),
            arrivals,
            strays,
        }
    }

    fn desired_facts(
        &self,
        scope: &Scope,
        workers: &BTreeMap<PodUid, Arc<WorkerState>>,
    ) -> BTreeMap<PodUid, DesiredFacts> {
        let acts_on = |uid: &PodUid| workers.get(uid).and_then(|w| Some((w.pod.as_ref()?, &w.pending)));
        let facts = |uid: &PodUid, pod: &Arc<Pod>| DesiredFacts {
            full_name: model::pod::full_name(pod),
            is_static: model::pod::is_static(pod),
            rejected: self.admission.is_rejected(uid),
            undecided: self.admission.is_pending(uid),
            terminal: model::pod::is_terminal(pod),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            restart_requested: self.workers.is_restart_requested(uid),
            changed: acts_on(uid)
                .is_some_and(|(known, pending)| !is_acted_on(known, pod) || *pending != self.desired.pending(uid)),
            preempted: self.admission.is_victim(uid) || self.desired.allocations.is_victim(uid),
            told: self.is_rejection_told(uid),
        };
        match scope {
            Scope::All => self.desired.iter().map(|(uid, pod)| (uid.clone(), facts(uid, pod))).collect(),
            Scope::Of(uids) => {
                uids.iter().filter_map(|uid| Some((uid.clone(), facts(uid, self.desired.pod(uid)?)))).collect()
            }
        }
    }

    fn do_chore(&mut self, chore: Chore, ctx: &mut Ctx<Self>) {
        match &chore {
            Chore::RetireWorker(uid) => self.retire_worker(uid, ctx),
            Chore::KillWorker(uid) => self.workers.kill_removed(uid, None),
            Chore::UpdateWorker(uid) => {
                let (pod, pending) = (self.desired.pod(uid).cloned(), self.desired.pending(uid));
                self.workers.update_with(uid, pod, pending, UpdateKind::Update);
            }
            Chore::PreemptWorker(uid) => self.workers.preempt(uid, self.desired.pod(uid).cloned()),
            Chore::CreateWorker(uid) => {
                if let Some(pod) = self.desired.pod(uid).cloned() {
                    self.start_pod(&pod, ctx);
                }
            }
            Chore::FinishPod(uid) => {
                let pod = self.desired.pod(uid).cloned().map(|pod| self.with_final_status(pod));
                let request = KillRequest { deleted: true, ..KillRequest::default() };
                self.workers.start(uid, pod, UpdateKind::Kill(request));
            }
            Chore::GrantStart(uid) => self.workers.grant_start(uid),
            Chore::TellRejection(uid) => self.tell_rejection(uid),
            Chore::KillRuntimeOrphan(_)
            | Chore::KillStray(_)
            | Chore::RemovePodDir(_)
            | Chore::RemoveCgroup(_)
            | Chore::ThrottleCgroup(_) => self.run_chore(chore, ctx),
        }
    }

    /// Chores that ask others run beside the actor's turns.
    fn run_chore(&mut self, chore: Chore, ctx: &mut Ctx<Self>) {
        if !self.housekeeping.begin_chore(&chore) {
            return;
        }
        let crew = self.tools.crew.clone();
        let job = chore.clone();
        ctx.run(async move { housekeeping::run(&crew, &job).await }, move |act, outcome, _ctx| {
            act.housekeeping.end_chore(&chore, outcome.is_ok());
            match outcome {
                Ok(Done::Nothing) => {}
                Ok(Done::StartKillingOrphan(uid)) => act.kill_orphan(&uid),
                Err(e) => tracing::warn!(?chore, error = %e, "housekeeping did not succeed, next round tries again"),
            }
        });
    }

    fn kill_orphan(&mut self, uid: &PodUid) {
        // One that was told already may have died over it: what it has not shown is said again.
        if self.workers.row(uid).is_some() {
            return;
        }
        match (self.desired.pod(uid).cloned(), self.admission.rejection(uid).cloned()) {
            (Some(_), None) => {}
            (Some(pod), Some((reason, message))) => {
                tracing::info!(%uid, reason, "stopping a pod that ran before and is refused now");
                let reason = Some((reason, pod_status::patch::rejection_message(&message)));
                let request = KillRequest { reason, ..KillRequest::default() };
                self.workers.start(uid, Some(pod), UpdateKind::Kill(request));
            }
            (None, _) => {
                tracing::info!(%uid, "stopping a pod that no source knows");
                if !self.workers.made().contains(uid) {
                    metrics::pods::ORPHANED_RUNTIME_PODS.inc();
                }
                let request = KillRequest { grace_s: Some(1), deleted: true, ..KillRequest::default() };
                self.workers.start(uid, None, UpdateKind::Kill(request));
            }
        }
    }

    fn retire_worker(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if !self.workers.retire(uid) {
            return;
        }
        // A static pod that ran to its end is remembered as long as its manifest is there. One that comes again begins anew.
        self.tools.deps.journal.put_soon(&garbage::worker_line(uid), None);
        self.leave(uid);
        self.schedule_housekeeping(ctx);
        if self.garbage.schedule() {
            ctx.after(EARLY_GC, |act, ctx| act.collect_garbage(ctx));
        }
    }

    /// The pod has no worker any more. Unless it is desired again its name is forgotten, which those wait for that have it too.
    pub(super) fn leave(&mut self, uid: &PodUid) {
        let names = self.desired.names();
        self.housekeeping.attention.touch(uid);
        if let Some(name) = names.of(uid) {
            names.all_of(name).for_each(|uid| self.housekeeping.attention.touch(uid));
            self.mirrors_changed.extend(Some(name.clone()).filter(|name| self.mirrors.has(name)));
        }
        self.desired.leave(uid);
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
        self.housekeeping.repeat_retained();
        self.housekeeping.attention.touch(uid);
        self.schedule_housekeeping(ctx);
        true
    }

    fn known(&self) -> BTreeSet<PodUid> {
        self.desired.uids().chain(self.workers.made().iter().cloned()).collect()
    }

    fn is_known(&self, uid: &PodUid) -> bool {
        self.desired.pod(uid).is_some() || self.workers.made().contains(uid)
    }

    /// Tells StatusManager and ProbeManager which pods still exist, when one has gone.
    fn retain(&mut self, scope: &Scope) {
        // A message may be lost with whoever dies over it: what is still on the board is asked away again.
        let is_left = |uid: &PodUid| {
            !self.is_known(uid) && (self.housekeeping.has_retained(uid) || self.tools.statuses.get(uid).is_some())
        };
        let left: Vec<PodUid> = match scope {
            Scope::Of(uids) => uids.iter().filter(|uid| is_left(uid)).cloned().collect(),
            Scope::All => self.tools.statuses.snapshot().into_keys().filter(is_left).collect(),
        };
        if left.is_empty() && !self.housekeeping.must_retain_again() && *scope != Scope::All {
            return;
        }
        left.into_iter().for_each(|uid| self.housekeeping.attention.keep_open(uid));
        let known = self.known();
        let status = self.tools.crew.tell(RetainPodStatuses { known: known.clone() });
        let probes = self.tools.crew.tell(RetainProbes { known: known.clone() });
        if status.is_ok() && probes.is_ok() {
            self.housekeeping.set_retained(known);
        }
    }

    /// Now and then everything is compared, whatever changed.
    pub(super) fn audit(&mut self, ctx: &mut Ctx<Self>) {
        self.housekeeping.repeat_retained();
        self.housekeeping.attention.touch_all();
        self.collect_garbage(ctx);
    }

    fn collect_garbage(&mut self, ctx: &mut Ctx<Self>) {
        if !self.garbage.begin() {
            return;
        }
        let round = trace::whole("Containers/GarbageCollect", self.garbage_round(false, ctx).run());
        ctx.run(round, |act, (), _ctx| act.garbage.end());
    }

    pub(super) fn garbage_round(&self, thorough: bool, ctx: &Ctx<Self>) -> garbage::Round {
        garbage::Round {
            tools: self.tools.clone(),
            desired: self.desired.uids().collect(),
            sources_ready: self.all_sources_ready(),
            thorough,
            now: Timestamp(ctx.clock().unix_nanos()),
            effects: ctx.effects(),
        }
    }
}
