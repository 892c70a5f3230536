//! The actor: takes full sets in, hands pods to their workers, keeps house.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Handler, supervised};
use contract::cgroup::CgroupHandle;
use contract::config_sources::Source;
use contract::event::EventHandle;
use contract::pod_manager::{DesiredPod, KillPod, SetPods};
use contract::pod_worker::{
    GrantStart, KillRequest, PodWorkerHandle, UpdateKind, UpdatePod, WorkerFactory, WorkersView,
};
use contract::probe::{ProbeHandle, RetainProbes};
use contract::runtime::{RuntimeHandle, RuntimeInfo};
use contract::status::{RetainPodStatuses, StatusHandle};
use contract::view::Board;
use contract::volume::VolumeHandle;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp};
use ports::host::HostFs;
use ports::journal::Journal;

use crate::admission::Admission;
use crate::effects;
use crate::gc::GcPolicy;
use crate::housekeeping::{Chore, DesiredFacts, World, chores};
use crate::merge::{Change, merge};

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sources that must have delivered before anything unknown is touched.
    pub sources: BTreeSet<Source>,
    /// Period of housekeeping (2 s in a kubelet).
    pub housekeeping: Duration,
    /// Period of the container garbage collection (1 min in a kubelet).
    pub gc_period: Duration,
    /// Limits of the garbage collection.
    pub gc: GcPolicy,
    /// Folder of pod logs.
    pub pod_logs_dir: PathBuf,
    /// Folder of the legacy log links.
    pub container_logs_dir: PathBuf,
}

/// What PodManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Board of desired pods, which this actor posts.
    pub view: Board<PodUid, DesiredPod>,
    /// Board of the workers.
    pub workers: WorkersView,
    /// Makes (or finds) the worker of a UID.
    pub new_worker: WorkerFactory,
    /// Admission policy.
    pub admission: Admission,
    /// Handles.
    pub runtime: RuntimeHandle,
    /// Handles.
    pub status: StatusHandle,
    /// Handles.
    pub probes: ProbeHandle,
    /// Handles.
    pub volumes: VolumeHandle,
    /// Handles.
    pub cgroups: CgroupHandle,
    /// Handles.
    pub events: EventHandle,
    /// Log folders.
    pub fs: Arc<dyn HostFs>,
    /// Lines of pods that are gone are swept out of it.
    pub journal: Arc<dyn Journal>,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("pod_manager::Deps")
    }
}

/// Changes that come within this time are answered by one round of housekeeping.
const SETTLE: Duration = Duration::from_millis(5);

/// The actor.
#[derive(Debug)]
pub struct PodManager {
    config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) desired: BTreeMap<Source, BTreeMap<PodUid, Arc<Pod>>>,
    pub(crate) rejected: BTreeMap<PodUid, (String, String)>,
    seen: BTreeSet<Source>,
    /// Sets that came before the runtime was known.
    postponed: BTreeMap<Source, Vec<Arc<Pod>>>,
    arrivals: Vec<PodUid>,
    restart_requested: BTreeSet<PodUid>,
    pub(crate) handles: BTreeMap<PodUid, PodWorkerHandle>,
    /// Updates that a full mailbox refused; told again by housekeeping.
    undelivered: BTreeSet<PodUid>,
    /// Chores under way.
    running: BTreeSet<Chore>,
    housekeeping_due: bool,
    gc_running: bool,
    gc_wanted: bool,
    retained: BTreeSet<PodUid>,
}

impl Actor for PodManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.recover();
        let (housekeeping, gc) = (self.config.housekeeping, self.config.gc_period);
        ctx.every(housekeeping, |act, ctx| act.keep_house(ctx));
        ctx.every(gc, |act, ctx| act.collect_garbage(ctx));
        ctx.watch(self.deps.runtime.view.info.subscribe(), |act, info, ctx| {
            if is_known(&info) {
                for (source, pods) in std::mem::take(&mut act.postponed) {
                    act.set_pods(SetPods { source, pods }, ctx);
                }
            }
        });
        ctx.watch(self.deps.workers.changes(), |act, _version, ctx| act.keep_house_soon(ctx));
    }
}
supervised!(PodManager);

impl PodManager {
    /// A fresh instance; what it knew before is read back from the boards when it starts.
    #[must_use]
    pub fn new(config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            config,
            deps,
            desired: BTreeMap::new(),
            rejected: BTreeMap::new(),
            seen: BTreeSet::new(),
            postponed: BTreeMap::new(),
            arrivals: Vec::new(),
            restart_requested: BTreeSet::new(),
            handles: BTreeMap::new(),
            undelivered: BTreeSet::new(),
            running: BTreeSet::new(),
            housekeeping_due: false,
            gc_running: false,
            gc_wanted: false,
            retained: BTreeSet::new(),
        }
    }

    /// After a restart of the actor: desired pods and workers are on their boards. Sources count as seen again only when
    /// they deliver again, so nothing unknown is touched before.
    fn recover(&mut self) {
        let mut arrivals: Vec<(String, PodUid)> = Vec::new();
        for (uid, row) in self.deps.view.snapshot() {
            let seen = model::pod::annotation(&row.pod, model::pod::CONFIG_SEEN).unwrap_or_default().to_owned();
            arrivals.push((seen, uid.clone()));
            if let Some(rejection) = &row.rejected {
                self.rejected.insert(uid.clone(), rejection.clone());
            }
            self.desired.entry(row.source).or_default().insert(uid, row.pod.clone());
        }
        arrivals.sort();
        self.arrivals = arrivals.into_iter().map(|(_, uid)| uid).collect();
        for (uid, worker) in self.deps.workers.snapshot() {
            self.handles.insert(uid.clone(), (self.deps.new_worker)(uid.clone()));
            let wanted = self.desired.values().any(|pods| pods.contains_key(&uid));
            if wanted && worker.deleted {
                self.restart_requested.insert(uid);
            }
        }
    }

    fn pod(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.desired.values().find_map(|pods| pods.get(uid))
    }

    fn all_sources_ready(&self) -> bool {
        self.config.sources.is_subset(&self.seen)
    }

    fn apply(&mut self, source: Source, change: Change, ctx: &mut Ctx<Self>) {
        match change {
            Change::Add(pod) => self.add(source, pod, ctx),
            Change::Update(pod) | Change::Delete(pod) => {
                let uid = model::pod::uid(&pod);
                self.post(source, &pod);
                self.tell(&uid, UpdatePod { pod: Some(pod), kind: UpdateKind::Update });
            }
            Change::Reconcile(pod) => {
                let uid = model::pod::uid(&pod);
                self.post(source, &pod);
                self.tell(&uid, UpdatePod { pod: Some(pod), kind: UpdateKind::Sync });
            }
            Change::Remove(pod) => {
                let uid = model::pod::uid(&pod);
                self.deps.view.remove(&uid);
                self.rejected.remove(&uid);
                self.restart_requested.remove(&uid);
                if self.all_sources_ready() {
                    self.kill_removed(&uid, Some(pod));
                }
            }
        }
    }

    /// LIFE-OF-A-POD 2/12: the pod joins the desired set and its worker is told.
    fn add(&mut self, source: Source, pod: Arc<Pod>, ctx: &mut Ctx<Self>) {
        let uid = model::pod::uid(&pod);
        let stopping = self.deps.workers.get(&uid).is_some_and(|w| w.termination_requested);
        let terminal = model::pod::is_terminal_phase(pod.status.as_ref().and_then(|s| s.phase.as_deref()));
        if stopping {
            self.restart_requested.insert(uid.clone());
        } else if !terminal && let Err(rejection) = self.admit(&pod) {
            self.reject(&pod, &rejection);
            self.rejected.insert(uid, rejection);
            self.post(source, &pod);
            return;
        }
        self.post(source, &pod);
        if !self.arrivals.contains(&uid) {
            self.arrivals.push(uid.clone());
        }
        if !stopping && !self.end_first_life(&uid, ctx) {
            self.start_worker(&uid, UpdatePod { pod: Some(pod), kind: UpdateKind::Create });
        }
    }

    pub(crate) fn emit(&self, pod: &Pod, kind: EventType, reason: &'static str, message: String) {
        let object = EventObject::Pod {
            namespace: model::pod::namespace(pod).to_owned(),
            name: model::pod::name(pod).to_owned(),
            uid: model::pod::uid(pod),
            field_path: String::new(),
        };
        self.deps.events.emit(NodeEvent { kind, reason, message, object });
    }

    fn post(&mut self, source: Source, pod: &Arc<Pod>) {
        let uid = model::pod::uid(pod);
        let rejected = self.rejected.get(&uid).cloned();
        self.deps.view.post(uid, Arc::new(DesiredPod { pod: pod.clone(), source, rejected, mirror: None }));
    }

    /// LIFE-OF-A-POD 4/12: one worker per UID; updates coalesce there.
    fn start_worker(&mut self, uid: &PodUid, update: UpdatePod) {
        if !self.handles.contains_key(uid) {
            let handle = (self.deps.new_worker)(uid.clone());
            self.handles.insert(uid.clone(), handle);
        }
        self.tell(uid, update);
    }

    /// The worker of a UID, if there is one. One that an earlier generation made may have shown itself on the board only
    /// after this one looked.
    fn worker(&mut self, uid: &PodUid) -> Option<PodWorkerHandle> {
        if !self.handles.contains_key(uid) && self.deps.workers.get(uid).is_some() {
            self.handles.insert(uid.clone(), (self.deps.new_worker)(uid.clone()));
        }
        self.handles.get(uid).cloned()
    }

    /// A refused update is told again by housekeeping: the newest state of the pod wins anyway.
    fn tell(&mut self, uid: &PodUid, update: UpdatePod) {
        let Some(handle) = self.worker(uid) else { return };
        if let Err(e) = handle.update_pod.tell(update) {
            tracing::warn!(%uid, error = %e, "worker did not take the update, will be told again");
            self.undelivered.insert(uid.clone());
        }
    }

    fn kill_removed(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>) {
        let request = KillRequest { deleted: true, ..KillRequest::default() };
        self.tell(uid, UpdatePod { pod, kind: UpdateKind::Kill(request) });
    }

    fn keep_house_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.housekeeping_due, true) {
            ctx.after(SETTLE, |act, ctx| act.keep_house(ctx));
        }
    }

    fn keep_house(&mut self, ctx: &mut Ctx<Self>) {
        self.housekeeping_due = false;
        ctx.fault_point("housekeeping");
        self.tell_again();
        let world = self.look();
        let ready = self.all_sources_ready();
        for chore in chores(&world) {
            // Before all sources have spoken only the desired pods are served; nothing unknown is touched.
            if ready || matches!(chore, Chore::GrantStart(_) | Chore::CreateWorker(_)) {
                self.do_chore(chore, ctx);
            }
        }
        if ready {
            self.retain();
        }
    }

    fn tell_again(&mut self) {
        for uid in std::mem::take(&mut self.undelivered) {
            match self.pod(&uid).cloned() {
                Some(pod) => self.tell(&uid, UpdatePod { pod: Some(pod), kind: UpdateKind::Update }),
                None => self.kill_removed(&uid, None),
            }
        }
    }

    /// cgroups are read before desired pods, so that a pod which appears in between is not taken for an orphan.
    fn look(&self) -> World {
        let cgroups = self.deps.cgroups.view.snapshot().into_keys().collect();
        let runtime = self.deps.runtime.view.pods.snapshot();
        let directories = self.deps.volumes.view.snapshot();
        World {
            desired: self.desired_facts(),
            workers: self.deps.workers.snapshot(),
            runtime: runtime.into_iter().map(|(uid, row)| (uid, row.pod.is_alive())).collect(),
            cgroups,
            directories: directories.into_iter().map(|(uid, row)| (uid, !row.present.is_empty())).collect(),
            arrivals: self.arrivals.clone(),
        }
    }

    fn desired_facts(&self) -> BTreeMap<PodUid, DesiredFacts> {
        let facts = |uid: &PodUid, pod: &Arc<Pod>| DesiredFacts {
            full_name: model::pod::full_name(pod),
            is_static: model::pod::is_static(pod),
            rejected: self.rejected.contains_key(uid),
            terminal: model::pod::is_terminal_phase(pod.status.as_ref().and_then(|s| s.phase.as_deref())),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            restart_requested: self.restart_requested.contains(uid),
        };
        self.desired.values().flatten().map(|(uid, pod)| (uid.clone(), facts(uid, pod))).collect()
    }

    fn do_chore(&mut self, chore: Chore, ctx: &mut Ctx<Self>) {
        match &chore {
            Chore::ForgetWorker(uid) => self.forget_worker(uid, ctx),
            Chore::KillWorker(uid) => self.kill_removed(uid, None),
            Chore::CreateWorker(uid) => {
                if let Some(pod) = self.pod(uid).cloned()
                    && !self.end_first_life(uid, ctx)
                {
                    self.start_worker(uid, UpdatePod { pod: Some(pod), kind: UpdateKind::Create });
                }
            }
            Chore::FinishPod(uid) => {
                let pod = self.pod(uid).cloned();
                let request = KillRequest { deleted: true, ..KillRequest::default() };
                self.start_worker(uid, UpdatePod { pod, kind: UpdateKind::Kill(request) });
            }
            Chore::GrantStart(uid) => {
                if let Some(handle) = self.worker(uid)
                    && let Err(e) = handle.grant_start.tell(GrantStart)
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
        let deps = self.deps.clone();
        let job = chore.clone();
        ctx.run(async move { effects::chore(&deps, &job).await }, move |act, outcome, _ctx| {
            act.running.remove(&chore);
            match outcome {
                Ok(effects::Done::Nothing) => {}
                Ok(effects::Done::StartKillingOrphan(uid)) => act.kill_orphan(&uid),
                Err(e) => tracing::warn!(?chore, error = %e, "housekeeping did not succeed, next round tries again"),
            }
        });
    }

    fn kill_orphan(&mut self, uid: &PodUid) {
        let nobody = self.pod(uid).is_none_or(|_| self.rejected.contains_key(uid)) && !self.handles.contains_key(uid);
        if nobody {
            tracing::info!(%uid, "stopping a pod that no source knows");
            let request = KillRequest { grace_s: Some(1), deleted: true, ..KillRequest::default() };
            self.start_worker(uid, UpdatePod { pod: None, kind: UpdateKind::Kill(request) });
        }
    }

    fn forget_worker(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if let Some(handle) = self.worker(uid) {
            (handle.stop.0)();
        }
        self.handles.remove(uid);
        self.deps.workers.remove(uid);
        self.restart_requested.remove(uid);
        if self.pod(uid).is_none() {
            self.arrivals.retain(|u| u != uid);
        }
        self.keep_house_soon(ctx);
        if !std::mem::replace(&mut self.gc_wanted, true) {
            ctx.after(Duration::from_secs(1), |act, ctx| act.collect_garbage(ctx));
        }
    }

    /// A UID that runs again begins without the status of its first life. Answers whether that is still there.
    fn end_first_life(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) -> bool {
        if self.deps.status.view.get(uid).is_none_or(|row| !row.finished) {
            return false;
        }
        let mut known = self.known();
        known.remove(uid);
        if let Err(e) = self.deps.status.retain_pod_statuses.tell(RetainPodStatuses { known }) {
            tracing::warn!(%uid, error = %e, "the status of the pod's first life is not dropped yet");
        }
        self.retained.clear();
        self.keep_house_soon(ctx);
        true
    }

    fn known(&self) -> BTreeSet<PodUid> {
        let mut known: BTreeSet<PodUid> = self.desired.values().flat_map(|pods| pods.keys().cloned()).collect();
        known.extend(self.handles.keys().cloned());
        known
    }

    /// Tells Status- and ProbeManager which pods still exist, when that changed.
    fn retain(&mut self) {
        let known = self.known();
        // A message may be lost with whoever dies over it: what is still on the board is asked away again.
        let left = || self.deps.status.view.snapshot().into_keys().any(|uid| !known.contains(&uid));
        if known == self.retained && !left() {
            return;
        }
        let status = self.deps.status.retain_pod_statuses.tell(RetainPodStatuses { known: known.clone() });
        let probes = self.deps.probes.retain_probes.tell(RetainProbes { known: known.clone() });
        if status.is_ok() && probes.is_ok() {
            self.retained = known;
        }
    }

    fn collect_garbage(&mut self, ctx: &mut Ctx<Self>) {
        self.gc_wanted = false;
        // Said again now and then, as nobody tells whether it was heard.
        self.retained.clear();
        // Rows that somebody followed to the end of their pod.
        self.deps.probes.view.sweep();
        self.deps.workers.sweep();
        self.deps.volumes.view.sweep();
        self.deps.cgroups.view.sweep();
        if std::mem::replace(&mut self.gc_running, true) {
            return;
        }
        let round = effects::GcRound {
            deps: self.deps.clone(),
            config: self.config.clone(),
            desired: self.desired.values().flat_map(|pods| pods.keys().cloned()).collect(),
            sources_ready: self.all_sources_ready(),
            now: Timestamp(ctx.clock().unix_nanos()),
        };
        ctx.run(round.run(), |act, (), _ctx| act.gc_running = false);
    }
}

/// The runtime was listed and asked for its status, at least once.
fn is_known(info: &RuntimeInfo) -> bool {
    info.listed && !info.name.is_empty()
}

impl Handler<SetPods> for PodManager {
    type Result = ();

    fn handle(&mut self, msg: SetPods, ctx: &mut Ctx<Self>) {
        if !is_known(&self.deps.runtime.view.info.get()) {
            // What runs already and whether there is a network is not known yet: nothing can be decided (pod-lifecycle 1.2).
            self.postponed.insert(msg.source, msg.pods);
            return;
        }
        self.set_pods(msg, ctx);
    }
}

impl PodManager {
    fn set_pods(&mut self, msg: SetPods, ctx: &mut Ctx<Self>) {
        let known = self.desired.get(&msg.source).cloned().unwrap_or_default();
        let now = Timestamp(ctx.clock().unix_nanos());
        let merged = merge(msg.source.as_str(), &known, msg.pods, now);
        for pod in &merged.duplicates {
            let text = format!(
                "Error validating pod {} from {} due to duplicate pod name \"{}\", ignoring",
                model::pod::describe(pod),
                msg.source.as_str(),
                model::pod::name(pod)
            );
            self.emit(pod, EventType::Warning, "FailedValidation", text);
        }
        self.seen.insert(msg.source);
        self.desired.insert(msg.source, merged.next);
        let mut changes = merged.changes;
        self.put_in_order(&mut changes);
        for change in changes {
            self.apply(msg.source, change, ctx);
        }
        ctx.fault_point("merged");
        // At once: new static pods wait for the grant of their name.
        self.keep_house(ctx);
    }
}

impl Handler<KillPod> for PodManager {
    type Result = actor::MessageResult<KillPod>;

    fn handle(&mut self, msg: KillPod, _ctx: &mut Ctx<Self>) -> Self::Result {
        let known = self.worker(&msg.uid).is_some();
        let request = KillRequest { grace_s: msg.grace_s, evicted: msg.evict, deleted: false, reason: msg.reason };
        let pod = self.pod(&msg.uid).cloned();
        self.tell(&msg.uid, UpdatePod { pod, kind: UpdateKind::Kill(request) });
        actor::MessageResult(known)
    }
}
