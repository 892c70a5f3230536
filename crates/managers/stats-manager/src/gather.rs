//! One gathering: what is read, what the runtime is asked, what comes of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actor::{Class, Effects, chain};
use contract::Crew;
use contract::runtime::RuntimeInfo;
use contract::stats::StatsError;
use cri_api::v1;
use model::reading::{Depth, FsReading, MachineReading};
use model::stats::Summary;
use model::{PodUid, Timestamp};
use node_stats::{FromRuntime, MeasuredVolume, NodeDisks, NodeReadings, PodReadings, RuntimeFs, Samples};
use ports::runtime::RuntimeError;
use ports::stats::StatsSource;

use crate::actor::{Config, Deps};

mod pods;
mod rows;

pub(crate) use pods::{plain, pod_dir};
pub(crate) use rows::cadvisor;

/// Longest that the runtime may take for its part.
const RUNTIME_DEADLINE: Duration = Duration::from_secs(10);
/// What does not change is read again after this long all the same: memory and swap can be added.
const MACHINE_KEPT: i64 = 60_000_000_000;

/// Volumes as last measured.
pub(crate) type Volumes = Arc<BTreeMap<PodUid, Arc<[MeasuredVolume]>>>;

/// The machine, and when it was read.
type KnownMachine = Option<(Timestamp, Arc<MachineReading>)>;

/// What gatherings leave for the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    samples: Arc<Mutex<Samples>>,
    machine: Arc<Mutex<KnownMachine>>,
}

impl Memory {
    fn machine(&self, source: &dyn StatsSource, now: Timestamp) -> Result<Arc<MachineReading>, StatsError> {
        let mut known = locked(&self.machine);
        if let Some((at, machine)) = &*known
            && now.nanos_since(*at) < MACHINE_KEPT
        {
            return Ok(machine.clone());
        }
        let machine = Arc::new(source.machine().map_err(|e| failed("failed to get machine info", &e))?);
        *known = Some((now, machine.clone()));
        Ok(machine)
    }
}

fn locked<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left is a sample more or less.
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(what: &str, e: &dyn std::error::Error) -> StatsError {
    StatsError { message: format!("{what}: {}", chain(e)) }
}

fn missing(text: &str) -> StatsError {
    StatsError { message: text.to_owned() }
}

/// What a gathering works with.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) crew: Crew<contract::StatsManager>,
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) memory: Memory,
    pub(crate) volumes: Volumes,
    pub(crate) effects: Effects,
}

/// Everything (interfaces 6.2). Any part that a whole answer needs fails it (interfaces 6.3); a single container does
/// not.
pub(crate) async fn whole(world: World) -> Result<Arc<Summary>, StatsError> {
    let reading = {
        let world = world.clone();
        async move { world.effects.clone().blocking(Class::HostFiles, move || read(&world, Depth::Summary)).await }
    };
    let deps = world.deps.clone();
    let (read, containers, images) = tokio::join!(
        reading,
        within("failed to list pod stats", deps.runtime.list_container_stats(v1::ListContainerStatsRequest::default())),
        within("failed to get imageFs stats", deps.images.image_fs_info()),
    );
    let (mut node, pods) = read?;
    let containers = by_id(containers?);
    let images = images?;
    let effects = world.effects.clone();
    let work = move || {
        let source = &*world.deps.source;
        let mounts = mounts(source, &containers, &images);
        node.disks = Some(disks(&world, source, images, &mounts)?);
        node.network = source.network(None);
        Ok(assemble(&world, &node, &pods, &FromRuntime { containers, mounts }))
    };
    effects.blocking(Class::HostFiles, work).await
}

/// Processor and memory only: cheap. The runtime is asked only about containers that the kernel says nothing of.
pub(crate) async fn brief(world: World) -> Result<Arc<Summary>, StatsError> {
    let first = {
        let world = world.clone();
        world
            .effects
            .clone()
            .blocking(Class::HostFiles, move || {
                let (node, pods) = read(&world, Depth::Usage)?;
                let complete = pods.iter().flat_map(|p| &p.containers).all(node_stats::measured);
                let summary = complete.then(|| assemble(&world, &node, &pods, &FromRuntime::default()));
                Ok::<_, StatsError>((node, pods, summary))
            })
            .await
    };
    let (node, pods, summary) = first?;
    if let Some(summary) = summary {
        return Ok(summary);
    }
    let request = v1::ListContainerStatsRequest::default();
    let answer = within("failed to list pod stats", world.deps.runtime.list_container_stats(request)).await?;
    let told = FromRuntime { containers: by_id(answer), ..FromRuntime::default() };
    let effects = world.effects.clone();
    Ok(effects.blocking(Class::Computing, move || assemble(&world, &node, &pods, &told)).await)
}

fn assemble(world: &World, node: &NodeReadings, pods: &[PodReadings], told: &FromRuntime) -> Arc<Summary> {
    let mut samples = locked(&world.memory.samples);
    samples.forget(node.at);
    Arc::new(node_stats::summary(node, pods, told, &mut samples))
}

/// Reads the kernel's files. Blocks.
fn read(world: &World, depth: Depth) -> Result<(NodeReadings, Vec<PodReadings>), StatsError> {
    let (config, source) = (&world.config, &*world.deps.source);
    if !world.crew.value::<RuntimeInfo>().get().listed {
        return Err(missing("failed to list pod stats: the runtime has not told yet what runs"));
    }
    let root = source.cgroup("/", depth).ok_or_else(|| missing("failed to get root cgroup stats: it is not there"))?;
    let node = NodeReadings {
        name: config.node_name.clone(),
        at: root.at,
        machine: world.memory.machine(source, root.at)?,
        root,
        systems: pods::systems(world, depth),
        network: None,
        disks: None,
    };
    Ok((node, pods::all(world, depth)))
}

async fn within<T>(what: &str, call: impl Future<Output = Result<T, RuntimeError>>) -> Result<T, StatsError> {
    match tokio::time::timeout(RUNTIME_DEADLINE, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(e)) => Err(failed(what, &e)),
        Err(_) => Err(missing(&format!("{what}: the runtime did not answer within {} s", RUNTIME_DEADLINE.as_secs()))),
    }
}

fn by_id(answer: v1::ListContainerStatsResponse) -> BTreeMap<String, v1::ContainerStats> {
    let keyed = answer.stats.into_iter().filter_map(|s| Some((s.attributes.as_ref()?.id.clone(), s)));
    keyed.collect()
}

/// Room on every file system that the runtime named. One that cannot be looked at is left out.
fn mounts(
    source: &dyn StatsSource,
    containers: &BTreeMap<String, v1::ContainerStats>,
    images: &v1::ImageFsInfoResponse,
) -> BTreeMap<String, FsReading> {
    let layers = containers.values().filter_map(|c| c.writable_layer.as_ref());
    let all = layers.chain(&images.image_filesystems).chain(&images.container_filesystems);
    let mut mounts = BTreeMap::new();
    for point in all.filter_map(|fs| Some(&fs.fs_id.as_ref()?.mountpoint)) {
        if !mounts.contains_key(point)
            && let Ok(fs) = source.fs(point.as_ref())
        {
            mounts.insert(point.clone(), fs);
        }
    }
    mounts
}

fn disks(
    world: &World,
    source: &dyn StatsSource,
    answer: v1::ImageFsInfoResponse,
    mounts: &BTreeMap<String, FsReading>,
) -> Result<NodeDisks, StatsError> {
    let point = |fs: &v1::FilesystemUsage| fs.fs_id.as_ref().map(|id| id.mountpoint.clone()).unwrap_or_default();
    let number = |v: Option<v1::UInt64Value>| v.map(|v| v.value);
    let of = |fs: &v1::FilesystemUsage| RuntimeFs {
        at: Timestamp(fs.timestamp),
        fs: mounts.get(&point(fs)).copied(),
        used: (number(fs.used_bytes), number(fs.inodes_used)),
    };
    let images = answer.image_filesystems.first();
    let images = images.ok_or_else(|| missing("failed to get imageFs stats: imageFs information is unavailable"))?;
    let apart = answer.container_filesystems.first().filter(|fs| point(fs) != point(images));
    Ok(NodeDisks {
        root: source.fs(&world.config.root_dir).map_err(|e| failed("failed to get rootFs stats", &e))?,
        images: of(images),
        containers: apart.map(of),
        processes: source.processes().map_err(|e| failed("failed to get rlimit stats", &e))?,
    })
}
