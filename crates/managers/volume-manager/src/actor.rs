//! The actor: which pods want their volumes, and the order of work on each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actor::{Actor, Clock, Ctx, Deferred, FaultHandle, Handler, on_pool, supervised};
use contract::event::EventHandle;
use contract::view::Board;
use contract::volume::{
    MakePodDirs, MountVolumes, MountedVolumes, PodVolumes, PrepareSubPath, RemovePodDir, UnmountVolumes, VolumeError,
};
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, pod};
use ports::host::{HostFs, Mounter};

use crate::layout::{PodLayout, pods};

use crate::Serial;
use crate::set_up::{self, Failed};
use crate::tear_down::{self, Proof};
use crate::{sub_path, wanted};

/// How long a pod waits for its volumes before its worker hears of it.
const WAIT: Duration = Duration::from_secs(123);
/// First pause between tries; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How often the directories are looked at without an occasion.
const RESCAN: Duration = Duration::from_secs(60);

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Root directory of the node, `/var/lib/kubelet` for a kubelet.
    pub root_dir: PathBuf,
    /// Memory that pods may use together, in bytes: the ceiling of a tmpfs. Not positive: none.
    pub memory_allocatable_bytes: i64,
}

/// What VolumeManager works with.
#[derive(Clone)]
pub struct Deps {
    /// Files.
    pub fs: Arc<dyn HostFs>,
    /// Mounts.
    pub mounts: Arc<dyn Mounter>,
    /// Board of pod directories, which this actor posts.
    pub view: Board<PodUid, PodVolumes>,
    /// Events of pods.
    pub events: EventHandle,
    /// Order among the effects on one pod.
    pub serial: Serial,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("volume_manager::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct VolumeManager {
    tools: Tools,
    /// Pods whose volumes are to be set up; cleared when they are to go, so that a late try makes nothing anew.
    wanted: BTreeMap<PodUid, Arc<AtomicBool>>,
}

/// What a piece of work holds.
#[derive(Clone, Debug)]
struct Tools {
    config: Arc<Config>,
    deps: Arc<Deps>,
}

impl Actor for VolumeManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.rescan(ctx);
        ctx.every(RESCAN, |act, ctx| act.rescan(ctx));
    }
}
supervised!(VolumeManager);

impl VolumeManager {
    /// A fresh instance; what is there is read from the root directory when it starts.
    #[must_use]
    pub fn new(config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self { tools: Tools { config, deps }, wanted: BTreeMap::new() }
    }

    /// Brings the board in line with the root directory.
    fn rescan(&mut self, ctx: &mut Ctx<Self>) {
        let (tools, faults) = (self.tools.clone(), ctx.faults());
        let work = async move {
            faults.hit("rescan").await;
            let listing = {
                let tools = tools.clone();
                on_pool(move || tools.pod_uids()).await
            };
            let uids = match listing {
                Ok(uids) => uids,
                Err(e) => {
                    tracing::warn!(error = %e, "pod directories cannot be listed");
                    return;
                }
            };
            let shown: Vec<PodUid> = tools.deps.view.snapshot().into_keys().collect();
            for uid in uids.into_iter().chain(shown) {
                // In turn with other work on the pod: a row never tells of the past.
                let (tools, of) = (tools.clone(), uid.clone());
                tools.deps.serial.clone().run(&uid, move || tools.show(&of, tools.last_error(&of))).await;
            }
        };
        ctx.run(work, |_: &mut Self, (), _| {});
    }

    /// The pod's volumes are to go: tries under way end without making anything.
    fn forget(&mut self, uid: &PodUid) {
        if let Some(flag) = self.wanted.remove(uid) {
            flag.store(false, Ordering::Release);
        }
    }

    /// One piece of work on a pod, between two fault points.
    fn work<R: Send + 'static>(
        &self,
        uid: &PodUid,
        points: [&'static str; 2],
        faults: FaultHandle,
        work: impl FnOnce(&Tools, &PodLayout) -> Result<R, VolumeError> + Send + 'static,
    ) -> Deferred<Self, Result<R, VolumeError>> {
        let (tools, uid) = (self.tools.clone(), uid.clone());
        Deferred::new(async move {
            faults.hit(points[0]).await;
            let serial = tools.deps.serial.clone();
            let of = uid.clone();
            let out = serial.run(&uid, move || {
                let layout = PodLayout::new(&tools.config.root_dir, &of)?;
                let out = work(&tools, &layout);
                tools.show(&of, out.as_ref().err().map(|e| e.message.clone()));
                out
            });
            let out = out.await;
            faults.hit(points[1]).await;
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
                if self.deps.view.get(uid).is_none_or(|old| *old != row) {
                    self.deps.view.post(uid.clone(), Arc::new(row));
                }
            }
            None => self.deps.view.remove(uid),
        }
    }

    fn last_error(&self, uid: &PodUid) -> Option<String> {
        self.deps.view.get(uid)?.error.clone()
    }

    fn tell(&self, pod: &Pod, failed: &Failed) {
        let object = EventObject::Pod {
            namespace: pod::namespace(pod).to_owned(),
            name: pod::name(pod).to_owned(),
            uid: pod::uid(pod),
            field_path: String::new(),
        };
        let message = format!("MountVolume.SetUp failed for volume \"{}\" : {}", failed.volume, failed.error);
        self.deps.events.emit(NodeEvent { kind: EventType::Warning, reason: "FailedMount", message, object });
    }

    /// Tries until all volumes are in place, one cannot be had, time is up, or nobody wants them any more.
    async fn mount(self, pod: Arc<Pod>, still: Arc<AtomicBool>, clock: Clock, faults: FaultHandle) -> Mounted {
        let began = clock.now();
        let mut pause = FIRST_PAUSE;
        loop {
            faults.hit("mount").await;
            let (tools, wants, of) = (self.clone(), still.clone(), pod.clone());
            let uid = pod::uid(&pod);
            let out = self.deps.serial.run(&uid, move || {
                // Asked again inside of the pod's turn: an unmount may have come first.
                wants.load(Ordering::Acquire).then(|| {
                    let out = set_up::all(&tools.deps, &tools.config, &of);
                    let error = out.as_ref().err().map(|f| describe(f));
                    tools.show(&pod::uid(&of), error);
                    out
                })
            });
            let out = out.await;
            faults.hit("mounted").await;
            let failed = match out {
                None => return Err(VolumeError { message: "the pod no longer wants its volumes".to_owned() }),
                Some(Ok(volumes)) => return Ok(Arc::new(volumes)),
                Some(Err(failed)) => failed,
            };
            let hopeless: Vec<Failed> = failed.iter().filter(|f| f.hopeless).cloned().collect();
            if !hopeless.is_empty() {
                return Err(not_mounted(&failed, &hopeless, &describe(&hopeless)));
            }
            failed.iter().for_each(|f| self.tell(&pod, f));
            if clock.now().saturating_duration_since(began) + pause > WAIT {
                return Err(not_mounted(&failed, &[], &describe(&failed)));
            }
            clock.sleep(pause).await;
            pause *= 2;
        }
    }
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
    VolumeError { message }
}

impl Handler<MakePodDirs> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, MakePodDirs { uid }: MakePodDirs, ctx: &mut Ctx<Self>) -> Self::Result {
        self.work(&uid, ["make-dirs", "made-dirs"], ctx.faults(), |tools, layout| set_up::pod_dirs(&tools.deps, layout))
    }
}

impl Handler<MountVolumes> for VolumeManager {
    type Result = Deferred<Self, Mounted>;

    fn handle(&mut self, MountVolumes { pod }: MountVolumes, ctx: &mut Ctx<Self>) -> Self::Result {
        if wanted::used_volumes(&pod).is_empty() {
            return Deferred::ready(Ok(Arc::default()));
        }
        let fresh = || Arc::new(AtomicBool::new(true));
        let still = self.wanted.entry(pod::uid(&pod)).or_insert_with(fresh).clone();
        Deferred::new(self.tools.clone().mount(pod, still, ctx.clock().clone(), ctx.faults()))
    }
}

impl Handler<PrepareSubPath> for VolumeManager {
    type Result = Deferred<Self, Result<PathBuf, VolumeError>>;

    fn handle(&mut self, ask: PrepareSubPath, ctx: &mut Ctx<Self>) -> Self::Result {
        let still = self.wanted.get(&ask.uid).cloned();
        let uid = ask.uid.clone();
        self.work(&uid, ["sub-path", "sub-path-done"], ctx.faults(), move |tools, _| {
            if still.is_some_and(|s| !s.load(Ordering::Acquire)) {
                return Err(VolumeError { message: "the pod no longer wants its volumes".to_owned() });
            }
            sub_path::prepare(&tools.deps, &tools.config, &ask)
        })
    }
}

impl Handler<UnmountVolumes> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, UnmountVolumes { uid }: UnmountVolumes, ctx: &mut Ctx<Self>) -> Self::Result {
        self.forget(&uid);
        self.work(&uid, ["unmount", "unmounted"], ctx.faults(), |tools, layout| {
            tear_down::volumes_of(&tools.deps, layout, Proof::Ended).map_err(|e| {
                let left = tear_down::present(&*tools.deps.fs, layout).unwrap_or_default();
                VolumeError { message: format!("mounted volumes=[{}]: {e}", left.join(" ")) }
            })
        })
    }
}

impl Handler<RemovePodDir> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, RemovePodDir { uid }: RemovePodDir, ctx: &mut Ctx<Self>) -> Self::Result {
        self.forget(&uid);
        self.work(&uid, ["remove-dir", "removed-dir"], ctx.faults(), |tools, layout| {
            tear_down::pod_dir(&tools.deps, layout).map_err(|message| VolumeError { message })
        })
    }
}
