//! The actor: takes full sets in, admits pods and hands them to their workers.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Deferred, Handler, MessageResult, supervised};
use contract::Crew;
use contract::config_sources::Source;
use contract::pod_manager::{ChangePods, ChangesTaken, DesiredPod, KillPod, RemoveDeadContainers, SetPods};
use contract::pod_worker::UpdateKind;
use contract::status::StatusEntry;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp};

use crate::admission::{Admission, Pending, sort_for_admission};
use crate::allocation::Saving;
use crate::deps::{Config, Deps, Tools};
use crate::desired::{Change, DesiredPods, News};
use crate::garbage::GarbageCollection;
use crate::housekeeping::{Housekeeping, Scope};
use crate::mirrors::{MirrorPods, is_mirror_of};
use crate::workers::Workers;

mod admission;
mod housekeeping;
mod mirrors;
mod objects;
mod resize;

/// How often resizes that wait are tried without an occasion.
const RETRY_RESIZES: Duration = Duration::from_secs(3 * 60);

/// The actor.
#[derive(Debug)]
pub struct PodManager {
    tools: Arc<Tools>,
    desired: DesiredPods,
    admission: Admission,
    workers: Workers,
    mirrors: MirrorPods,
    /// Names of which a mirror pod, or the static pod, changed since mirror pods were compared.
    mirrors_changed: BTreeSet<String>,
    /// Pods whose objects are followed.
    objects_held: BTreeSet<PodUid>,
    housekeeping: Housekeeping,
    garbage: GarbageCollection,
    saving: Saving,
}

impl Actor for PodManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.recover();
        self.load_allocations(ctx);
        ctx.every(RETRY_RESIZES, |act, ctx| act.retry_resizes("periodic_retry", ctx));
        let (housekeeping, gc) = (self.tools.config.housekeeping, self.tools.config.gc_period);
        ctx.every(housekeeping, |act, ctx| act.repeat_housekeeping(ctx));
        ctx.every(gc, |act, ctx| act.audit(ctx));
        ctx.watch(self.tools.runtime.subscribe(), |act, _info, ctx| {
            act.take_postponed(ctx);
        });
        ctx.watch(self.tools.workers.changes(), |act, _version, ctx| act.schedule_housekeeping(ctx));
        if self.tools.deps.api.is_some() {
            ctx.watch(self.tools.node.subscribe(), |act, _node, ctx| act.sync_mirrors(&Scope::All, ctx));
        }
    }
}
supervised!(PodManager);

impl PodManager {
    /// A fresh instance; what it knew before is read back from the boards when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::PodManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            workers: Workers::new(crew.clone()),
            tools: Arc::new(Tools::new(crew, config, deps)),
            desired: DesiredPods::default(),
            admission: Admission::default(),
            mirrors: MirrorPods::default(),
            mirrors_changed: BTreeSet::new(),
            objects_held: BTreeSet::new(),
            housekeeping: Housekeeping::default(),
            garbage: GarbageCollection::default(),
            saving: Saving::default(),
        }
    }

    /// Nothing can be decided before it is known what runs already and whether there is a network (pod-lifecycle 1.2), and what
    /// pods were granted.
    fn is_ready_for_pods(&self) -> bool {
        self.tools.runtime_is_known() && self.saving.loaded.is_some()
    }

    fn take_postponed(&mut self, ctx: &mut Ctx<Self>) {
        if self.is_ready_for_pods() {
            for set in self.desired.postponed() {
                self.set_pods(set, ctx);
            }
        }
    }

    /// After a restart of the actor: desired pods and workers are on their boards. Sources count as delivered again only when
    /// they deliver again, so nothing unknown is touched before.
    fn recover(&mut self) {
        let rows = self.tools.rows.snapshot();
        let told = |row: &DesiredPod| row.wanted.as_ref().unwrap_or(&row.pod).clone();
        self.desired.recover(rows.values().map(|row| (row.source, told(row))));
        for (uid, row) in rows {
            if row.wanted.is_some() {
                let what = self.tools.config.resizable;
                self.desired.allocations.recover(uid.clone(), &row.pod, row.pending.clone(), what);
            }
            if let Some(rejection) = &row.rejected {
                self.admission.reject(uid.clone(), rejection.clone());
            } else if row.undecided {
                self.admission.wait(uid.clone(), Pending::LeftUndecided);
            }
            if let Some(mirror) = &row.mirror {
                self.mirrors.recover(mirror.clone());
            }
            if row.source == Source::Api {
                self.objects_held.insert(uid);
            }
        }
        self.workers.recover(|uid| self.desired.pod(uid).is_some());
        for worker in self.tools.workers.snapshot().values() {
            worker.pod.iter().for_each(|pod| self.desired.know(pod));
        }
        self.objects_held.extend(self.workers.made().iter().cloned());
    }

    fn all_sources_ready(&self) -> bool {
        self.desired.all_delivered(&self.tools.config.sources)
    }

    fn set_pods(&mut self, mut set: SetPods, ctx: &mut Ctx<Self>) {
        let source = set.source;
        if source == Source::Api {
            // Mirror pods stand for others; they never run.
            let (mirrors, pods) = set.pods.into_iter().partition(|pod| model::pod::is_mirror(pod));
            self.set_mirrors(mirrors);
            set.pods = pods;
        }
        let now = Timestamp(ctx.clock().unix_nanos());
        let news = self.desired.replace(set, now);
        self.take_in(source, news, ctx);
    }

    fn change_pods(&mut self, mut change: ChangePods, ctx: &mut Ctx<Self>) {
        let source = change.source;
        if source == Source::Api {
            let (mirrors, pods) = change.changed.into_iter().partition(|pod| model::pod::is_mirror(pod));
            change.changed = pods;
            self.change_mirrors(mirrors, &change.gone);
        }
        let now = Timestamp(ctx.clock().unix_nanos());
        let news = self.desired.change(change, now);
        self.take_in(source, news, ctx);
    }

    fn take_in(&mut self, source: Source, News { mut changes, duplicates, before }: News, ctx: &mut Ctx<Self>) {
        for pod in &duplicates {
            self.report_duplicate(source, pod);
        }
        let observed = &self.tools.observed;
        sort_for_admission(&mut changes, |uid| observed.get(uid).is_some_and(|row| row.pod.is_alive()));
        let trigger = trigger(&changes);
        // None of them is decided about beside what others of them only wish for.
        for change in &changes {
            self.hold_back(change, &before, ctx);
        }
        for change in changes {
            let uid = model::pod::uid(change.pod());
            self.housekeeping.attention.touch(&uid);
            if !ctx.for_subject(uid.as_str(), |ctx| self.apply(source, change, ctx)) {
                let before = before.get(&uid);
                self.desired.undo(source, uid, before);
            }
        }
        ctx.fault_point("merged");
        self.retry_resizes(trigger, ctx);
        self.repeat_grants(ctx);
        // At once: new static pods wait for the grant of their name.
        self.run_housekeeping(ctx);
    }

    fn report_duplicate(&self, source: Source, pod: &Pod) {
        let text = format!(
            "Error validating pod {} from {} due to duplicate pod name \"{}\", ignoring",
            model::pod::describe(pod),
            source.as_str(),
            model::pod::name(pod)
        );
        self.emit(pod, EventType::Warning, "FailedValidation", text);
    }

    fn apply(&mut self, source: Source, change: Change, ctx: &mut Ctx<Self>) {
        match change {
            Change::Add(pod) => self.add(source, pod, ctx),
            // Housekeeping, which follows, brings it to the pod's worker.
            Change::Update(pod) | Change::Delete(pod) | Change::Reconcile(pod) => self.post(source, &pod),
            Change::Remove(pod) => {
                let uid = model::pod::uid(&pod);
                self.tools.rows.remove(&uid);
                self.desired.allocations.forget(&uid);
                self.save_allocations_soon(ctx);
                self.admission.forget(&uid);
                self.workers.withdraw_restart(&uid);
                if self.all_sources_ready() {
                    self.workers.kill_removed(&uid, Some(pod));
                }
                if !self.workers.has(&uid) {
                    self.leave(&uid);
                }
            }
        }
    }

    /// LIFE-OF-A-POD 2/12: the pod joins the desired set and its worker is told.
    fn add(&mut self, source: Source, pod: Arc<Pod>, ctx: &mut Ctx<Self>) {
        let uid = model::pod::uid(&pod);
        self.desired.arrive(&pod);
        self.recall_allocation(&pod);
        let pod = self.desired.pod(&uid).cloned().unwrap_or(pod);
        if self.workers.row(&uid).is_some_and(|w| w.termination_requested) {
            let is_static = if model::pod::is_static(&pod) { "true" } else { "" };
            metrics::pods::RESTARTED.with_label_values(&[is_static]).inc();
            self.workers.request_restart(uid);
            return self.post(source, &pod);
        }
        self.decide(source, &pod, None, ctx);
    }

    /// The pod may start: it gets its worker.
    fn start_pod(&mut self, pod: &Arc<Pod>, ctx: &mut Ctx<Self>) {
        let uid = model::pod::uid(pod);
        if self.end_first_life(pod, ctx) {
            return;
        }
        self.hold_objects(pod);
        self.expect_volumes(pod);
        #[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
        metrics::pods::CONTAINERS_PER_POD.observe(model::pod::regular_containers(pod).len() as f64);
        let pod = self.with_final_status(pod.clone());
        let pending = self.desired.pending(&uid);
        self.workers.start_with(&uid, Some(pod), pending, UpdateKind::Create);
        self.save_allocations_soon(ctx);
    }

    /// A pod of the API that came to its end here does not run again, also when the API does not know it yet.
    fn with_final_status(&self, pod: Arc<Pod>) -> Arc<Pod> {
        match self.final_status(&pod) {
            Some(row) => Arc::new(Pod { status: Some((*row.status).clone()), ..(*pod).clone() }),
            None => self.with_mirror_status(pod),
        }
    }

    /// How a pod of the API ended that the API takes for one that runs.
    fn final_status(&self, pod: &Pod) -> Option<Arc<StatusEntry>> {
        let is_open = !model::pod::is_static(pod) && !model::pod::is_terminal(pod);
        let row = is_open.then(|| self.tools.statuses.get(&model::pod::uid(pod)))?;
        row.filter(|row| row.is_terminal())
    }

    /// By the API's word or this node's.
    fn has_ended(&self, pod: &Pod) -> bool {
        model::pod::is_terminal(pod) || self.final_status(pod).is_some()
    }

    /// A static pod that an earlier daemon left running goes on with the status that its mirror pod has in the API.
    fn with_mirror_status(&self, pod: Arc<Pod>) -> Arc<Pod> {
        let alive = || self.tools.observed.get(&model::pod::uid(&pod)).is_some_and(|row| row.pod.is_alive());
        let mirror = self.mirrors.of(&pod);
        match mirror.filter(|m| !model::pod::is_terminal(m) && is_mirror_of(m, &pod)) {
            Some(mirror) if model::pod::is_static(&pod) && alive() => {
                Arc::new(Pod { status: mirror.status.clone(), ..(*pod).clone() })
            }
            _ => pod,
        }
    }

    fn emit(&self, pod: &Pod, kind: EventType, reason: impl Into<Reason>, message: String) {
        let object = EventObject::Pod {
            namespace: model::pod::namespace(pod).to_owned(),
            name: model::pod::name(pod).to_owned(),
            uid: model::pod::uid(pod),
            field_path: String::new(),
        };
        self.tools.crew.emit(NodeEvent { kind, reason: reason.into(), message, object });
    }

    fn post(&self, source: Source, pod: &Arc<Pod>) {
        let uid = model::pod::uid(pod);
        let (undecided, rejected) = (self.admission.is_pending(&uid), self.admission.rejection(&uid).cloned());
        let mirror = self.mirrors.of(pod).filter(|_| source != Source::Api).cloned();
        let held = self.desired.allocations.get(&uid);
        let row = DesiredPod {
            pod: held.map_or(pod, |held| &held.acts_on).clone(),
            wanted: held.and_then(|_| self.desired.wanted(&uid).cloned()),
            pending: held.and_then(|held| held.pending.clone()),
            source,
            undecided,
            rejected,
            mirror,
        };
        self.tools.rows.post(uid, Arc::new(row));
    }
}

/// What metrics call the occasion on which resizes are tried again.
fn trigger(changes: &[Change]) -> &'static str {
    if changes.iter().any(|c| matches!(c, Change::Remove(_))) {
        "pods_removed"
    } else if changes.iter().any(|c| matches!(c, Change::Add(_))) {
        "pods_added"
    } else {
        "pod_updated"
    }
}

/// Reason of an event.
type Reason = Cow<'static, str>;

impl Handler<SetPods> for PodManager {
    type Result = ();

    fn handle(&mut self, set: SetPods, ctx: &mut Ctx<Self>) {
        if set.source == Source::Unknown {
            // Two sources that are not known here would take each other's pods away.
            tracing::error!(pods = set.pods.len(), "pods of a source that is not known here are not taken");
        } else if self.is_ready_for_pods() {
            self.set_pods(set, ctx);
        } else {
            self.desired.postpone(set);
        }
    }
}

impl Handler<ChangePods> for PodManager {
    type Result = MessageResult<ChangePods>;

    fn handle(&mut self, change: ChangePods, ctx: &mut Ctx<Self>) -> Self::Result {
        let answer = self.desired.expects(&change);
        if answer.is_none() {
            self.change_pods(change, ctx);
        }
        MessageResult(answer.unwrap_or(ChangesTaken::Taken))
    }
}

impl Handler<KillPod> for PodManager {
    type Result = bool;

    fn handle(&mut self, KillPod { uid, request }: KillPod, ctx: &mut Ctx<Self>) -> bool {
        ctx.fault_point("kill");
        self.workers.kill_early(&uid, self.desired.pod(&uid).cloned(), request)
    }
}

impl Handler<RemoveDeadContainers> for PodManager {
    type Result = Deferred<Self, ()>;

    // Beside a usual round: what both remove is removed once.
    fn handle(&mut self, _: RemoveDeadContainers, ctx: &mut Ctx<Self>) -> Self::Result {
        Deferred::new(self.garbage_round(true, ctx).run())
    }
}
