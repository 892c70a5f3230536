//! Which pods are probed: the messages, and how the pods are known again after a crash.

use std::sync::Arc;
use std::time::Duration;

use actor::watch;
use actor::{AsyncContext, Ctx, Handler};
use contract::probe::{RetainProbes, StartProbes, StopProbes};
use contract::status::StatusEntry;
use model::core::Pod;
use model::probe::{ProbeKind, ProbeVerdict};
use model::{PodUid, pod};
use probe_schedule::{Life, Seen, Worker, first, probes_of, until_place};

use super::ProbeManager;
use crate::Known;
use crate::entry::{Entry, ProbeId};
use crate::measure;

impl ProbeManager {
    /// Goes on with the pods of the former generation.
    pub(super) fn resume(&mut self, ctx: &mut Ctx<Self>) {
        self.former = self.view.snapshot().into_keys().collect();
        let pods = self.deps.intake().clone();
        for (uid, known) in pods {
            self.add(uid, known, ctx);
        }
        self.end_turn(ctx);
    }

    /// Adds a pod. A row of one that is not probed here yet is of the generation before, or of another one who had the place:
    /// its verdicts stand. Which probes there are is not taken from it, for others may post what they like.
    fn add(&mut self, uid: PodUid, known: Known, ctx: &mut Ctx<Self>) {
        let Known { pod, is_ending } = known;
        let former = self.view.get(&uid);
        self.former.remove(&uid);
        let now = self.now(ctx);
        let age =
            Duration::from_nanos(u64::try_from(Self::wall(ctx).nanos_since(self.config.daemon_started)).unwrap_or(0));
        let status = self.status.get(&uid);
        let deleting = pod.metadata.deletion_timestamp.is_some();
        self.serial += 1;
        let mut entry = Entry::new(pod.clone(), self.serial);
        for (container, settings, _) in probes_of(&pod) {
            let kind = settings.kind;
            if is_ending && ends_first(&pod, &container.name, kind) {
                continue;
            }
            let seen = status.as_ref().and_then(|s| Seen::of(&pod, container, &s.status).container);
            let verdict = seen.and_then(|c| Some((former.as_ref()?.verdict(&c.id, kind)?, c.id)));
            // At once where a pod waits for a probe.
            let goes_on = matches!(&verdict, Some((ProbeVerdict::Success, _)));
            let worker = match verdict {
                Some((verdict, id)) => Worker::resumed(settings, deleting, id, verdict),
                None => Worker::new(settings, deleting),
            };
            let name: Arc<str> = container.name.as_str().into();
            entry.add(&name, worker);
            let until_place = until_place(&format!("{uid}/{name}/{kind}"), Self::wall(ctx), settings.period);
            let id = ProbeId { uid: uid.clone(), container: name, kind };
            self.schedule.insert(id, now, first(age, settings.period, goes_on), until_place, settings.period);
        }
        if entry.workers.is_empty() && former.is_none() {
            return;
        }
        self.deps.intake().insert(uid.clone(), Known { pod, is_ending });
        self.dirty.insert(uid.clone());
        self.pods.insert(uid.clone(), entry);
        let rx = self.status.subscribe(uid.clone());
        self.follow(uid, rx, ctx);
    }

    /// Waits for the next status of a pod.
    fn follow(&mut self, uid: PodUid, mut rx: watch::Receiver<Option<Arc<StatusEntry>>>, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.get_mut(&uid) else { return };
        let next = async move { rx.changed().await.is_ok().then_some(rx) };
        entry.watch = Some(ctx.run(next, move |this, rx, ctx| {
            let Some(rx) = rx else { return };
            this.status_changed(&uid, ctx);
            this.follow(uid, rx, ctx);
        }));
    }

    /// A container that runs but is not ready yet is probed at once (pod-lifecycle 8.4), so that readiness follows a start
    /// closely.
    fn status_changed(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        let (Some(entry), Some(status)) = (self.pods.get(uid), self.status.get(uid)) else { return };
        let eager: Vec<ProbeId> = entry
            .workers
            .iter()
            .filter(|((name, kind), worker)| {
                *kind == ProbeKind::Readiness
                    && entry.find(name, *kind).is_some_and(|(container, _)| {
                        let seen = Seen::of(&entry.pod, container, &status.status).container;
                        seen.is_some_and(|c| {
                            let ready =
                                worker.container() == Some(&c.id) && worker.verdict() == Some(ProbeVerdict::Success);
                            matches!(c.life, Life::Running { .. }) && c.started && !ready
                        })
                    })
            })
            .map(|((name, kind), _)| ProbeId { uid: uid.clone(), container: name.clone(), kind: *kind })
            .collect();
        if eager.is_empty() {
            return;
        }
        let now = self.now(ctx);
        eager.iter().for_each(|id| self.schedule.trigger(id, now));
        self.eager.extend(eager);
        self.wake(ctx);
    }

    fn drop_pod(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        let Some(entry) = self.pods.remove(uid) else { return self.drop_former(uid) };
        if let Some(watch) = entry.watch {
            ctx.cancel_future(watch);
        }
        for (container, kind) in entry.workers.keys() {
            let id = ProbeId { uid: uid.clone(), container: container.clone(), kind: *kind };
            measure::forget(&entry.pod, &id);
            self.unschedule(&id);
        }
        for container in entry.row.verdicts.keys() {
            self.keep(uid, container);
        }
        self.dirty.remove(uid);
        self.deps.intake().remove(uid);
        self.view.remove(uid);
    }

    /// Takes away what another manager left of a pod that ended while its place changed hands: nobody tells of it any more.
    fn drop_former(&mut self, uid: &PodUid) {
        if !self.former.remove(uid) {
            return;
        }
        let row = self.view.get(uid);
        for container in row.iter().flat_map(|row| row.verdicts.keys()) {
            self.keep(uid, container);
        }
        self.view.remove(uid);
    }
}

impl Handler<StartProbes> for ProbeManager {
    type Result = ();

    fn handle(&mut self, m: StartProbes, ctx: &mut Ctx<Self>) {
        let uid = pod::uid(&m.pod);
        if self.pods.contains_key(&uid) {
            return;
        }
        ctx.fault_point("probe.start");
        self.add(uid, Known { pod: m.pod, is_ending: false }, ctx);
        self.wake(ctx);
    }
}

impl Handler<StopProbes> for ProbeManager {
    type Result = ();

    fn handle(&mut self, m: StopProbes, ctx: &mut Ctx<Self>) {
        ctx.fault_point("probe.stop");
        if !m.keep_readiness {
            self.drop_pod(&m.uid, ctx);
            return self.end_turn(ctx);
        }
        let Some(entry) = self.pods.get(&m.uid) else { return };
        if let Some(known) = self.deps.intake().get_mut(&m.uid) {
            known.is_ending = true;
        }
        let over: Vec<ProbeId> = entry
            .workers
            .keys()
            .filter(|(name, kind)| ends_first(&entry.pod, name, *kind))
            .map(|(name, kind)| ProbeId { uid: m.uid.clone(), container: name.clone(), kind: *kind })
            .collect();
        over.iter().for_each(|id| self.drop_worker(id));
        self.end_turn(ctx);
    }
}

impl Handler<RetainProbes> for ProbeManager {
    type Result = ();

    fn handle(&mut self, m: RetainProbes, ctx: &mut Ctx<Self>) {
        let all = self.pods.keys().chain(&self.former);
        let gone: Vec<PodUid> = all.filter(|uid| !m.known.contains(*uid)).cloned().collect();
        gone.iter().for_each(|uid| self.drop_pod(uid, ctx));
        self.end_turn(ctx);
    }
}

/// Whether a probe ends when its pod begins to end: those of regular containers but for readiness (pod-lifecycle 3.2).
fn ends_first(pod: &Pod, container: &str, kind: ProbeKind) -> bool {
    kind != ProbeKind::Readiness && pod::regular_containers(pod).iter().any(|c| c.name == container)
}
