//! Resizes of pods that run (node-and-resources 1.12): which are granted, and writing down what is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Ctx};
use contract::pod_worker::UpdateKind;
use metrics::pods;
use model::allocation::{Allocation, Amounts, PendingResize, asks_the_same, summary};
use model::core::Pod;
use model::event::EventType;
use model::{PodUid, Timestamp};
use pod_admission::{Candidate, PREEMPTING, ResizeVerdict, decide_resize, operations, order};

use super::PodManager;
use crate::admission::facts;
use crate::allocation::checkpoint::{self, Entries};
use crate::allocation::told;
use crate::allocation::{Held, Stage};
use crate::desired::Change;
use crate::preemption::Preemption;

/// A resize that cannot be had.
const INFEASIBLE: &str = "Infeasible";
/// New pods are written down together after this time; one that is lost with the daemon is admitted anew by the next one.
const SAVE_AFTER: Duration = Duration::from_secs(1);
/// How long files that cannot be read are tried again, and how often: a disk that answers with an error may be there again.
const READ_LIMIT: Duration = Duration::from_secs(60);
const READ_PAUSE: Duration = Duration::from_secs(2);
/// When what could not be written down is tried again.
const WRITE_PAUSE: Duration = Duration::from_secs(10);

impl PodManager {
    /// Grants once more what an earlier daemon granted, as it is written down again.
    pub(super) fn repeat_grants(&mut self, ctx: &mut Ctx<Self>) {
        if self.desired.allocations.is_granting() && !self.saving.running {
            self.save_allocations(ctx);
        }
    }

    pub(super) fn load_allocations(&self, ctx: &mut Ctx<Self>) {
        let (deps, dir) = (self.tools.deps.clone(), self.tools.config.root_dir.clone());
        let (effects, clock) = (ctx.effects(), ctx.clock().clone());
        let load = async move {
            let until = clock.now() + READ_LIMIT;
            let again = || (deps.clone(), dir.clone());
            loop {
                let (deps, dir) = again();
                let read = move || checkpoint::load(&*deps.fs, &dir);
                let read = effects.attempt(Class::HostFiles, read).await.map_err(|e| e.to_string());
                let error = match read.and_then(|read| read.map_err(|e| actor::chain(&e))) {
                    Ok(before) => return before,
                    Err(error) => error,
                };
                if clock.now() >= until {
                    tracing::error!(error, "what pods were granted is not read; what they ask for is admitted anew");
                    let (deps, dir) = again();
                    let kept = move || checkpoint::keep_unread(&*deps.fs, &dir);
                    return effects.attempt(Class::HostFiles, kept).await.unwrap_or_default();
                }
                tracing::warn!(error, "what pods were granted is not read yet: pods wait");
                clock.sleep(READ_PAUSE).await;
            }
        };
        ctx.run(load, |act, before, ctx| {
            act.saving.loaded = Some(before);
            act.take_postponed(ctx);
        });
    }

    /// A pod goes on with what it was granted in an earlier life of the daemon.
    pub(super) fn recall_allocation(&mut self, pod: &Arc<Pod>) {
        let uid = model::pod::uid(pod);
        let Some(before) = self.saving.loaded.as_mut() else { return };
        let (allocated, actuated) = (before.allocated.remove(&uid), before.actuated.remove(&uid));
        if model::pod::is_static(pod) {
            return;
        }
        let what = self.tools.config.resizable;
        let is_lost = before.lost && self.tools.observed.get(&uid).is_some_and(|row| row.pod.is_alive());
        // One that runs must not be refused for what it only wishes for.
        let elsewhere = || actuated.clone().or_else(|| told::allocation(pod, what)).filter(|_| is_lost);
        let Some(allocated) = allocated.or_else(elsewhere) else { return };
        let granted = allocated.overlay(pod, what);
        self.desired.hold(&uid, Arc::new(allocated), what);
        self.desired.allocations.was_told(&uid, told::pending(pod));
        // It died between the grant and its end: the worker looks what its containers have.
        if let Some(had) = actuated.filter(|had| has_less_or_more(&had.overlay(&granted, what), &granted, what)) {
            self.desired.allocations.begin_actuation(uid.clone(), Arc::new(had));
            self.workers.behind.insert(uid);
        }
    }

    /// What a pod that runs asks for anew is not its own before it is granted.
    pub(super) fn hold_back(&mut self, change: &Change, before: &BTreeMap<PodUid, Arc<Pod>>, ctx: &mut Ctx<Self>) {
        let (Change::Update(pod) | Change::Delete(pod) | Change::Reconcile(pod)) = change else { return };
        let what = self.tools.config.resizable;
        let uid = model::pod::uid(pod);
        let Some(old) = before.get(&uid).filter(|_| !model::pod::is_static(pod)) else { return };
        for operation in operations(old, pod, what) {
            pods::REQUESTED_RESIZES.with_label_values(&operation).inc();
        }
        if self.desired.allocations.get(&uid).is_some() {
            self.desired.allocations.refresh(old, pod, what);
            if self.desired.allocations.get(&uid).is_none() {
                self.tell_worker(&uid);
                // What it takes back may be in the file already.
                self.save_allocations_soon(ctx);
            }
            return;
        }
        // One that waits for others to make room was admitted, too.
        let is_admitted = self.workers.has(&uid) || self.admission.is_preempting(&uid);
        if is_admitted && !asks_the_same(old, pod, what) {
            self.desired.hold(&uid, Arc::new(Allocation::of(old, what)), what);
            // The next daemon finds the new wish at the API server, and must know that it is not granted.
            self.save_allocations(ctx);
        }
    }

    /// Decides about resizes that may be granted now. `trigger`: the occasion, as metrics name it.
    pub(super) fn retry_resizes(&mut self, trigger: &'static str, ctx: &mut Ctx<Self>) {
        if self.desired.allocations.is_empty() || !self.all_sources_ready() {
            return;
        }
        let mut waiting: Vec<_> = Vec::new();
        for (uid, held) in self.desired.allocations.iter() {
            let stops = self.workers.row(uid).is_none_or(|w| w.termination_requested);
            let waits = matches!(held.stage, Stage::New | Stage::Deferred | Stage::Preempting(..));
            if let (true, false, Some(pod)) = (waits, stops, self.desired.wanted(uid)) {
                let since = held.pending.as_ref().map(|p| p.since);
                waiting.push((order(&Candidate { pod, allocated: &held.acts_on, since }), uid.clone()));
            }
        }
        waiting.sort();
        for (_, uid) in waiting {
            ctx.for_subject(uid.as_str(), |ctx| self.decide_about_resize(&uid, trigger, ctx));
        }
    }

    fn decide_about_resize(&mut self, uid: &PodUid, trigger: &'static str, ctx: &mut Ctx<Self>) {
        let Some(held) = self.desired.allocations.get(uid).cloned() else { return };
        let Some(pod) = self.desired.wanted(uid).cloned() else { return };
        let view = self.tools.node.get();
        let facts = facts(&self.tools.deps.facts, &view, &self.tools.pressure.get(), None);
        let others = self.desired.claims().filter(|(other, _)| *other != uid);
        let active: Vec<&Pod> = others.filter(|(other, p)| self.is_active(other, p)).map(|(_, p)| &**p).collect();
        match decide_resize(&pod, &held.acts_on, active.into_iter(), &facts) {
            ResizeVerdict::Grant => self.begin_grant(uid, pod, trigger, ctx),
            ResizeVerdict::Defer { why } => {
                self.set_stage(uid, Stage::Deferred);
                self.set_pending(uid, &pod, (&why.reason, why.message), ctx);
            }
            ResizeVerdict::Preempt { victims } => match &held.stage {
                Stage::Preempting(_, told) if !self.has_waited(told, ctx) => {}
                Stage::Preempting(_, told) if victims.iter().all(|victim| told.victims.contains(victim)) => {
                    // They do not end. Nor does a pod wait longer for them that is new.
                    self.report_late_victims(&told.victims);
                    self.begin_grant(uid, pod, trigger, ctx);
                }
                _ => self.make_room(uid, &pod, victims, ctx),
            },
            ResizeVerdict::Infeasible { message, detail } => {
                pods::INFEASIBLE_RESIZES.with_label_values(&[detail]).inc();
                self.set_stage(uid, Stage::Infeasible);
                self.set_pending(uid, &pod, (INFEASIBLE, message), ctx);
            }
        }
    }

    fn has_waited(&self, preemption: &Preemption, ctx: &Ctx<Self>) -> bool {
        preemption.is_over(Timestamp(ctx.clock().unix_nanos()), |uid| self.workers.has_made_room(uid))
    }

    fn make_room(&mut self, uid: &PodUid, pod: &Arc<Pod>, victims: Vec<PodUid>, ctx: &mut Ctx<Self>) {
        let message = format!("{} pods make room for this critical one", victims.len());
        let preemption = self.stop_victims(victims, ctx);
        self.set_stage(uid, Stage::Preempting(pod.clone(), preemption));
        self.set_pending(uid, pod, (PREEMPTING, message), ctx);
    }

    fn begin_grant(&mut self, uid: &PodUid, pod: Arc<Pod>, trigger: &'static str, ctx: &mut Ctx<Self>) {
        let waited = self.desired.pending(uid).is_some_and(|p| !p.infeasible).then_some(trigger);
        self.set_stage(uid, Stage::Granting(pod, waited));
        self.save_allocations(ctx);
    }

    fn set_stage(&mut self, uid: &PodUid, stage: Stage) {
        if let Some(held) = self.desired.allocations.get_mut(uid) {
            held.stage = stage;
        }
    }

    /// Shows why a resize waits; what is new of it is told by an event, with the word of admission.
    fn set_pending(&mut self, uid: &PodUid, pod: &Pod, (word, message): (&str, String), ctx: &mut Ctx<Self>) {
        let infeasible = word == INFEASIBLE;
        let Some(held) = self.desired.allocations.get_mut(uid) else { return };
        let generation = pod.metadata.generation.unwrap_or(0);
        let before = held.pending.take();
        let same_reason = before.as_ref().filter(|b| b.infeasible == infeasible);
        let since = same_reason.map_or_else(|| Timestamp(ctx.clock().unix_nanos()), |b| b.since);
        let is_news = same_reason.is_none_or(|b| b.generation != generation);
        let pending = PendingResize { infeasible, message, generation, since };
        held.pending = Some(pending.clone());
        if before.as_ref() != Some(&pending) {
            self.tell_worker(uid);
        }
        if is_news {
            let reason = if infeasible { "ResizeInfeasible" } else { "ResizeDeferred" };
            let text = format!("Pod resize {word}: {}", summary(pod, generation, &pending.message));
            self.emit(pod, EventType::Warning, reason, text);
        }
    }

    /// Shows the pod on the board, and its worker what is new.
    fn tell_worker(&mut self, uid: &PodUid) {
        let Some((source, pod)) = self.desired.find(uid).map(|(source, pod)| (source, pod.clone())) else { return };
        self.post(source, &pod);
        let pending = self.desired.pending(uid);
        self.workers.update_with(uid, Some(pod), pending, UpdateKind::Update);
    }

    /// Pods came or went: what they have is written down a moment later.
    pub(super) fn save_allocations_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.saving.scheduled, true) {
            ctx.after(SAVE_AFTER, |act, ctx| act.save_allocations(ctx));
        }
    }

    /// The other file follows when containers have what they were granted.
    pub(super) fn note_actuated(&mut self, ctx: &mut Ctx<Self>) {
        if self.desired.allocations.actuating().keys().any(|uid| !self.is_resizing(uid)) {
            self.save_allocations_soon(ctx);
        }
    }

    fn is_resizing(&self, uid: &PodUid) -> bool {
        let what = self.tools.config.resizable;
        self.desired.pod(uid).is_none_or(|granted| self.workers.resizes(uid, granted, what))
    }

    /// Writes down what pods are granted. What is being granted counts from then on.
    fn save_allocations(&mut self, ctx: &mut Ctx<Self>) {
        if std::mem::replace(&mut self.saving.running, true) {
            self.saving.again = true;
            return;
        }
        self.saving.scheduled = false;
        let what = self.tools.config.resizable;
        let mut granting: Vec<(PodUid, Arc<Allocation>, Option<&'static str>)> = Vec::new();
        // Those of pods that have not been told of since this daemon began stay until all have been.
        let unheard = (!self.all_sources_ready()).then_some(self.saving.loaded.as_ref()).flatten();
        let mut allocated = unheard.map(|before| before.allocated.clone()).unwrap_or_default();
        let had: Entries = unheard.map(|before| before.actuated.clone()).unwrap_or_default();
        for (uid, pod) in self.desired.iter() {
            let is_held = self.desired.allocations.get(uid).is_some();
            if !(is_held || self.workers.made().contains(uid)) || self.admission.is_rejected(uid) {
                continue;
            }
            let entry = match self.desired.allocations.get(uid) {
                Some(held) => match &held.stage {
                    Stage::Granting(pod, waited) => {
                        let allocation = Arc::new(Allocation::of(pod, what));
                        granting.push((uid.clone(), allocation.clone(), *waited));
                        Allocation::clone(&allocation)
                    }
                    _ => Allocation::clone(&held.allocation),
                },
                None => Allocation::of(pod, what),
            };
            allocated.insert(uid.clone(), entry);
        }
        let mut actuated = self.actuated(&allocated, &granting);
        actuated.extend(had);
        let (deps, dir) = (self.tools.deps.clone(), self.tools.config.root_dir.clone());
        let effects = ctx.effects();
        let write = async move {
            effects.hit("save-allocations").await;
            let save = move || checkpoint::save(&*deps.fs, &dir, allocated, actuated);
            let saved = effects.attempt(Class::HostFiles, save).await;
            effects.hit("saved-allocations").await;
            saved.map_err(|e| e.to_string()).and_then(|saved| saved.map_err(|e| actor::chain(&e)))
        };
        ctx.run(write, move |act, saved, ctx| act.allocations_saved(granting, saved, ctx));
    }

    /// What containers have: all that is granted, but for pods with a resize under way.
    fn actuated(
        &mut self,
        allocated: &Entries,
        granting: &[(PodUid, Arc<Allocation>, Option<&'static str>)],
    ) -> Entries {
        let mut out = allocated.clone();
        let all = self.desired.allocations.actuating().keys();
        let done: Vec<PodUid> = all.filter(|uid| !self.is_resizing(uid)).cloned().collect();
        done.iter().for_each(|uid| self.desired.allocations.end_actuation(uid));
        for (uid, had) in self.desired.allocations.actuating() {
            out.entry(uid.clone()).and_modify(|entry| *entry = Allocation::clone(had));
        }
        for (uid, ..) in granting {
            if let Some(held) = self.desired.allocations.get(uid) {
                out.insert(uid.clone(), Allocation::clone(&held.allocation));
            }
        }
        out
    }

    fn allocations_saved(
        &mut self,
        granting: Vec<(PodUid, Arc<Allocation>, Option<&'static str>)>,
        saved: Result<(), String>,
        ctx: &mut Ctx<Self>,
    ) {
        self.saving.running = false;
        if let Err(error) = &saved {
            let dir = self.tools.config.root_dir.display();
            tracing::error!(%dir, error, "what pods are granted is not written down: resizes wait until it can be");
            self.save_again(ctx);
        }
        for (uid, allocation, waited) in granting {
            if saved.is_ok() {
                self.granted(&uid, allocation, waited, ctx);
            } else if self.desired.allocations.get(&uid).is_some_and(|h| matches!(h.stage, Stage::Granting(..))) {
                self.set_stage(&uid, Stage::New);
            }
        }
        if std::mem::take(&mut self.saving.again) {
            self.save_allocations(ctx);
        }
    }

    /// Also what is not granted has to be known to the next daemon, or it takes a pod's wish for what the pod has.
    fn save_again(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.saving.scheduled, true) {
            ctx.after(WRITE_PAUSE, |act, ctx| {
                act.retry_resizes("periodic_retry", ctx);
                act.save_allocations(ctx);
            });
        }
    }

    /// The resize is the pod's own now.
    fn granted(
        &mut self,
        uid: &PodUid,
        allocation: Arc<Allocation>,
        waited: Option<&'static str>,
        ctx: &mut Ctx<Self>,
    ) {
        let what = self.tools.config.resizable;
        let held = self.desired.allocations.get_mut(uid);
        let granting = |held: &&mut Held| matches!(&held.stage, Stage::Granting(p, _) if allocation.agrees(p, what));
        let Some(held) = held.filter(granting) else {
            // It asks for something else meanwhile and has no claim on this any more; nor is it written down for long.
            return self.save_allocations_soon(ctx);
        };
        held.pending = None;
        let had = held.allocation.clone();
        self.desired.allocations.begin_actuation(uid.clone(), had);
        self.desired.hold(uid, allocation, what);
        if let Some(trigger) = waited {
            pods::DEFERRED_ACCEPTED_RESIZES.with_label_values(&[trigger]).inc();
        }
        if let Some(pod) = self.desired.pod(uid).cloned() {
            let generation = pod.metadata.generation.unwrap_or(0);
            let text = format!("Pod resize started: {}", summary(&pod, generation, ""));
            self.emit(&pod, EventType::Normal, "ResizeStarted", text);
        }
        self.tell_worker(uid);
        // Another one may have room by what this one gave up.
        self.retry_resizes("pod_resized", ctx);
    }
}

/// Whether containers have other CPU or memory in one than in the other. A limit of the pod counts for those that have none: a
/// kubelet writes it down as theirs.
fn has_less_or_more(a: &Pod, b: &Pod, what: model::allocation::Resizable) -> bool {
    let of = |pod: &Pod| -> Vec<Amounts> { what.containers(pod).map(|c| Amounts::of(pod, c)).collect() };
    of(a) != of(b) || Amounts::of_pod_level(a) != Amounts::of_pod_level(b)
}
