//! The actor: who asks gets a result that is fresh enough, and shares its gathering with whoever asks meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actor::{Actor, Class, Ctx, Deferred, Handler, supervised};
use contract::Crew;
use contract::plugin::CsiDriver;
use contract::pod_manager::DesiredPod;
use contract::stats::{Cadvisor, Resource, StatsError, Summarise};
use contract::volume::{ListVolumes, PodVolumes, VolumeRow};
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::stats::Summary;
use model::{PodUid, Timestamp, pod};
use node_stats::MeasuredVolume;
use tokio::time::Instant;
use volume_plan::migration;

use crate::config::{Config, Deps};
use crate::gather::{self, Cache, Sources, Volumes};
use crate::persistent::{self, Driver, Lane, Persistent, Round, Told};
use crate::slot::{Answer, Outcome, Slot, wait};
use crate::volumes::{Due, measure};

/// Results of processor, memory and disks are shared by whoever asks within this time.
const FRESH: Duration = Duration::from_secs(1);
/// Volumes that outlive pods are listed at most this often.
const LIST_PAUSE: Duration = Duration::from_secs(10);
/// Those of `/metrics/cadvisor`, whose samples carry their time (interfaces 5.4: 10 to 15 s).
const FRESH_CADVISOR: Duration = Duration::from_secs(10);

/// The actor.
#[derive(Debug)]
pub struct StatsManager {
    crew: Crew<contract::StatsManager>,
    config: Arc<Config>,
    deps: Arc<Deps>,
    cache: Cache,
    full: Slot<Summary>,
    cpu_and_memory: Slot<Summary>,
    cadvisor: Slot<str>,
    volumes: Volumes,
    /// When a pod's volumes may be measured again.
    next_measurement: BTreeMap<PodUid, Instant>,
    /// Pods whose volumes are being measured.
    measuring: BTreeSet<PodUid>,
    /// Volumes that outlive pods.
    persistent: Persistent,
    /// What was told of them, by pod.
    told: Arc<BTreeMap<PodUid, Vec<MeasuredVolume>>>,
    /// When they may be listed again.
    next_list: Option<Instant>,
}

impl Actor for StatsManager {
    type Context = Ctx<Self>;
}
supervised!(StatsManager);

impl StatsManager {
    /// A fresh instance.
    #[must_use]
    pub fn new(crew: Crew<contract::StatsManager>, config: Arc<Config>, deps: Arc<Deps>) -> Self {
        Self {
            crew,
            config,
            deps,
            cache: Cache::default(),
            full: Slot::default(),
            cpu_and_memory: Slot::default(),
            cadvisor: Slot::default(),
            volumes: Volumes::default(),
            next_measurement: BTreeMap::new(),
            measuring: BTreeSet::new(),
            persistent: Persistent::default(),
            told: Arc::default(),
            next_list: None,
        }
    }

    fn sources(&self, ctx: &Ctx<Self>) -> Sources {
        Sources {
            crew: self.crew.clone(),
            config: self.config.clone(),
            deps: self.deps.clone(),
            cache: self.cache.clone(),
            volumes: self.volumes.clone(),
            told: self.told.clone(),
            effects: ctx.effects(),
        }
    }

    /// A result of one kind: the last one, the one under way, or a new one.
    fn get<T, F>(
        &mut self,
        slot: fn(&mut Self) -> &mut Slot<T>,
        bound: Duration,
        gather: fn(Sources) -> F,
        ctx: &mut Ctx<Self>,
    ) -> impl Future<Output = Outcome<T>> + 'static
    where
        T: ?Sized + Send + Sync + 'static,
        F: Future<Output = Outcome<T>> + Send + 'static,
    {
        let began = ctx.clock().now();
        let answer = slot(self).answer(began, bound);
        if matches!(answer, Answer::Start(_)) {
            let (work, faults) = (gather(self.sources(ctx)), ctx.faults());
            let work = async move {
                faults.hit("gather").await;
                // Apart: whoever may ask must not be able to restart this actor, and with it in the end the node.
                let mut apart = tokio::task::JoinSet::new();
                apart.spawn(async move {
                    faults.hit("gathering").await;
                    work.await
                });
                match apart.join_next().await {
                    Some(Ok(outcome)) => outcome,
                    Some(Err(e)) => Err(panicked(&e)),
                    None => Err(StatsError { message: "gathering was not started".to_owned() }),
                }
            };
            ctx.run(work, move |act: &mut Self, outcome, _| slot(act).done(began, outcome));
        }
        async move {
            match answer {
                Answer::Fresh(last) => Ok(last),
                Answer::Join(waiting) | Answer::Start(waiting) => wait(waiting).await,
            }
        }
    }

    /// Measures volumes of pods that are due, in the background: the answer under way does without.
    fn measure_volumes(&mut self, ctx: &mut Ctx<Self>) {
        let Some(period) = self.config.volume_period else { return };
        let now = ctx.clock().now();
        let (pods, mounted) = (self.crew.board::<DesiredPod>(), self.crew.board::<PodVolumes>().snapshot());
        self.next_measurement.retain(|uid, _| mounted.contains_key(uid));
        let is_due =
            |uid: &PodUid| !self.measuring.contains(uid) && self.next_measurement.get(uid).is_none_or(|at| *at <= now);
        let due: Vec<Due> = mounted
            .iter()
            .filter(|(uid, row)| !row.present.is_empty() && is_due(uid))
            .filter_map(|(uid, row)| {
                let pod = pods.get(uid)?.pod.clone();
                Some(Due { uid: uid.clone(), pod, present: row.present.clone() })
            })
            .collect();
        let kept = |uid: &PodUid| mounted.get(uid).is_some_and(|row| !row.present.is_empty());
        if self.volumes.keys().any(|uid| !kept(uid)) {
            Arc::make_mut(&mut self.volumes).retain(|uid, _| kept(uid));
        }
        for due in due {
            // Between one and two periods, so that pods do not stay in step.
            let pause = period.mul_f64(1.0 + ctx.rng().f64());
            self.next_measurement.insert(due.uid.clone(), now + pause);
            self.measure_pod(due, ctx);
        }
    }

    /// Each pod by itself: what one of them has mounted in a volume may hang.
    fn measure_pod(&mut self, due: Due, ctx: &mut Ctx<Self>) {
        let uid = due.uid.clone();
        self.measuring.insert(uid.clone());
        let (deps, config, at) = (self.deps.clone(), self.config.clone(), Timestamp(ctx.clock().unix_nanos()));
        let work = move || measure(&deps, &config.root_dir, &due, at);
        ctx.blocking(Class::UserPaths, work, move |act: &mut Self, measured, _| {
            act.measuring.remove(&uid);
            Arc::make_mut(&mut act.volumes).insert(uid, measured);
        });
    }

    /// Asks about volumes that outlive pods, in the background: the answer under way does without.
    fn list_volumes(&mut self, ctx: &mut Ctx<Self>) {
        let Some(period) = self.config.volume_period else { return };
        let (now, pods) = (ctx.clock().now(), self.crew.board::<DesiredPod>());
        let is_early = self.next_list.is_some_and(|at| at > now);
        if self.persistent.listing || is_early || !pods.snapshot().values().any(|row| may_outlive(&row.pod)) {
            return;
        }
        (self.persistent.listing, self.next_list) = (true, Some(now + LIST_PAUSE.min(period)));
        let crew = self.crew.clone();
        ctx.run(async move { crew.ask(ListVolumes).await }, |act: &mut Self, rows, ctx| {
            act.persistent.listing = false;
            match rows {
                Ok(rows) => act.ask_about(&rows, ctx),
                Err(e) => tracing::debug!(error = %e, "volumes are not listed: what was told last is shown"),
            }
        });
    }

    fn ask_about(&mut self, rows: &[VolumeRow], ctx: &mut Ctx<Self>) {
        let Some(period) = self.config.volume_period else { return };
        let (now, pods) = (ctx.clock().now(), self.crew.board::<DesiredPod>());
        let namespace = |uid: &PodUid| pods.get(uid).map(|row| pod::namespace(&row.pod).to_owned());
        // Between one and two periods, so that volumes do not stay in step.
        let due = self.persistent.due(rows, namespace, now, || period.mul_f64(1.0 + ctx.rng().f64()));
        self.told = Arc::new(self.persistent.by_pod());
        for (lane, due) in due {
            let (clock, effects) = (ctx.clock().clone(), ctx.effects());
            let work: Pin<Box<dyn Future<Output = Round> + Send>> = match &lane {
                Lane::Local | Lane::Server(_) => {
                    Box::pin(persistent::look(self.deps.source.clone(), effects, clock, due))
                }
                Lane::Driver(name) => {
                    let (row, csi) = (self.crew.board::<CsiDriver>().get(name), self.deps.csi.clone());
                    let (Some(row), Some(csi)) = (row, csi) else {
                        self.persistent.done(&lane, Round::default());
                        continue;
                    };
                    let (name, endpoint, health) = (name.clone(), row.endpoint.clone(), self.config.volume_health);
                    let driver = Driver { name, csi, endpoint, health, clock };
                    Box::pin(async move { persistent::ask(&driver, due).await })
                }
            };
            ctx.run(work, move |act: &mut Self, round, _| {
                round.told.iter().for_each(|one| act.tell_trouble(one));
                act.persistent.done(&lane, round);
                act.told = Arc::new(act.persistent.by_pod());
            });
        }
    }

    /// Tells users of a volume that its driver finds something wrong with.
    fn tell_trouble(&self, Told { key: (uid, volume), trouble, .. }: &Told) {
        let (Some(trouble), Some(row)) = (trouble, self.crew.board::<DesiredPod>().get(uid)) else { return };
        let object = EventObject::Pod {
            namespace: pod::namespace(&row.pod).to_owned(),
            name: pod::name(&row.pod).to_owned(),
            uid: uid.clone(),
            field_path: String::new(),
        };
        let (kind, message) = (EventType::Warning, format!("Volume {volume}: {trouble}"));
        self.crew.emit(NodeEvent { kind, reason: "VolumeConditionAbnormal".into(), message, object });
    }
}

/// Whether a volume of the pod may be one that outlives pods, or that a driver makes.
fn may_outlive(pod: &Pod) -> bool {
    let mut volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    volumes.any(|v| {
        let is_remote = v.csi.is_some() || v.nfs.is_some() || v.iscsi.is_some() || v.fc.is_some();
        v.persistent_volume_claim.is_some() || v.ephemeral.is_some() || is_remote || migration::is_migrated(v)
    })
}

fn panicked(e: &tokio::task::JoinError) -> StatsError {
    tracing::error!(error = %e, "a gathering of statistics panicked");
    StatsError { message: "gathering panicked".to_owned() }
}

impl Handler<Summarise> for StatsManager {
    type Result = Deferred<Self, Result<Arc<Summary>, StatsError>>;

    fn handle(&mut self, Summarise { only_cpu_and_memory }: Summarise, ctx: &mut Ctx<Self>) -> Self::Result {
        if only_cpu_and_memory {
            return Deferred::new(self.get(|act| &mut act.cpu_and_memory, FRESH, gather::cpu_and_memory, ctx));
        }
        self.measure_volumes(ctx);
        self.list_volumes(ctx);
        Deferred::new(self.get(|act| &mut act.full, FRESH, gather::full, ctx))
    }
}

impl Handler<Resource> for StatsManager {
    type Result = Deferred<Self, Arc<str>>;

    fn handle(&mut self, _: Resource, ctx: &mut Ctx<Self>) -> Self::Result {
        let (summary, effects) =
            (self.get(|act| &mut act.cpu_and_memory, FRESH, gather::cpu_and_memory, ctx), ctx.effects());
        Deferred::new(async move {
            let summary = summary.await;
            if let Err(e) = &summary {
                tracing::warn!(error = %e, "no numbers for /metrics/resource");
            }
            effects
                .blocking(Class::Computing, move || node_stats::resource::render(summary.as_deref().ok()).into())
                .await
        })
    }
}

impl Handler<Cadvisor> for StatsManager {
    type Result = Deferred<Self, Result<Arc<str>, StatsError>>;

    fn handle(&mut self, _: Cadvisor, ctx: &mut Ctx<Self>) -> Self::Result {
        Deferred::new(self.get(|act| &mut act.cadvisor, FRESH_CADVISOR, gather::cadvisor, ctx))
    }
}
