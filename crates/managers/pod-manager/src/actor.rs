//! The actor: takes full sets in, hands pods to their workers, keeps house.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Ctx, Handler, supervised};
use contract::Crew;
use contract::board::{BoardPoster, BoardReader, ValueReader};
use contract::config_sources::Source;
use contract::node::NodeView;
use contract::pod_manager::{DesiredPod, SetPods};
use contract::pod_worker::{KillRequest, UpdateKind, UpdatePod, WorkerState};
use contract::runtime::{Observed, RuntimeInfo};
use contract::status::StatusEntry;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp};
use pod_admission::NodeFacts;
use ports::api::ApiServer;
use ports::host::HostFs;
use ports::journal::Journal;

use crate::admission::HeldBack;
use crate::gc::GcPolicy;
use crate::housekeeping::Chore;
use crate::merge::{Change, merge};
use crate::mirrors::Mirrors;

mod house;

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
    /// What this machine knows of itself; the Node object adds to it.
    pub facts: NodeFacts,
    /// `None`: standalone. Mirror pods are made here, and the Node is read again.
    pub api: Option<Arc<dyn ApiServer>>,
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

/// What one generation of the actor and its effects work with.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) crew: Crew<contract::PodManager>,
    pub(crate) rows: BoardPoster<PodUid, DesiredPod>,
    pub(crate) workers: BoardReader<PodUid, WorkerState>,
    pub(crate) observed: BoardReader<PodUid, Observed>,
    pub(crate) runtime: ValueReader<RuntimeInfo>,
    pub(crate) statuses: BoardReader<PodUid, StatusEntry>,
    pub(crate) node: ValueReader<NodeView>,
}

/// Changes that come within this time are answered by one round of housekeeping.
const SETTLE: Duration = Duration::from_millis(5);

/// The actor.
#[derive(Debug)]
pub struct PodManager {
    pub(crate) tools: Arc<Tools>,
    pub(crate) desired: BTreeMap<Source, BTreeMap<PodUid, Arc<Pod>>>,
    pub(crate) rejected: BTreeMap<PodUid, (String, String)>,
    /// Pods that wait with a reason, or are not decided about yet.
    pub(crate) held_back: BTreeMap<PodUid, HeldBack>,
    pub(crate) mirrors: Mirrors,
    /// Pods whose objects are followed.
    pub(crate) held: BTreeSet<PodUid>,
    seen: BTreeSet<Source>,
    /// Sets that came before the runtime was known.
    postponed: BTreeMap<Source, SetPods>,
    arrivals: Vec<PodUid>,
    restart_requested: BTreeSet<PodUid>,
    /// Pods whose worker was made and is not forgotten yet.
    pub(crate) driven: BTreeSet<PodUid>,
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
        let (housekeeping, gc) = (self.tools.config.housekeeping, self.tools.config.gc_period);
        ctx.every(housekeeping, |act, ctx| act.keep_house(ctx));
        ctx.every(gc, |act, ctx| act.collect_garbage(ctx));
        ctx.watch(self.tools.runtime.subscribe(), |act, info, ctx| {
            if is_known(&info) {
                for set in std::mem::take(&mut act.postponed).into_values() {
                    act.set_pods(set, ctx);
                }
            }
        });
        ctx.watch(self.tools.workers.changes(), |act, _version, ctx| act.keep_house_soon(ctx));
        if self.tools.deps.api.is_some() {
            ctx.watch(self.tools.node.subscribe(), |act, _node, ctx| act.keep_mirrors(ctx));
        }
    }
}
supervised!(PodManager);

impl PodManager {
    /// A fresh instance; what it knew before is read back from the boards when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::PodManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let tools = Tools {
            config,
            deps,
            rows: crew.poster(),
            workers: crew.board(),
            observed: crew.board(),
            runtime: crew.value(),
            statuses: crew.board(),
            node: crew.value(),
            crew,
        };
        Self {
            tools: Arc::new(tools),
            desired: BTreeMap::new(),
            rejected: BTreeMap::new(),
            held_back: BTreeMap::new(),
            mirrors: Mirrors::default(),
            held: BTreeSet::new(),
            seen: BTreeSet::new(),
            postponed: BTreeMap::new(),
            arrivals: Vec::new(),
            restart_requested: BTreeSet::new(),
            driven: BTreeSet::new(),
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
        for (uid, row) in self.tools.rows.snapshot() {
            let seen = model::pod::annotation(&row.pod, model::pod::CONFIG_SEEN).unwrap_or_default().to_owned();
            arrivals.push((seen, uid.clone()));
            if let Some(rejection) = &row.rejected {
                self.rejected.insert(uid.clone(), rejection.clone());
            }
            if let Some(mirror) = &row.mirror {
                self.mirrors.known.insert(model::pod::full_name(mirror), mirror.clone());
            }
            if row.source == Source::Api {
                self.held.insert(uid.clone());
            }
            self.desired.entry(row.source).or_default().insert(uid, row.pod.clone());
        }
        arrivals.sort();
        self.arrivals = arrivals.into_iter().map(|(_, uid)| uid).collect();
        for (uid, worker) in self.tools.workers.snapshot() {
            self.driven.insert(uid.clone());
            self.held.insert(uid.clone());
            let wanted = self.desired.values().any(|pods| pods.contains_key(&uid));
            if wanted && worker.deleted {
                self.restart_requested.insert(uid);
            }
        }
    }

    pub(crate) fn pod(&self, uid: &PodUid) -> Option<&Arc<Pod>> {
        self.desired.values().find_map(|pods| pods.get(uid))
    }

    pub(crate) fn all_sources_ready(&self) -> bool {
        self.tools.config.sources.is_subset(&self.seen)
    }

    pub(crate) fn seen(&self, source: Source) -> bool {
        self.seen.contains(&source)
    }

    fn apply(&mut self, source: Source, change: Change, ctx: &mut Ctx<Self>) {
        match change {
            Change::Add(pod) => self.add(source, pod, ctx),
            Change::Update(pod) | Change::Delete(pod) => {
                let uid = model::pod::uid(&pod);
                self.post(source, &pod);
                if self.has_worker(&uid) {
                    self.hold_objects(&pod);
                }
            }
            Change::Reconcile(pod) => self.post(source, &pod),
            Change::Remove(pod) => {
                let uid = model::pod::uid(&pod);
                self.tools.rows.remove(&uid);
                self.rejected.remove(&uid);
                self.held_back.remove(&uid);
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
        if !self.arrivals.contains(&uid) {
            self.arrivals.push(uid.clone());
        }
        if self.tools.workers.get(&uid).is_some_and(|w| w.termination_requested) {
            let is_static = if model::pod::is_static(&pod) { "true" } else { "" };
            metrics::pods::RESTARTED.with_label_values(&[is_static]).inc();
            self.restart_requested.insert(uid);
            return self.post(source, &pod);
        }
        let ended = is_terminal(&self.with_last_word(pod.clone()));
        let starts = ended || self.admit(source, &pod, None, ctx);
        self.post(source, &pod);
        if starts {
            self.begin(&pod, ctx);
        }
    }

    /// The pod may start: it gets its worker.
    pub(crate) fn begin(&mut self, pod: &Arc<Pod>, ctx: &mut Ctx<Self>) {
        let uid = model::pod::uid(pod);
        if self.end_first_life(pod, ctx) {
            return;
        }
        self.hold_objects(pod);
        #[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
        metrics::pods::CONTAINERS_PER_POD.observe(model::pod::regular_containers(pod).len() as f64);
        let pod = self.with_last_word(pod.clone());
        self.start_worker(&uid, Some(pod), UpdateKind::Create);
    }

    /// A pod of the API that came to its end here does not run again, also when the API has not been told yet.
    fn with_last_word(&self, pod: Arc<Pod>) -> Arc<Pod> {
        let row = self.tools.statuses.get(&model::pod::uid(&pod));
        match row.filter(|r| model::pod::is_terminal_phase(r.status.phase.as_deref())) {
            Some(row) if !model::pod::is_static(&pod) && !is_terminal(&pod) => {
                Arc::new(Pod { status: Some((*row.status).clone()), ..(*pod).clone() })
            }
            _ => self.with_mirror_status(pod),
        }
    }

    /// A static pod that an earlier daemon left running goes on with what the API was told of it.
    fn with_mirror_status(&self, pod: Arc<Pod>) -> Arc<Pod> {
        let alive = || self.tools.observed.get(&model::pod::uid(&pod)).is_some_and(|row| row.pod.is_alive());
        let mirror = self.mirrors.known.get(&model::pod::full_name(&pod));
        match mirror.filter(|m| !is_terminal(m) && crate::mirror::is_mirror_of(m, &pod)) {
            Some(mirror) if model::pod::is_static(&pod) && alive() => {
                Arc::new(Pod { status: mirror.status.clone(), ..(*pod).clone() })
            }
            _ => pod,
        }
    }

    pub(crate) fn emit(&self, pod: &Pod, kind: EventType, reason: impl Into<Reason>, message: String) {
        let object = EventObject::Pod {
            namespace: model::pod::namespace(pod).to_owned(),
            name: model::pod::name(pod).to_owned(),
            uid: model::pod::uid(pod),
            field_path: String::new(),
        };
        self.tools.crew.emit(NodeEvent { kind, reason: reason.into(), message, object });
    }

    pub(crate) fn post(&mut self, source: Source, pod: &Arc<Pod>) {
        let uid = model::pod::uid(pod);
        let rejected = self.rejected.get(&uid).cloned();
        let mirror = self.mirrors.known.get(&model::pod::full_name(pod)).filter(|_| source != Source::Api).cloned();
        self.tools.rows.post(uid, Arc::new(DesiredPod { pod: pod.clone(), source, rejected, mirror }));
    }

    /// LIFE-OF-A-POD 4/12: one worker per UID; updates coalesce there.
    fn start_worker(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>, kind: UpdateKind) {
        self.driven.insert(uid.clone());
        self.tell(uid, pod, kind);
    }

    /// Whether a UID has a worker. One that an earlier generation made may have shown itself on the board only after this
    /// one looked.
    fn has_worker(&mut self, uid: &PodUid) -> bool {
        if self.tools.workers.get(uid).is_some() {
            self.driven.insert(uid.clone());
        }
        self.driven.contains(uid)
    }

    /// Tells the worker of a pod, if there is one. What it refuses or dies over, housekeeping tells it again, until its row
    /// shows it.
    pub(crate) fn tell(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>, kind: UpdateKind) {
        if !self.has_worker(uid) {
            return;
        }
        if let Err(e) = self.tools.crew.tell(UpdatePod { uid: uid.clone(), pod, kind }) {
            tracing::warn!(%uid, error = %e, "worker did not take the update, will be told again");
        }
    }

    fn kill_removed(&mut self, uid: &PodUid, pod: Option<Arc<Pod>>) {
        let request = KillRequest { deleted: true, ..KillRequest::default() };
        self.tell(uid, pod, UpdateKind::Kill(request));
    }

    fn keep_house_soon(&mut self, ctx: &mut Ctx<Self>) {
        if !std::mem::replace(&mut self.housekeeping_due, true) {
            ctx.after(SETTLE, |act, ctx| act.keep_house(ctx));
        }
    }
}

/// Reason of an event.
type Reason = Cow<'static, str>;

fn is_terminal(pod: &Pod) -> bool {
    model::pod::is_terminal_phase(pod.status.as_ref().and_then(|s| s.phase.as_deref()))
}

/// The runtime was listed and asked for its status, at least once.
fn is_known(info: &RuntimeInfo) -> bool {
    info.listed && !info.name.is_empty()
}

impl Handler<SetPods> for PodManager {
    type Result = ();

    fn handle(&mut self, msg: SetPods, ctx: &mut Ctx<Self>) {
        if msg.source == Source::Unknown {
            // Two sources that are not known here would take each other's pods away.
            return tracing::error!(pods = msg.pods.len(), "pods of a source that is not known here are not taken");
        }
        if !is_known(&self.tools.runtime.get()) {
            // What runs already and whether there is a network is not known yet: nothing can be decided (pod-lifecycle 1.2).
            self.postponed.insert(msg.source, msg);
            return;
        }
        self.set_pods(msg, ctx);
    }
}

impl PodManager {
    fn set_pods(&mut self, mut msg: SetPods, ctx: &mut Ctx<Self>) {
        if msg.source == Source::Api {
            // Mirror pods stand for others; they never run.
            let (mirrors, pods) = msg.pods.into_iter().partition(|pod| model::pod::is_mirror(pod));
            self.set_mirrors(mirrors);
            msg.pods = pods;
        }
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
        if !msg.provisional {
            self.seen.insert(msg.source);
        }
        self.desired.insert(msg.source, merged.next);
        let mut changes = merged.changes;
        self.put_in_order(&mut changes);
        for change in changes {
            let uid = model::pod::uid(change.pod());
            if !ctx.for_subject(uid.as_str(), |ctx| self.apply(msg.source, change, ctx)) {
                // As before the set: the next one brings the change again.
                let pods = self.desired.entry(msg.source).or_default();
                match known.get(&uid) {
                    Some(pod) => pods.insert(uid, pod.clone()),
                    None => pods.remove(&uid),
                };
            }
        }
        ctx.fault_point("merged");
        // At once: new static pods wait for the grant of their name.
        self.keep_house(ctx);
    }
}
