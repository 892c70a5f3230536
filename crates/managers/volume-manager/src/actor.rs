//! The actor: which pods want their volumes, and the order of work on each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Clock, Ctx, Deferred, Effects, Handler, SpawnHandle, supervised};
use contract::Crew;
use contract::board::{BoardPoster, BoardReader};
use contract::objects::ObjectVersion;
use contract::volume::{
    MakePodDirs, MountVolumes, MountedVolumes, PodVolumes, PrepareSubPath, RemovePodDir, UnmountVolumes, VolumeError,
};
use metrics::actors::Phase;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use model::object::ObjectRef;
use model::{PodUid, Timestamp, pod};
use ports::host::{HostFs, Mounter};

use crate::Serial;
use crate::fetch;
use crate::layout::{PodLayout, pods};
use crate::ledger::{Ledger, Seen, Wish};
use crate::projected::Content;
use crate::refresh::Occasion;
use crate::set_up::{self, Failed, Outcome};
use crate::tear_down::{self, Proof};
use crate::{sub_path, wanted};

/// How long a pod waits for its volumes before its worker hears of it.
const WAIT: Duration = Duration::from_secs(123);
/// First pause between tries; doubled for each further one.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How often the directories are looked at without an occasion.
const RESCAN: Duration = Duration::from_secs(60);

/// Settings.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Root directory of the node, `/var/lib/kubelet` for a kubelet.
    pub root_dir: PathBuf,
    /// Memory that pods may use together, in bytes: the ceiling of a tmpfs. Not positive: none.
    pub memory_allocatable_bytes: i64,
    /// Allocatable resources of the node: stand in for absent limits in downwardAPI files.
    pub allocatable: BTreeMap<String, ApiQuantity>,
}

/// What VolumeManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Files.
    pub fs: Arc<dyn HostFs>,
    /// Mounts.
    pub mounts: Arc<dyn Mounter>,
    /// Order among the effects on one pod.
    pub serial: Serial,
    /// Pods that want their volumes, made once for the life of the node.
    pub ledger: Ledger,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("volume_manager::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct VolumeManager {
    pub(crate) tools: Tools,
    /// Pods whose volumes are being brought in line.
    pub(crate) refreshing: BTreeSet<PodUid>,
    /// The root directory is being read.
    rescanning: bool,
    /// When to look at a pod's volumes without an occasion: a token ends, or a try failed.
    pub(crate) timers: BTreeMap<PodUid, SpawnHandle>,
}

/// What a piece of work holds.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) crew: Crew<contract::VolumeManager>,
    /// Pod directories.
    pub(crate) rows: BoardPoster<PodUid, PodVolumes>,
    /// Versions of configMaps and secrets.
    pub(crate) versions: BoardReader<ObjectRef, ObjectVersion>,
}

/// What a try takes from its actor.
#[derive(Debug)]
pub(crate) struct Moment {
    pub clock: Clock,
    pub effects: Effects,
    pub random: u32,
}

/// One try on all volumes of a pod.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The pod that it was made for.
    pub pod: Arc<Pod>,
    pub outcome: Outcome,
    /// What went into it.
    pub seen: Seen,
    /// When a token is to be asked for anew.
    pub due: Option<Timestamp>,
}

impl Actor for VolumeManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.rescan(ctx);
        ctx.every(RESCAN, |act, ctx| act.rescan(ctx));
        self.follow_objects(ctx);
    }
}
supervised!(VolumeManager);

impl VolumeManager {
    /// A fresh instance; what is there is read from the root directory when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::VolumeManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let tools = Tools { config, deps, rows: crew.poster(), versions: crew.board(), crew };
        Self { tools, refreshing: BTreeSet::new(), rescanning: false, timers: BTreeMap::new() }
    }

    /// Brings the board in line with the root directory; one run at a time, for a directory that hangs must not gather them.
    fn rescan(&mut self, ctx: &mut Ctx<Self>) {
        if std::mem::replace(&mut self.rescanning, true) {
            return;
        }
        let (tools, effects) = (self.tools.clone(), ctx.effects());
        let work = async move {
            effects.hit("rescan").await;
            let listing = {
                let tools = tools.clone();
                effects.blocking(Class::HostFiles, move || tools.pod_uids()).await
            };
            let uids = match listing {
                Ok(uids) => uids,
                Err(e) => {
                    tracing::warn!(error = %e, "pod directories cannot be listed");
                    return;
                }
            };
            let shown: Vec<PodUid> = tools.rows.snapshot().into_keys().collect();
            for uid in uids.into_iter().chain(shown) {
                // In turn with other work on the pod: a row never tells of the past.
                let (tools, serial, of) = (tools.clone(), tools.deps.serial.clone(), uid.clone());
                let show = move || tools.show(&of, tools.last_error(&of));
                serial.run(&uid, &effects, Class::HostFiles, show).await;
            }
        };
        ctx.run(work, |act: &mut Self, (), _| act.rescanning = false);
    }

    /// The pod's volumes are to go: tries under way end without making anything.
    fn forget(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        self.tools.deps.ledger.forget(uid);
        self.disarm(uid, ctx);
    }

    pub(crate) fn moment(ctx: &mut Ctx<Self>) -> Moment {
        Moment { clock: ctx.clock().clone(), effects: ctx.effects(), random: ctx.rng().u32(..) }
    }

    /// One piece of work on a pod, between two fault points.
    fn work<R: Send + 'static>(
        &self,
        uid: &PodUid,
        points: [&'static str; 2],
        (class, effects): (Class, Effects),
        work: impl FnOnce(&Tools, &PodLayout) -> Result<R, VolumeError> + Send + 'static,
    ) -> Deferred<Self, Result<R, VolumeError>> {
        let (tools, uid) = (self.tools.clone(), uid.clone());
        Deferred::new(async move {
            effects.hit(points[0]).await;
            let serial = tools.deps.serial.clone();
            let of = uid.clone();
            let out = serial.run(&uid, &effects, class, move || {
                let layout = PodLayout::new(&tools.config.root_dir, &of)?;
                let out = work(&tools, &layout);
                tools.show(&of, out.as_ref().err().map(|e| e.message.clone()));
                out
            });
            let out = out.await;
            effects.hit(points[1]).await;
            out
        })
    }
}

impl Tools {
    fn pod_uids(&self) -> Result<Vec<PodUid>, String> {
        match self.deps.fs.list_dir(&pods(&self.config.root_dir)) {
            Ok(entries) => Ok(entries.into_iter().filter(|e| e.is_dir).map(|e| PodUid::from(e.name)).collect()),
            Err(e) if e.is_not_found() => Ok(Vec::new()),
            Err(e) => Err(actor::chain(&e)),
        }
    }

    /// Posts what the pod's directory shows. Blocks.
    fn show(&self, uid: &PodUid, error: Option<String>) {
        let Ok(layout) = PodLayout::new(&self.config.root_dir, uid) else { return };
        match tear_down::present(&*self.deps.fs, &layout) {
            Some(present) => {
                let row = PodVolumes { present, error };
                if self.rows.get(uid).is_none_or(|old| *old != row) {
                    self.rows.post(uid.clone(), Arc::new(row));
                }
            }
            None => {
                self.rows.remove(uid);
            }
        }
    }

    fn last_error(&self, uid: &PodUid) -> Option<String> {
        self.rows.get(uid)?.error.clone()
    }

    pub(crate) fn tell(&self, pod: &Pod, failed: &Failed) {
        let object = EventObject::Pod {
            namespace: pod::namespace(pod).to_owned(),
            name: pod::name(pod).to_owned(),
            uid: pod::uid(pod),
            field_path: String::new(),
        };
        let message = format!("MountVolume.SetUp failed for volume \"{}\" : {}", failed.volume, failed.error);
        self.crew.emit(NodeEvent { kind: EventType::Warning, reason: "FailedMount".into(), message, object });
    }

    /// One try: fetches, then writes in the pod's turn. `None` when the pod wants nothing any more.
    pub(crate) async fn attempt(&self, uid: &PodUid, wish: &Wish, moment: &Moment) -> Option<Attempt> {
        let _turn = wish.turn.lock().await;
        let pod = self.deps.ledger.get(uid)?.pod;
        let needs = fetch::needs(&pod);
        // Before the fetch: what changes meanwhile is seen to be newer.
        let seen = fetch::versions(&self.versions, fetch::refs(&pod, &needs));
        let (fetched, due) = fetch::all(&self.crew, &pod, &needs).await;
        let content = Content { fetched, now: Timestamp(moment.clock.unix_nanos()), random: moment.random };
        let (tools, wants, of) = (self.clone(), wish.clone(), pod.clone());
        let out = self.deps.serial.run(uid, &moment.effects, class_of(&pod), move || {
            // Asked again inside of the pod's turn: an unmount may have come first.
            wants.is_live().then(|| {
                let out = set_up::all(&tools.deps, &tools.config, &of, &content);
                let troubles: Vec<Failed> = out.failed.iter().chain(&out.stale).cloned().collect();
                tools.show(&pod::uid(&of), (!troubles.is_empty()).then(|| describe(&troubles)));
                out
            })
        });
        out.await.map(|outcome| Attempt { pod, outcome, seen, due })
    }

    /// Tries until all volumes are in place, one cannot be had, time is up, or nobody wants them any more.
    async fn mount(self, pod: Arc<Pod>, wish: Wish, mut moment: Moment) -> (Mounted, Option<Attempt>) {
        let began = moment.clock.now();
        let mut pause = FIRST_PAUSE;
        loop {
            moment.effects.hit("mount").await;
            let out = self.attempt(&pod::uid(&pod), &wish, &moment).await;
            moment.effects.hit("mounted").await;
            moment.random = moment.random.wrapping_add(1);
            let Some(attempt) = out else {
                return (Err(VolumeError::new("the pod no longer wants its volumes")), None);
            };
            let failed = &attempt.outcome.failed;
            if failed.is_empty() {
                Phase::Volumes.took(moment.clock.now().saturating_duration_since(began));
                return (Ok(Arc::new(attempt.outcome.done.clone())), Some(attempt));
            }
            let hopeless: Vec<Failed> = failed.iter().filter(|f| f.hopeless).cloned().collect();
            if !hopeless.is_empty() {
                return (Err(not_mounted(failed, &hopeless, &describe(&hopeless))), None);
            }
            failed.iter().for_each(|f| self.tell(&pod, f));
            if moment.clock.now().saturating_duration_since(began) + pause > WAIT {
                return (Err(not_mounted(failed, &[], &describe(failed))), None);
            }
            tokio::select! {
                () = moment.clock.sleep(pause) => pause *= 2,
                // What was missing may have come.
                () = self.objects_changed(&attempt.seen) => {}
            }
        }
    }

    /// Waits until an object is known in another version than these.
    async fn objects_changed(&self, seen: &Seen) {
        let board = &self.versions;
        let mut changes = board.changes();
        while fetch::versions(board, seen.keys().cloned()) == *seen {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

/// A hostPath may lie on a network file system that hangs.
fn class_of(pod: &Pod) -> Class {
    let volumes = pod.spec.as_ref().and_then(|s| s.volumes.as_deref()).unwrap_or_default();
    if volumes.iter().any(|v| v.host_path.is_some()) { Class::UserPaths } else { Class::HostFiles }
}

type Mounted = Result<Arc<MountedVolumes>, VolumeError>;

fn describe(failed: &[Failed]) -> String {
    failed.iter().map(|f| f.error.as_str()).collect::<Vec<_>>().join("; ")
}

fn not_mounted(all: &[Failed], unprocessed: &[Failed], cause: &str) -> VolumeError {
    let names = |list: &[Failed]| list.iter().map(|f| f.volume.as_str()).collect::<Vec<_>>().join(" ");
    let message = format!(
        "unmounted volumes=[{}], unattached volumes=[], failed to process volumes=[{}]: {cause}",
        names(all),
        names(unprocessed)
    );
    VolumeError { message, late: unprocessed.is_empty() }
}

impl Handler<MakePodDirs> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, MakePodDirs { uid }: MakePodDirs, ctx: &mut Ctx<Self>) -> Self::Result {
        self.work(&uid, ["make-dirs", "made-dirs"], (Class::HostFiles, ctx.effects()), |tools, layout| {
            set_up::pod_dirs(&tools.deps, layout)
        })
    }
}

impl Handler<MountVolumes> for VolumeManager {
    type Result = Deferred<Self, Mounted>;

    fn handle(&mut self, MountVolumes { pod }: MountVolumes, ctx: &mut Ctx<Self>) -> Self::Result {
        if wanted::used_volumes(&pod).is_empty() {
            return Deferred::ready(Ok(Arc::default()));
        }
        let wish = self.tools.deps.ledger.want(&pod);
        let (moment, wanted_by) = (Self::moment(ctx), wish.clone());
        Deferred::then(self.tools.clone().mount(pod, wish, moment), move |this: &mut Self, (answer, attempt), ctx| {
            if let Some(attempt) = attempt {
                this.note(&wanted_by, &attempt, Occasion::Asked, ctx);
            }
            answer
        })
    }
}

impl Handler<PrepareSubPath> for VolumeManager {
    type Result = Deferred<Self, Result<PathBuf, VolumeError>>;

    fn handle(&mut self, ask: PrepareSubPath, ctx: &mut Ctx<Self>) -> Self::Result {
        let wish = self.tools.deps.ledger.wish(&ask.uid);
        let uid = ask.uid.clone();
        self.work(&uid, ["sub-path", "sub-path-done"], (Class::UserPaths, ctx.effects()), move |tools, _| {
            if wish.is_some_and(|w| !w.is_live()) {
                return Err(VolumeError::new("the pod no longer wants its volumes"));
            }
            sub_path::prepare(&tools.deps, &tools.config, &ask)
        })
    }
}

impl Handler<UnmountVolumes> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, UnmountVolumes { uid }: UnmountVolumes, ctx: &mut Ctx<Self>) -> Self::Result {
        self.forget(&uid, ctx);
        self.work(&uid, ["unmount", "unmounted"], (Class::UserPaths, ctx.effects()), |tools, layout| {
            tear_down::volumes_of(&tools.deps, layout, Proof::Ended).map_err(|e| {
                let left = tear_down::present(&*tools.deps.fs, layout).unwrap_or_default();
                VolumeError::new(format!("mounted volumes=[{}]: {e}", left.join(" ")))
            })
        })
    }
}

impl Handler<RemovePodDir> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, RemovePodDir { uid }: RemovePodDir, ctx: &mut Ctx<Self>) -> Self::Result {
        self.forget(&uid, ctx);
        self.work(&uid, ["remove-dir", "removed-dir"], (Class::UserPaths, ctx.effects()), |tools, layout| {
            tear_down::pod_dir(&tools.deps, layout).map_err(VolumeError::new)
        })
    }
}
