//! The actor: which pods are to have their volumes, and the order of work on each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actor::{Actor, AsyncContext, Class, Ctx, Deferred, Effects, Handler, SpawnHandle, supervised};
use contract::Crew;
use contract::volume::{
    AssignUserNamespace, MakePodDirs, MountVolumes, PrepareSubPath, ReleaseUserNamespace, RemovePodDir, UnmountVolumes,
    VolumeError,
};
use model::userns::UserNamespace;
use model::{PodUid, Timestamp, pod};

use crate::attempt::{Attempt, attempt};
use crate::deps::{Config, Deps, Tools};
use crate::desired::{MountRequest, Mounted};
use crate::layout::PodLayout;
use crate::mount::{self, Answer, Ended, Late};
use crate::persistent::Expected;
use crate::refresh::{self, Occasion};
use crate::task::{TaskContext, cancelled, fault_points};
use crate::tear_down::{self, Left, Proof};
use crate::{board, class, fetch, set_up, spec, sub_path, user_ids};

mod drivers;
mod list;

/// How often the directories are looked at without an occasion.
const RESCAN: Duration = Duration::from_secs(60);

/// The actor.
#[derive(Debug)]
pub struct VolumeManager {
    tools: Tools,
    /// Pods whose volumes are being brought in line.
    refreshing: BTreeSet<PodUid>,
    /// The root directory is being read.
    rescanning: bool,
    /// Directories of pods are being looked at together.
    looking: Arc<AtomicBool>,
    /// Volumes of drivers are being looked for, and somebody asked for another look meanwhile.
    sweeping: Option<bool>,
    /// Volumes that are being unstaged.
    unstaging: BTreeSet<String>,
    /// Volumes that grow, or wait to be tried again.
    growing: BTreeSet<String>,
    /// Pods of which a try goes on that nobody waits for.
    late: BTreeSet<PodUid>,
    /// When to look at a pod's volumes without an occasion: a token ends, or a try failed.
    timers: BTreeMap<PodUid, SpawnHandle>,
    /// What is asked for pods that start soon.
    expected: BTreeMap<PodUid, Expected>,
}

impl Actor for VolumeManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        self.tools.deps.persistent.set_clock(ctx.clock().clone());
        self.rescan(ctx);
        ctx.every(RESCAN, |act, ctx| {
            act.rescan(ctx);
            act.look_for_growth(ctx);
        });
        self.follow_objects(ctx);
    }
}
supervised!(VolumeManager);

impl VolumeManager {
    /// A fresh instance; what is there is read from the root directory when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::VolumeManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let tools = Tools {
            config,
            deps,
            rows: crew.poster(),
            versions: crew.board(),
            drivers: crew.board(),
            node: crew.value(),
            in_use: crew.publisher(),
            crew,
        };
        Self {
            tools,
            refreshing: BTreeSet::new(),
            rescanning: false,
            looking: Arc::default(),
            sweeping: None,
            unstaging: BTreeSet::new(),
            growing: BTreeSet::new(),
            late: BTreeSet::new(),
            timers: BTreeMap::new(),
            expected: BTreeMap::new(),
        }
    }

    /// Brings the board in line with the root directory, which is read once at a time: when it hangs, reads must not gather.
    fn rescan(&mut self, ctx: &mut Ctx<Self>) {
        self.sweep(ctx);
        if !std::mem::replace(&mut self.rescanning, true) {
            ctx.run(board::known(self.tools.clone(), ctx.effects()), |act: &mut Self, uids, ctx| {
                act.rescanning = false;
                let (tools, effects, together) = (act.tools.clone(), ctx.effects(), act.looking.clone());
                let work = async move {
                    let uids = board::changed(tools.clone(), effects.clone(), uids, &together).await;
                    board::rescan(tools, effects, uids).await;
                };
                // Not waited for: a pod that hangs is busy at the next time, and left out.
                ctx.run(work, |_: &mut Self, (), _| ());
            });
        }
    }

    /// The pod's volumes are to go: tries under way end without making anything. Answers whether it wanted any that outlive it.
    fn cancel(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) -> bool {
        self.disarm(uid, ctx);
        self.expected.remove(uid);
        self.tools.deps.desired.cancel(uid);
        self.tools.deps.persistent.unwant(uid)
    }

    /// One piece of work on a pod that makes and takes away no volume, see [`piece`].
    fn work<R: Send + 'static>(
        &self,
        uid: &PodUid,
        points: [&'static str; 2],
        effects: Effects,
        class: impl FnOnce(&Tools, &PodLayout) -> Class + Send + 'static,
        work: impl FnOnce(&Tools, &PodLayout) -> Result<R, VolumeError> + Send + 'static,
    ) -> Deferred<Self, Result<R, VolumeError>> {
        let (tools, uid) = (self.tools.clone(), uid.clone());
        Deferred::new(async move { piece(&tools, &uid, (points, board::note), &effects, class, work).await })
    }

    /// Follows the objects of all pods, also of those that a former generation set up.
    fn follow_objects(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, _) in self.tools.deps.desired.mounted() {
            self.refresh(uid, ctx);
        }
        let changes = self.tools.versions.changes();
        ctx.watch(changes, |act, _version, ctx| act.objects_changed(ctx));
    }

    fn objects_changed(&mut self, ctx: &mut Ctx<Self>) {
        for (uid, versions) in self.tools.deps.desired.mounted() {
            if fetch::versions(&self.tools.versions, versions.keys().cloned()) != versions {
                self.refresh(uid, ctx);
            }
        }
    }

    /// Brings a pod's volumes in line. One at a time; its end looks whether there is more to do.
    fn refresh(&mut self, uid: PodUid, ctx: &mut Ctx<Self>) {
        let Some(desired) = self.tools.deps.desired.get(&uid).filter(|d| d.mounted.is_some()) else { return };
        if !self.refreshing.insert(uid.clone()) {
            return;
        }
        let (tools, task, of, request) = (self.tools.clone(), task_context(ctx), uid.clone(), desired.request.clone());
        let work = async move {
            task.effects.hit("refresh").await;
            let out = attempt(&tools, &of, &request, &task, &Expected::default()).await;
            task.effects.hit("refreshed").await;
            out
        };
        ctx.run(work, move |act: &mut Self, attempt, ctx| {
            act.refreshing.remove(&uid);
            if let Some(attempt) = attempt {
                act.note(&desired.request, &attempt, Occasion::Refreshed, ctx);
            }
        });
    }

    /// Remembers what is in place, reports what could not be brought in line, and arranges the next look.
    fn note(&mut self, request: &MountRequest, attempt: &Attempt, occasion: Occasion, ctx: &mut Ctx<Self>) {
        let Attempt { pod, versions, due, .. } = attempt;
        let uid = pod::uid(pod);
        let failures: BTreeMap<_, _> = attempt.troubles().map(|f| (f.volume.clone(), f.error.clone())).collect();
        let before = self.tools.deps.desired.get(&uid).and_then(|d| d.mounted);
        let is_republished = self.tools.deps.persistent.is_republished(&uid);
        if before.is_none() && failures.is_empty() && fetch::needs(pod).is_empty() && !is_republished {
            return;
        }
        let (report, pause) = refresh::after(before.as_ref(), &failures, occasion);
        if report {
            attempt.troubles().for_each(|f| mount::emit_failed_mount(&self.tools, pod, f));
        }
        let retry = (!failures.is_empty()).then(|| mount::until_next(attempt.troubles(), pause));
        let republished = is_republished.then(|| Arc::new(attempt.outcome.done.clone()));
        let mounted = Mounted { versions: versions.clone(), reported: failures, pause, republished };
        if !self.tools.deps.desired.note_mounted(&uid, request, mounted) {
            return;
        }
        let renew = due.map(|due| refresh::wait_until(due, Timestamp(ctx.clock().unix_nanos())));
        self.disarm(&uid, ctx);
        if let Some(wait) = [retry, renew].into_iter().flatten().min() {
            let of = uid.clone();
            let timer = ctx.after(wait, move |act, ctx| {
                act.timers.remove(&of);
                act.refresh(of, ctx);
            });
            self.timers.insert(uid.clone(), timer);
        }
        if fetch::versions(&self.tools.versions, versions.keys().cloned()) != *versions {
            self.refresh(uid, ctx);
        }
    }

    /// A try that nobody waits for any more comes to its end: what it began would else be begun again and again. Another one of the same
    /// pod that was late meanwhile is given up: it waits behind the first one, in the pod's turn, and what it may have begun after that
    /// the next try begins again.
    fn go_on(&mut self, uid: PodUid, request: MountRequest, late: Late, ctx: &mut Ctx<Self>) {
        if !self.late.insert(uid.clone()) {
            return;
        }
        ctx.run(late, move |act: &mut Self, attempt, ctx| {
            act.late.remove(&uid);
            let Some(attempt) = attempt else { return };
            let failed = &attempt.outcome.failed;
            failed.iter().for_each(|f| mount::emit_failed_mount(&act.tools, &attempt.pod, f));
            if failed.is_empty() {
                act.note(&request, &attempt, Occasion::Asked, ctx);
            }
        });
    }

    fn disarm(&mut self, uid: &PodUid, ctx: &mut Ctx<Self>) {
        if let Some(timer) = self.timers.remove(uid) {
            ctx.cancel_future(timer);
        }
    }
}

/// One piece of work on a pod, between two [`fault_points`]: on a thread of the host's files, unless `class` says that it may
/// meet a path of users there. `post` brings the pod's row in line with it.
async fn piece<R: Send + 'static>(
    tools: &Tools,
    uid: &PodUid,
    ([before, after], post): ([&'static str; 2], board::Post),
    effects: &Effects,
    class: impl FnOnce(&Tools, &PodLayout) -> Class + Send + 'static,
    work: impl FnOnce(&Tools, &PodLayout) -> Result<R, VolumeError> + Send + 'static,
) -> Result<R, VolumeError> {
    effects.hit(before).await;
    let layout = PodLayout::new(&tools.config.root_dir, uid)?;
    let serial = tools.deps.serial.clone();
    let (on, of, at, held) = (tools.clone(), uid.clone(), layout.clone(), tools.clone());
    let work = move || {
        let out = work(&on, &at);
        post(&on, &of, out.as_ref().err().map(|e| e.message.clone()));
        out
    };
    let first = move || match class(&held, &layout) {
        Class::HostFiles => Ok(work()),
        other => Err((other, work)),
    };
    let out = match serial.run(uid, effects, Class::HostFiles, first).await {
        Ok(out) => out,
        Err((class, work)) => serial.run(uid, effects, class, work).await,
    };
    effects.hit(after).await;
    out
}

fn task_context(ctx: &mut Ctx<VolumeManager>) -> TaskContext {
    TaskContext::new(ctx.clock().clone(), ctx.effects(), ctx.rng().u32(..))
}

impl Handler<MakePodDirs> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, MakePodDirs { uid }: MakePodDirs, ctx: &mut Ctx<Self>) -> Self::Result {
        let class = |_: &Tools, _: &PodLayout| Class::HostFiles;
        self.work(&uid, fault_points("make-dirs", "made-dirs"), ctx.effects(), class, |tools, layout| {
            set_up::pod_dirs(&tools.deps, layout)
        })
    }
}

impl Handler<AssignUserNamespace> for VolumeManager {
    type Result = Deferred<Self, Result<UserNamespace, VolumeError>>;

    fn handle(&mut self, AssignUserNamespace { uid }: AssignUserNamespace, ctx: &mut Ctx<Self>) -> Self::Result {
        // Which ids there are may be a question to another machine.
        let class = |tools: &Tools, _: &PodLayout| {
            if tools.deps.user_ids.knows_range() { Class::HostFiles } else { Class::UserPaths }
        };
        let random = ctx.rng().u32(..);
        self.work(&uid, fault_points("assign-ids", "assigned-ids"), ctx.effects(), class, move |tools, layout| {
            let (deps, rules) = (&tools.deps, tools.config.ids);
            user_ids::assign(&deps.user_ids, (&*deps.fs, &*deps.mounts), rules, layout, random)
        })
    }
}

impl Handler<ReleaseUserNamespace> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, ReleaseUserNamespace { uid }: ReleaseUserNamespace, ctx: &mut Ctx<Self>) -> Self::Result {
        let class = |_: &Tools, _: &PodLayout| Class::HostFiles;
        self.work(&uid, fault_points("free-ids", "freed-ids"), ctx.effects(), class, free_ids)
    }
}

impl Handler<MountVolumes> for VolumeManager {
    type Result = Deferred<Self, Answer>;

    fn handle(&mut self, MountVolumes { pod }: MountVolumes, ctx: &mut Ctx<Self>) -> Self::Result {
        if spec::used_volumes(&pod).is_empty() {
            return Deferred::ready(Ok(Arc::default()));
        }
        let uid = pod::uid(&pod);
        let mounted = self.tools.deps.desired.get(&uid).and_then(|d| d.mounted);
        let placed = mounted.and_then(|mounted| mounted.republished_for(&pod));
        let request = self.tools.deps.desired.request(&pod);
        match placed {
            // A driver is being told of them.
            Some(placed) if self.late.contains(&uid) => return Deferred::ready(Ok(placed)),
            _ => {}
        }
        let expected = self.expected.remove(&uid).unwrap_or_default();
        let work = mount::mount(self.tools.clone(), pod, request.clone(), placed, task_context(ctx), expected);
        Deferred::then(work, move |this: &mut Self, Ended { answer, attempt, late }, ctx| {
            if let Some(attempt) = attempt {
                this.note(&request, &attempt, Occasion::Asked, ctx);
            }
            if let Some(late) = late {
                this.go_on(uid, request, late, ctx);
            }
            answer
        })
    }
}

impl Handler<PrepareSubPath> for VolumeManager {
    type Result = Deferred<Self, Result<PathBuf, VolumeError>>;

    fn handle(&mut self, ask: PrepareSubPath, ctx: &mut Ctx<Self>) -> Self::Result {
        let request = self.tools.deps.desired.get(&ask.uid).map(|d| d.request);
        let (uid, of) = (ask.uid.clone(), ask.clone());
        let placed =
            self.tools.deps.persistent.placed(&uid, &ask.volume).map(|placed| placed.of.name.replace('/', "~"));
        let name = placed.unwrap_or_else(|| ask.volume.clone());
        let class = move |tools: &Tools, layout: &PodLayout| class::of_sub_path(&tools.deps, layout, &of);
        self.work(&uid, fault_points("sub-path", "sub-path-done"), ctx.effects(), class, move |tools, _| {
            if request.is_some_and(|r| !r.is_live()) {
                return Err(cancelled());
            }
            sub_path::prepare(&tools.deps, &tools.config, &ask, &name)
        })
    }
}

impl Handler<UnmountVolumes> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, UnmountVolumes { uid }: UnmountVolumes, ctx: &mut Ctx<Self>) -> Self::Result {
        let step = |tools: &Tools, layout: &PodLayout| {
            let still = |e: String| {
                let names = tear_down::present(&*tools.deps.fs, layout).ok().flatten();
                let names = names.map_or_else(|| "?".to_owned(), |names| names.join(" "));
                format!("mounted volumes=[{names}]: {e}")
            };
            let mut left =
                tear_down::volumes_of(&tools.deps, layout, Proof::Ended).map_err(|e| VolumeError::new(still(e)))?;
            left.failed = left.failed.map(still);
            first_drivers(left)
        };
        self.release(uid, fault_points("unmount", "unmounted"), step, ctx)
    }
}

impl Handler<RemovePodDir> for VolumeManager {
    type Result = Deferred<Self, Result<(), VolumeError>>;

    fn handle(&mut self, RemovePodDir { uid }: RemovePodDir, ctx: &mut Ctx<Self>) -> Self::Result {
        let step = |tools: &Tools, layout: &PodLayout| {
            let left = tear_down::pod_dir(&tools.deps, layout).map_err(VolumeError::new)?;
            let left = first_drivers(left)?;
            if left.of_drivers.is_empty() {
                free_ids(tools, layout)?;
            }
            Ok(left)
        };
        self.release(uid, fault_points("remove-dir", "removed-dir"), step, ctx)
    }
}

/// What drivers are to take goes first, whatever else failed.
fn first_drivers(mut left: Left) -> Result<Left, VolumeError> {
    match left.failed.take_if(|_| left.of_drivers.is_empty()) {
        Some(e) => Err(VolumeError::new(e)),
        None => Ok(left),
    }
}

fn free_ids(tools: &Tools, layout: &PodLayout) -> Result<(), VolumeError> {
    user_ids::release(&tools.deps.user_ids, &*tools.deps.fs, layout).map_err(VolumeError::new)
}
