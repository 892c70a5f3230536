//! May a new pod run beside those that are here (pod-lifecycle 1.10, 1.11)?

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use contract::config_sources::Source;
use contract::node::{NodeOrigin, NodeView};
use contract::pod_worker::{KillRequest, UpdateKind, WorkerPhase};
use contract::status::SetPodStatus;
use metrics::actors::Phase;
use metrics::pods;
use model::core::{Container, Node, Pod};
use model::event::EventType;
use model::restart::restarts_after_exit;
use model::runtime::{ContainerState, PodObservation};
use model::{PodUid, Timestamp};
use pod_admission::{NodeFacts, PREEMPTED, PREEMPTING, Pressure, Verdict};
use ports::api::ApiExt;

use crate::actor::PodManager;
use crate::merge::Change;

/// A pod for which others are stopped waits at least this long for them.
const MIN_WAIT: Duration = Duration::from_secs(10);

/// Why an admitted or undecided pod has no worker yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeldBack {
    /// The Node is read once more, since only its labels stand in the way.
    ReadsNode,
    /// Others are stopped first.
    Preempts {
        victims: BTreeSet<PodUid>,
        /// Starts then in any case.
        until: Timestamp,
    },
}

impl PodManager {
    /// Of new pods those that run already come first, in case not all fit any more: after a restart of the daemon every pod
    /// is new, and a running one must not make room for one that does not run.
    pub(crate) fn put_in_order(&self, changes: &mut [Change]) {
        changes.sort_by_key(|change| match change {
            Change::Remove(_) => 0,
            Change::Add(pod) => {
                let row = self.tools.observed.get(&model::pod::uid(pod));
                if row.is_some_and(|row| row.pod.is_alive()) { 1 } else { 2 }
            }
            Change::Update(_) | Change::Delete(_) | Change::Reconcile(_) => 3,
        });
    }

    /// LIFE-OF-A-POD 3/12: admission, against the pods that are active now. Answers whether the pod may start at once.
    pub(crate) fn admit(&mut self, source: Source, pod: &Arc<Pod>, fresh: Option<Node>, ctx: &mut Ctx<Self>) -> bool {
        let uid = model::pod::uid(pod);
        if self.is_over(&uid, pod) {
            // It ran in an earlier life of the daemon, and takes no room.
            return true;
        }
        let view = self.tools.node.get();
        let may_read = fresh.is_none() && view.api_uid().is_some();
        let facts = facts(&self.tools.deps.facts, &view, fresh.as_ref());
        let others = self.desired.values().flatten().filter(|(other, _)| **other != uid);
        let active: Vec<&Pod> =
            others.filter(|(other, pod)| self.is_active(other, pod)).map(|(_, pod)| &**pod).collect();
        let watch = metrics::Stopwatch::start();
        let verdict = pod_admission::decide(pod, active.into_iter(), &facts);
        Phase::Admit.took(watch.elapsed());
        match verdict {
            Verdict::Admit => true,
            Verdict::Reject(why) if why.with_fresh_node && may_read => {
                self.held_back.insert(uid.clone(), HeldBack::ReadsNode);
                self.read_node(source, uid, facts.name, ctx);
                false
            }
            Verdict::Reject(why) => {
                let rejection = (why.reason, why.message);
                self.reject(pod, &rejection);
                self.rejected.insert(uid, rejection);
                false
            }
            Verdict::Preempt { victims } => {
                self.preempt(uid, victims, ctx);
                false
            }
        }
    }

    /// Reads the Node past all caches; then the pod is decided about for good.
    fn read_node(&mut self, source: Source, uid: PodUid, name: String, ctx: &mut Ctx<Self>) {
        let api = self.tools.deps.api.clone();
        let read = async move {
            match api {
                Some(api) => api.get::<Node>(None, &name).await.ok(),
                None => None,
            }
        };
        ctx.run(read, move |act, node, ctx| {
            if act.held_back.get(&uid) != Some(&HeldBack::ReadsNode) {
                return;
            }
            act.held_back.remove(&uid);
            let Some(pod) = act.pod(&uid).cloned() else { return };
            // Without a fresh one the known one decides.
            let node = node.unwrap_or_else(|| act.tools.node.get().node.as_deref().cloned().unwrap_or_default());
            let starts = act.admit(source, &pod, Some(node), ctx);
            act.post(source, &pod);
            if starts {
                act.begin(&pod, ctx);
            }
        });
    }

    /// Stops the victims; the pod starts when they are gone, or when that takes too long.
    fn preempt(&mut self, uid: PodUid, victims: Vec<PodUid>, ctx: &mut Ctx<Self>) {
        let mut wait = MIN_WAIT;
        for victim in &victims {
            let Some(pod) = self.pod(victim).cloned() else { continue };
            self.emit(&pod, EventType::Warning, PREEMPTING, PREEMPTED.to_owned());
            // Which resource was short is not told by the decision.
            pods::PREEMPTIONS.with_label_values(&[""]).inc();
            let grace = model::pod::spec_grace_seconds(&pod).and_then(|s| u64::try_from(s).ok()).unwrap_or(0);
            wait = wait.max(Duration::from_secs(grace).mul_f64(1.5));
            self.kill_victim(victim);
        }
        let until = Timestamp(ctx.clock().unix_nanos()).plus(wait);
        self.held_back.insert(uid, HeldBack::Preempts { victims: victims.into_iter().collect(), until });
        ctx.after(wait, |act, ctx| act.keep_house(ctx));
    }

    pub(crate) fn kill_victim(&mut self, victim: &PodUid) {
        let reason = Some((PREEMPTING.to_owned(), PREEMPTED.to_owned()));
        let request = KillRequest { evicted: true, reason, ..KillRequest::default() };
        let pod = self.pod(victim).cloned();
        self.tell(victim, pod, UpdateKind::Kill(request));
    }

    /// A pod waits for this one to be gone.
    pub(crate) fn is_victim(&self, uid: &PodUid) -> bool {
        let waits_for = |held: &HeldBack| matches!(held, HeldBack::Preempts { victims, .. } if victims.contains(uid));
        self.held_back.values().any(waits_for)
    }

    /// Starts pods whose victims are gone.
    pub(crate) fn let_go(&mut self, ctx: &mut Ctx<Self>) {
        let now = Timestamp(ctx.clock().unix_nanos());
        let gone = |uid: &PodUid| self.tools.workers.get(uid).is_none_or(|w| w.phase >= WorkerPhase::Terminated);
        let free: Vec<PodUid> = self
            .held_back
            .iter()
            .filter(|(_, held)| match held {
                HeldBack::ReadsNode => false,
                HeldBack::Preempts { victims, until } => *until <= now || victims.iter().all(gone),
            })
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in free {
            let held = self.held_back.remove(&uid);
            self.tell_of_late(held.as_ref());
            if let Some(pod) = self.pod(&uid).cloned() {
                self.begin(&pod, ctx);
            }
        }
    }

    /// Victims that are still there when their time is up.
    fn tell_of_late(&self, held: Option<&HeldBack>) {
        let Some(HeldBack::Preempts { victims, .. }) = held else { return };
        for victim in victims {
            let late = self.tools.workers.get(victim).is_some_and(|w| w.phase < WorkerPhase::Terminated);
            if let Some(pod) = self.pod(victim).filter(|_| late) {
                let text = "Container runtime did not kill the pod within specified grace period.";
                self.emit(pod, EventType::Warning, "ExceededGracePeriod", text.to_owned());
            }
        }
    }

    /// Has a worker (which may be too new to be on the board), or will have one, and may still run.
    fn is_active(&self, uid: &PodUid, pod: &Pod) -> bool {
        let ended = self.tools.workers.get(uid).is_some_and(|w| w.phase >= WorkerPhase::Terminated);
        let comes = matches!(self.held_back.get(uid), Some(HeldBack::Preempts { .. }));
        let driven = self.driven.contains(uid) || comes;
        driven && !self.rejected.contains_key(uid) && !ended && !self.is_over(uid, pod)
    }

    fn is_over(&self, uid: &PodUid, pod: &Pod) -> bool {
        self.tools.observed.get(uid).is_some_and(|row| has_run_to_end(pod, &row.pod))
    }

    fn reject(&self, pod: &Arc<Pod>, (reason, message): &(String, String)) {
        tracing::warn!(pod = %model::pod::describe(pod), reason, message, "pod rejected");
        pods::ADMISSION_REJECTIONS.with_label_values(&[pods::rejection_reason(reason)]).inc();
        self.emit(pod, EventType::Warning, reason.clone(), message.clone());
        let status = pod_status::patch::rejected(pod, reason, message);
        if let Err(e) = self.tools.crew.tell(SetPodStatus { pod: pod.clone(), status }) {
            tracing::warn!(pod = %model::pod::describe(pod), error = %e, "status of the rejected pod is not stored");
        }
    }
}

/// The node as admission shall see it: what this machine knows of itself first, then what its Node object adds (labels,
/// taints, resources that others put there).
#[must_use]
pub fn facts(own: &NodeFacts, view: &NodeView, fresh: Option<&Node>) -> NodeFacts {
    let mut out = own.clone();
    if let Some(node) = fresh.or(view.node.as_deref()) {
        let said = NodeFacts::from_node(node);
        out.labels = said.labels;
        out.taints = said.taints;
        for (name, amount) in said.allocatable {
            out.allocatable.entry(name).or_insert(amount);
        }
        if !said.name.is_empty() {
            out.name = said.name;
        }
        out.kernel = own.kernel.or(said.kernel);
        out.supplemental_groups_policy |= said.supplemental_groups_policy;
        if !said.runtime_handlers.is_empty() {
            out.runtime_handlers = said.runtime_handlers;
        }
        out.declared_features = said.declared_features.or(out.declared_features);
    }
    if view.origin != NodeOrigin::Unknown {
        out.pressures =
            Pressure::ALL.into_iter().filter(|p| view.pressure.iter().any(|held| held == p.as_str())).collect();
    }
    out.shutting_down |= view.shutting_down;
    out
}

/// Whether nothing of this pod will run again, by what is left of it in the runtime: every container has ended and none is
/// started again.
fn has_run_to_end(pod: &Pod, observed: &PodObservation) -> bool {
    let containers = model::pod::regular_containers(pod);
    let over = |container: &Container| {
        observed.container(&container.name).is_some_and(|c| {
            c.state == ContainerState::Exited && !restarts_after_exit(pod, container, c.exit_code, true)
        })
    };
    // Rules of single containers may start them again.
    let plain = containers.iter().all(|c| c.restart_policy.is_none());
    plain && !observed.is_alive() && containers.iter().all(over)
}

#[cfg(test)]
mod tests;
