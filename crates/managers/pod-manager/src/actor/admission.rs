//! May a new pod run beside those that are here (pod-lifecycle 1.10, 1.11)?

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actor::Ctx;
use contract::config_sources::Source;
use contract::status::SetPodStatus;
use metrics::actors::Phase;
use metrics::pods;
use model::core::{Node, Pod};
use model::event::EventType;
use model::{PodUid, Timestamp};
use pod_admission::{PREEMPTED, PREEMPTING, Verdict};
use ports::api::ApiExt;

use super::PodManager;
use crate::admission::{Pending, Rejection, facts, has_run_to_end};
use crate::preemption::Preemption;

/// A pod for which others are stopped waits at least this long for them.
const MIN_WAIT: Duration = Duration::from_secs(10);

impl PodManager {
    /// Decides about a pod, says so on the board, and starts it when it may start at once. The board says it first: a pod
    /// that has a worker is never decided about again.
    pub(super) fn decide(&mut self, source: Source, pod: &Arc<Pod>, fresh: Option<Node>, ctx: &mut Ctx<Self>) {
        let starts = self.has_ended(pod) || self.admit(source, pod, fresh, ctx);
        self.post(source, pod);
        ctx.fault_point("decided");
        if starts {
            self.start_pod(pod, ctx);
        }
    }

    /// Decides about pods that an earlier generation of the actor has not decided about, those that run already first.
    pub(super) fn decide_left_undecided(&mut self, ctx: &mut Ctx<Self>) {
        let mut left: Vec<PodUid> = self.admission.left_undecided().cloned().collect();
        left.sort_by_key(|uid| !self.tools.observed.get(uid).is_some_and(|row| row.pod.is_alive()));
        for uid in left {
            ctx.for_subject(uid.as_str(), |ctx| {
                self.admission.end_wait(&uid);
                if let Some((source, pod)) = self.desired.find(&uid).map(|(source, pod)| (source, pod.clone())) {
                    self.decide(source, &pod, None, ctx);
                }
            });
        }
    }

    /// LIFE-OF-A-POD 3/12: admission, against the pods that are active now. Answers whether the pod may start at once.
    fn admit(&mut self, source: Source, pod: &Arc<Pod>, fresh: Option<Node>, ctx: &mut Ctx<Self>) -> bool {
        let uid = model::pod::uid(pod);
        if self.is_over(&uid, pod) {
            // It ran in an earlier life of the daemon, and takes no room.
            return true;
        }
        let view = self.tools.node.get();
        let may_read = fresh.is_none() && view.api_uid().is_some();
        let mut facts = facts(&self.tools.deps.facts, &view, &self.tools.pressure.get(), fresh.as_ref());
        if self.tools.observed.get(&uid).is_some_and(|row| row.pod.is_alive()) {
            // One that runs already, since an earlier daemon, is stopped in its turn, and evicted if it must be.
            facts.shutting_down = false;
            facts.pressures.clear();
        }
        let others = self.desired.claims().filter(|(other, _)| **other != uid);
        let active: Vec<&Pod> =
            others.filter(|(other, pod)| self.is_active(other, pod)).map(|(_, pod)| &**pod).collect();
        let watch = metrics::Stopwatch::start();
        let verdict = pod_admission::decide(pod, active.into_iter(), &facts);
        Phase::Admit.took(watch.elapsed());
        match verdict {
            Verdict::Admit => true,
            Verdict::Reject(why) if why.with_fresh_node && may_read => {
                self.admission.wait(uid.clone(), Pending::ReadingNode);
                self.read_node(source, uid, facts.name, ctx);
                false
            }
            Verdict::Reject(why) => {
                let rejection = (why.reason, why.message);
                self.report_rejection(pod, &rejection);
                self.admission.reject(uid, rejection);
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
            if !act.admission.node_was_read(&uid) {
                return;
            }
            act.housekeeping.attention.touch(&uid);
            let Some(pod) = act.desired.pod(&uid).cloned() else { return };
            // Without a fresh one the known one decides.
            let node = node.unwrap_or_else(|| act.tools.node.get().node.as_deref().cloned().unwrap_or_default());
            act.decide(source, &pod, Some(node), ctx);
            act.schedule_housekeeping(ctx);
        });
    }

    /// Stops the victims; the pod starts when they are gone, or when that takes too long.
    fn preempt(&mut self, uid: PodUid, victims: Vec<PodUid>, ctx: &mut Ctx<Self>) {
        let preemption = self.stop_victims(victims, ctx);
        self.admission.wait(uid, Pending::Preempting(preemption));
    }

    /// Stops pods for the sake of a critical one, which is looked at again when that has taken too long.
    pub(super) fn stop_victims(&mut self, victims: Vec<PodUid>, ctx: &mut Ctx<Self>) -> Preemption {
        let mut wait = MIN_WAIT;
        for victim in &victims {
            self.housekeeping.attention.touch(victim);
            let Some(pod) = self.desired.pod(victim).cloned() else { continue };
            self.emit(&pod, EventType::Warning, PREEMPTING, PREEMPTED.to_owned());
            // The decision does not say which resource was short.
            pods::PREEMPTIONS.with_label_values(&[""]).inc();
            let grace = model::pod::spec_grace_seconds(&pod).and_then(|s| u64::try_from(s).ok()).unwrap_or(0);
            wait = wait.max(Duration::from_secs(grace).mul_f64(1.5));
            self.workers.preempt(victim, Some(pod));
        }
        ctx.after(wait, |act, ctx| act.run_housekeeping(ctx));
        let until = Timestamp(ctx.clock().unix_nanos()).plus(wait);
        Preemption { victims: victims.into_iter().collect(), until }
    }

    /// Starts pods whose victims are gone.
    pub(super) fn start_preemptors(&mut self, ctx: &mut Ctx<Self>) {
        let now = Timestamp(ctx.clock().unix_nanos());
        let workers = &self.workers;
        for (uid, victims) in self.admission.end_preemptions(now, |uid| workers.has_made_room(uid)) {
            self.report_late_victims(&victims);
            victims.iter().chain([&uid]).for_each(|uid| self.housekeeping.attention.touch(uid));
            if let Some((source, pod)) = self.desired.find(&uid).map(|(source, pod)| (source, pod.clone())) {
                self.post(source, &pod);
                self.start_pod(&pod, ctx);
            }
        }
    }

    /// Victims that are still there when their time is up.
    pub(super) fn report_late_victims(&self, victims: &BTreeSet<PodUid>) {
        for victim in victims {
            if let Some(pod) = self.desired.pod(victim).filter(|_| !self.workers.has_made_room(victim)) {
                let text = "Container runtime did not kill the pod within specified grace period.";
                self.emit(pod, EventType::Warning, "ExceededGracePeriod", text.to_owned());
            }
        }
    }

    /// Has a worker (which may be too new to be on the board), or will have one, and may still run.
    pub(super) fn is_active(&self, uid: &PodUid, pod: &Pod) -> bool {
        let has_worker = self.workers.made().contains(uid) || self.admission.is_preempting(uid);
        let may_run = has_worker && !self.admission.is_rejected(uid) && !self.workers.has_stopped(uid);
        let stops = || self.workers.row(uid).is_some_and(|worker| worker.termination_requested);
        // What had run may be gone from the runtime.
        may_run && !self.is_over(uid, pod) && (!self.has_ended(pod) || stops())
    }

    fn is_over(&self, uid: &PodUid, pod: &Pod) -> bool {
        self.tools.observed.get(uid).is_some_and(|row| has_run_to_end(pod, &row.pod))
    }

    fn report_rejection(&self, pod: &Arc<Pod>, (reason, message): &Rejection) {
        tracing::warn!(pod = %model::pod::describe(pod), reason, message, "pod rejected");
        pods::ADMISSION_REJECTIONS.with_label_values(&[pods::rejection_reason(reason)]).inc();
        self.emit(pod, EventType::Warning, reason.clone(), message.clone());
    }

    /// Whether the status board has the refusal of this pod.
    pub(super) fn is_rejection_told(&self, uid: &PodUid) -> bool {
        let told = || self.tools.statuses.get(uid).filter(|row| row.is_terminal())?.status.reason.clone();
        self.admission.rejection(uid).is_some_and(|(reason, _)| told().as_ref() == Some(reason))
    }

    /// What admission refused has no worker that would tell its status.
    pub(super) fn tell_rejection(&self, uid: &PodUid) {
        let (Some(pod), Some((reason, message))) = (self.desired.pod(uid), self.admission.rejection(uid)) else {
            return;
        };
        let status = pod_status::patch::rejected(pod, reason, message).into();
        if let Err(e) = self.tools.crew.tell(SetPodStatus { pod: pod.clone(), status }) {
            tracing::warn!(%uid, error = %e, "status of the rejected pod is not stored yet, next round tries again");
        }
    }
}
