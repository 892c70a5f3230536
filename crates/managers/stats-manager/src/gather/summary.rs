//! The summary (`/stats/summary`), whole or of processor and memory only.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actor::Class;
use contract::runtime::RuntimeInfo;
use contract::stats::StatsError;
use cri_api::v1;
use model::Timestamp;
use model::reading::{Depth, FsReading};
use model::stats::Summary;
use node_stats::{FromRuntime, NodeDisks, NodeReadings, PodReadings, RuntimeFs};
use ports::runtime::RuntimeError;
use ports::stats::StatsSource;

use super::pods;
use super::sources::{Sources, failed, missing};

/// Longest that the runtime may take for its part.
const RUNTIME_DEADLINE: Duration = Duration::from_secs(10);

/// Everything (interfaces 6.2). Any part that a whole answer needs fails it (interfaces 6.3); a single container does
/// not.
pub(crate) async fn full(sources: Sources) -> Result<Arc<Summary>, StatsError> {
    let reading = {
        let sources = sources.clone();
        async move { sources.effects.clone().blocking(Class::HostFiles, move || read(&sources, Depth::Summary)).await }
    };
    let deps = sources.deps.clone();
    let (read, containers, images) = tokio::join!(
        reading,
        within("failed to list pod stats", deps.runtime.list_container_stats(v1::ListContainerStatsRequest::default())),
        within("failed to get imageFs stats", deps.images.image_fs_info()),
    );
    let (mut node, pods) = read?;
    let containers = by_id(containers?);
    let images = images?;
    let effects = sources.effects.clone();
    let work = move || {
        let source = &*sources.deps.source;
        let mounts = mounts(source, &containers, &images);
        node.disks = Some(disks(&sources, source, images, &mounts)?);
        node.network = source.network(None);
        Ok(assemble(&sources, &node, &pods, &FromRuntime { containers, mounts }))
    };
    effects.blocking(Class::HostFiles, work).await
}

/// Processor and memory only: cheap. The runtime is asked only about containers that the kernel says nothing of.
pub(crate) async fn cpu_and_memory(sources: Sources) -> Result<Arc<Summary>, StatsError> {
    let first = {
        let sources = sources.clone();
        sources
            .effects
            .clone()
            .blocking(Class::HostFiles, move || {
                let (node, pods) = read(&sources, Depth::Usage)?;
                let complete = pods.iter().flat_map(|p| &p.containers).all(node_stats::measured);
                let summary = complete.then(|| assemble(&sources, &node, &pods, &FromRuntime::default()));
                Ok::<_, StatsError>((node, pods, summary))
            })
            .await
    };
    let (node, pods, summary) = first?;
    if let Some(summary) = summary {
        return Ok(summary);
    }
    let request = v1::ListContainerStatsRequest::default();
    let answer = within("failed to list pod stats", sources.deps.runtime.list_container_stats(request)).await?;
    let told = FromRuntime { containers: by_id(answer), ..FromRuntime::default() };
    let effects = sources.effects.clone();
    Ok(effects.blocking(Class::Computing, move || assemble(&sources, &node, &pods, &told)).await)
}

fn assemble(sources: &Sources, node: &NodeReadings, pods: &[PodReadings], told: &FromRuntime) -> Arc<Summary> {
    let mut samples = sources.cache.samples();
    samples.forget(node.at);
    Arc::new(node_stats::summary(node, pods, told, &mut samples))
}

/// Reads the kernel's files. Blocks.
fn read(sources: &Sources, depth: Depth) -> Result<(NodeReadings, Vec<PodReadings>), StatsError> {
    let (config, source) = (&sources.config, &*sources.deps.source);
    if !sources.crew.value::<RuntimeInfo>().get().listed {
        return Err(missing("failed to list pod stats: the runtime has not told yet what runs"));
    }
    let root = source.cgroup("/", depth).ok_or_else(|| missing("failed to get root cgroup stats: it is not there"))?;
    let node = NodeReadings {
        name: config.node_name.clone(),
        at: root.at,
        machine: sources.cache.machine(source, root.at)?,
        root,
        systems: pods::systems(sources, depth),
        network: None,
        disks: None,
    };
    Ok((node, pods::all(sources, depth)))
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
    sources: &Sources,
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
        root: source.fs(&sources.config.root_dir).map_err(|e| failed("failed to get rootFs stats", &e))?,
        images: of(images),
        containers: apart.map(of),
        processes: source.processes().map_err(|e| failed("failed to get rlimit stats", &e))?,
    })
}
