//! The actor: keeps the tree as pods come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, Deferred, Handler, supervised};
use contract::Crew;
use contract::board::{BoardPoster, BoardReader};
use contract::cgroup::{
    CgroupError, EnsurePodCgroup, PodCgroup, PodCgroupRow, PodCgroupUse, ReadPodCgroup, RemovePodCgroup,
    ResizePodCgroup, ThrottlePodCgroup,
};
use contract::pod_manager::DesiredPod;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, pod};
use ports::host::{CgroupFs, CgroupVersion, HostResult};

use crate::config::Config;
use crate::effects::{Enforced, Ensured};
use crate::state::State;
use crate::{Serial, effects};

/// How often the tiers are written and the tree is read without an occasion; also the pause between tries to limit
/// `kubepods`.
const REFRESH: Duration = Duration::from_secs(60);
/// How often processes are seen to: the daemon's own place and `oom_score_adj`, and those of the system.
const PROCESSES: Duration = Duration::from_secs(60);
/// As [`PROCESSES`] where none has a place to be.
const SCORE: Duration = Duration::from_secs(300);

/// Texts that readers of a kubelet's events know.
const CGROUP_V1: &str = "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please \
                         migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1";
/// As [`CGROUP_V1`], with its reason.
const MAY_SWAP: (&str, &str) = (
    "PossibleMemoryBackedVolumesOnDisk",
    "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk \
     and should no longer be considered secure.",
);

/// What CgroupManager works with.
#[derive(Clone)]
pub struct Deps {
    /// The tree.
    pub cgroups: Arc<dyn CgroupFs>,
    /// Order among the effects on one pod.
    pub serial: Serial,
}

impl std::fmt::Debug for Deps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cgroup_manager::Deps")
    }
}

/// The actor.
#[derive(Debug)]
pub struct CgroupManager {
    config: Arc<Config>,
    deps: Arc<Deps>,
    crew: Crew<contract::CgroupManager>,
    rows: BoardPoster<PodUid, PodCgroupRow>,
    pods: BoardReader<PodUid, DesiredPod>,
    state: State,
    /// The tiers are made.
    ready: bool,
    /// What is limited, by what was told of it.
    enforced: BTreeSet<String>,
    /// What was told of settings that processes do not have, by setting.
    trouble: BTreeMap<&'static str, String>,
}

impl Actor for CgroupManager {
    type Context = Ctx<Self>;

    fn started(&mut self, ctx: &mut Ctx<Self>) {
        metrics::cgroups::VERSION.set(match self.deps.cgroups.version() {
            CgroupVersion::V1 => 1,
            CgroupVersion::V2 => 2,
        });
        // A rebuilt actor is on the same machine: no news.
        if ctx.generation() == 0 {
            self.warn_of_the_machine();
        }
        self.see_to_processes(ctx);
        let placed = self.config.own_cgroup.is_some() || self.config.system_cgroup.is_some();
        ctx.every(if placed { PROCESSES } else { SCORE }, |act, ctx| act.see_to_processes(ctx));
        if self.config.enabled {
            self.refresh(ctx);
            ctx.every(REFRESH, |act, ctx| act.refresh(ctx));
        }
    }
}
supervised!(CgroupManager);

impl CgroupManager {
    /// A fresh instance; what has a cgroup is read from the tree when it starts.
    #[must_use]
    pub fn new(crew: Crew<contract::CgroupManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        let (rows, pods) = (crew.poster(), crew.board());
        let (state, enforced, trouble) = (State::default(), BTreeSet::new(), BTreeMap::new());
        Self { config, deps, crew, rows, pods, state, ready: false, enforced, trouble }
    }

    /// Makes what is missing above the pods, limits it, and takes over what the tree shows.
    fn refresh(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let done = self.enforced.clone();
        self.state.scan_begins();
        let work = async move {
            effects.hit("set-up").await;
            let out = effects
                .blocking(Class::HostFiles, move || {
                    effects::set_up(&*deps.cgroups, &config)?;
                    let enforced = effects::enforce(&*deps.cgroups, &config, &done);
                    Ok((enforced, effects::scan(&*deps.cgroups, &config)?))
                })
                .await;
            effects.hit("set-up-done").await;
            out
        };
        ctx.run(work, |act: &mut Self, out: Result<_, CgroupError>, ctx| match out {
            Ok((enforced, found)) => {
                act.ready = true;
                enforced.into_iter().for_each(|result| act.note_enforced(result, ctx));
                act.take_over(found, ctx);
            }
            Err(e) => tracing::error!(error = %e, "the QoS cgroups are not in place; next try in a minute"),
        });
    }

    fn note_enforced(&mut self, result: Enforced, ctx: &mut Ctx<Self>) {
        let (kind, reason, message) = match result {
            Ok(told) => {
                self.enforced.insert(told.clone());
                // A rebuilt actor writes the same limits again: no news.
                if ctx.generation() > 0 {
                    return;
                }
                (EventType::Normal, "NodeAllocatableEnforced", told)
            }
            Err(e) => (EventType::Warning, "FailedNodeAllocatableEnforcement", e.message),
        };
        self.crew.emit(NodeEvent { kind, reason: reason.into(), message, object: EventObject::Node });
    }

    fn take_over(&mut self, found: BTreeMap<PodUid, String>, ctx: &mut Ctx<Self>) {
        let difference = self.state.refresh(found);
        for uid in difference.vanished {
            self.rows.remove(&uid);
        }
        // A former generation may have posted rows of cgroups that are gone by now.
        for uid in self.rows.snapshot().into_keys().filter(|u| !self.state.pods.contains_key(u)) {
            self.rows.remove(&uid);
        }
        for uid in difference.appeared {
            self.post(&uid);
        }
        self.write_tiers(true, ctx);
    }

    /// A pod without its limits is better than no pod. They are tried again with each step of its worker.
    fn note_limited(&mut self, of: &Pod, limited: Option<Result<(), CgroupError>>) {
        let uid = pod::uid(of);
        match limited {
            // One with containers that an earlier generation looked after.
            None => {
                self.state.limited.entry(uid).or_insert(true);
            }
            Some(Ok(())) => {
                self.state.limited.insert(uid, true);
            }
            Some(Err(error)) => {
                if self.state.limited.insert(uid, false) != Some(false) {
                    tracing::warn!(pod = %pod::describe(of), %error, "the pod runs without its limits until they can be written");
                }
            }
        }
    }

    fn post(&self, uid: &PodUid) {
        if let Some(known) = self.state.pods.get(uid) {
            self.rows.post(uid.clone(), Arc::new(PodCgroupRow { path: known.path.clone() }));
        }
    }

    fn write_tiers(&mut self, force: bool, ctx: &mut Ctx<Self>) {
        let pods = &self.pods;
        self.state.learn(|uid| pods.get(uid).map(|d| d.pod.clone()));
        let Some(tiers) = self.state.tiers_to_write(&self.config.facts, &self.config.rules, force) else { return };
        if self.config.rules.memory_qos.is_some() {
            let (guaranteed, burstable) = tiers.kept();
            metrics::memory_qos::MIN_BYTES.set(guaranteed);
            metrics::memory_qos::LOW_BYTES.set(burstable);
        }
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let work = async move {
            effects.hit("write-tiers").await;
            effects.blocking(Class::HostFiles, move || effects::write_tiers(&*deps.cgroups, &config, &tiers)).await
        };
        ctx.run(work, |act: &mut Self, out, ctx| {
            if let Err(e) = &out {
                tracing::warn!(error = %e, "QoS tiers keep their old values until the next try");
            }
            if let Some(force) = act.state.tiers_written(out.is_ok()) {
                act.write_tiers(force, ctx);
            }
        });
    }

    /// Events of a kubelet's start.
    fn warn_of_the_machine(&self) {
        let v1 = self.deps.cgroups.version() == CgroupVersion::V1;
        let all = [(v1, "CgroupV1", CGROUP_V1), (self.config.memory_may_swap, MAY_SWAP.0, MAY_SWAP.1)];
        for (_, reason, message) in all.into_iter().filter(|(told, ..)| *told) {
            self.crew.emit(NodeEvent {
                kind: EventType::Warning,
                reason: reason.into(),
                message: message.to_owned(),
                object: EventObject::Node,
            });
        }
    }

    fn see_to_processes(&mut self, ctx: &mut Ctx<Self>) {
        let (deps, config) = (self.deps.clone(), self.config.clone());
        let work = move || {
            let cgroups = &*deps.cgroups;
            // The daemon may be among those that are moved: its own place comes after.
            let moved = config.system_cgroup.as_ref().map_or(Ok(()), |path| effects::empty_root(cgroups, path));
            let joined = config.own_cgroup.as_ref().map_or(Ok(()), |path| cgroups.join(path));
            let score = config.oom_score_adj.map_or(Ok(()), |value| cgroups.set_own_oom_score_adj(value));
            let text = |out: HostResult<()>| out.map_err(|e| actor::chain(&e));
            [
                ("systemCgroups", moved.map_err(|e| e.message)),
                ("kubeletCgroups", text(joined)),
                ("oomScoreAdj", text(score)),
            ]
        };
        ctx.blocking(Class::HostFiles, work, |act: &mut Self, out, _| {
            out.into_iter().for_each(|(setting, out)| act.note_trouble(setting, out));
        });
    }

    /// Tells what is new. Without CAP_SYS_RESOURCE a score cannot be lowered; the daemon runs all the same.
    fn note_trouble(&mut self, setting: &'static str, out: Result<(), String>) {
        match out {
            Ok(()) => {
                self.trouble.remove(setting);
            }
            Err(error) if self.trouble.get(setting) == Some(&error) => {}
            Err(error) => {
                tracing::warn!(setting, error, "a process is not as wanted");
                self.trouble.insert(setting, error);
            }
        }
    }
}

impl Handler<EnsurePodCgroup> for CgroupManager {
    type Result = Deferred<Self, Result<PodCgroup, CgroupError>>;

    fn handle(&mut self, EnsurePodCgroup { pod }: EnsurePodCgroup, ctx: &mut Ctx<Self>) -> Self::Result {
        if !self.config.enabled {
            // As a kubelet does it: the runtime then picks its own default parent.
            return Deferred::ready(Ok(PodCgroup { parent: String::new(), existed: true }));
        }
        let uid = pod::uid(&pod);
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let (ready, limited) = (self.ready, self.state.limited.get(&uid).copied());
        let work = {
            let (pod, uid) = (pod.clone(), uid.clone());
            async move {
                effects.hit("ensure").await;
                let serial = deps.serial.clone();
                let out = serial.run(&uid, &effects, Class::HostFiles, move || {
                    if !ready {
                        effects::set_up(&*deps.cgroups, &config)?;
                    }
                    effects::ensure(&*deps.cgroups, &config, &pod, limited)
                });
                let out = out.await;
                effects.hit("ensured").await;
                out
            }
        };
        Deferred::then(work, move |act: &mut Self, out: Result<Ensured, CgroupError>, ctx| {
            let Ensured { cgroup, limited } = out?;
            act.ready = true;
            act.note_limited(&pod, limited);
            act.state.made(&uid, &cgroup.parent, pod);
            act.post(&uid);
            act.write_tiers(false, ctx);
            Ok(cgroup)
        })
    }
}

impl Handler<RemovePodCgroup> for CgroupManager {
    type Result = Deferred<Self, Result<(), CgroupError>>;

    fn handle(&mut self, RemovePodCgroup { uid }: RemovePodCgroup, ctx: &mut Ctx<Self>) -> Self::Result {
        if !self.config.enabled {
            return Deferred::ready(Ok(()));
        }
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        let of = uid.clone();
        let work = async move {
            effects.hit("remove").await;
            let serial = deps.serial.clone();
            let key = of.clone();
            let out = serial
                .run(&key, &effects, Class::HostFiles, move || effects::remove(&*deps.cgroups, &config, &of))
                .await;
            effects.hit("removed").await;
            out
        };
        Deferred::then(work, move |act: &mut Self, out: Result<(), CgroupError>, ctx| {
            if out.is_ok() {
                act.state.removed(&uid);
                act.rows.remove(&uid);
                act.write_tiers(false, ctx);
            }
            out
        })
    }
}

impl Handler<ReadPodCgroup> for CgroupManager {
    type Result = Deferred<Self, Result<PodCgroupUse, CgroupError>>;

    fn handle(&mut self, ReadPodCgroup { pod }: ReadPodCgroup, ctx: &mut Ctx<Self>) -> Self::Result {
        if !self.config.enabled {
            return Deferred::ready(Ok(PodCgroupUse::default()));
        }
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        Deferred::new(async move {
            effects.hit("read").await;
            effects.blocking(Class::HostFiles, move || effects::read(&*deps.cgroups, &config, &pod)).await
        })
    }
}

impl Handler<ResizePodCgroup> for CgroupManager {
    type Result = Deferred<Self, Result<(), CgroupError>>;

    fn handle(&mut self, ResizePodCgroup { pod, values }: ResizePodCgroup, ctx: &mut Ctx<Self>) -> Self::Result {
        if !self.config.enabled {
            return Deferred::ready(Ok(()));
        }
        let (deps, config, effects) = (self.deps.clone(), self.config.clone(), ctx.effects());
        Deferred::new(async move {
            effects.hit("resize").await;
            let (serial, uid) = (deps.serial.clone(), pod::uid(&pod));
            let write = move || effects::resize(&*deps.cgroups, &config, &pod, &values);
            let out = serial.run(&uid, &effects, Class::HostFiles, write).await;
            effects.hit("resized").await;
            out
        })
    }
}

impl Handler<ThrottlePodCgroup> for CgroupManager {
    type Result = Deferred<Self, Result<(), CgroupError>>;

    fn handle(&mut self, ThrottlePodCgroup { uid }: ThrottlePodCgroup, ctx: &mut Ctx<Self>) -> Self::Result {
        // A pod without a cgroup uses nothing.
        let Some(known) = self.state.pods.get(&uid) else { return Deferred::ready(Ok(())) };
        let (deps, effects, path) = (self.deps.clone(), ctx.effects(), known.path.clone());
        Deferred::new(async move {
            effects.hit("throttle").await;
            let serial = deps.serial.clone();
            serial.run(&uid, &effects, Class::HostFiles, move || effects::throttle(&*deps.cgroups, &path)).await
        })
    }
}
