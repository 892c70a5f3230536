//! What the Node tells of the host, observed once.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use actor::{Class, Effects};
use cri_api::v1;
use model::node::Pressure;
use node_status::Image;
use node_status::address::{HostAddresses, choose};
use node_status::pressure::{Observed, Signal, Signals};
use ports::host::{FsStat, HostResult, Identity, NodeHost};
use ports::runtime::ImageService;

use crate::config::{Config, Deps};

/// What changes slowly and costs calls: read now and then.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowFacts {
    /// Images, or `None` when they cannot be listed.
    pub images: Option<Vec<Image>>,
    /// Where the runtime keeps them.
    pub image_dir: Option<PathBuf>,
    /// Addresses, or why there are none.
    pub addresses: Option<Result<Vec<IpAddr>, String>>,
}

/// What was observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    pub identity: Identity,
    pub signals: Signals,
    pub slow: SlowFacts,
}

/// Observes everything; the slow part only when `slow` is `None`.
pub(crate) async fn observe(
    deps: Arc<Deps>,
    config: Arc<Config>,
    slow: Option<SlowFacts>,
    effects: &Effects,
) -> Observation {
    let slow = match slow {
        Some(slow) => slow,
        None => {
            let (host, config) = (deps.host.clone(), config.clone());
            SlowFacts {
                images: images(&*deps.images).await,
                image_dir: image_dir(&*deps.images).await,
                addresses: Some(effects.blocking(Class::NameLookups, move || addresses(&*host, &config)).await),
            }
        }
    };
    let (host, image_dir) = (deps.host.clone(), slow.image_dir.clone());
    let read = move || (host.identity(), signals(&*host, &config, image_dir));
    let (identity, signals) = effects.blocking(Class::HostFiles, read).await;
    Observation { identity, signals, slow }
}

async fn images(service: &dyn ImageService) -> Option<Vec<Image>> {
    let of = |i: v1::Image| Image { digests: i.repo_digests, tags: i.repo_tags, size_bytes: i.size };
    match service.list_images(v1::ListImagesRequest::default()).await {
        Ok(list) => Some(list.images.into_iter().map(of).collect()),
        Err(e) => {
            tracing::debug!(error = %e, "images cannot be listed for the Node");
            None
        }
    }
}

async fn image_dir(service: &dyn ImageService) -> Option<PathBuf> {
    let info = service.image_fs_info().await.ok()?;
    let id = info.image_filesystems.into_iter().next()?.fs_id?;
    (!id.mountpoint.is_empty()).then(|| id.mountpoint.into())
}

fn addresses(host: &dyn NodeHost, config: &Config) -> Result<Vec<IpAddr>, String> {
    let plan = &config.plan;
    let given = plan.node_ips.iter().any(|ip| !ip.is_unspecified()) || plan.hostname.parse::<IpAddr>().is_ok();
    let found = host.addresses(if given { "" } else { &plan.hostname });
    let found =
        HostAddresses { interfaces: found.interfaces, resolved: found.resolved, default_route: found.default_route };
    choose(&plan.node_ips, &plan.hostname, &found)
}

/// Every signal that a threshold needs. What cannot be read is left out, and says so.
fn signals(host: &dyn NodeHost, config: &Config, image_dir: Option<PathBuf>) -> Signals {
    let mut signals = Signals::new();
    let needs = |kind: Pressure| config.thresholds.iter().any(|t| t.signal.pressure() == kind);
    if needs(Pressure::Memory)
        && let Some(m) = read("memory", host.memory_use())
    {
        let available = m.total_bytes.saturating_sub(m.working_set_bytes);
        signals.insert(Signal::MemoryAvailable, observed(available, m.total_bytes));
    }
    if needs(Pressure::Disk) {
        let node = read("root folder", host.disk(&config.root_dir));
        let image = image_dir.and_then(|dir| read("image file system", host.disk(&dir)));
        let disks = [
            (node, Signal::NodefsAvailable, Signal::NodefsInodesFree),
            (image, Signal::ImagefsAvailable, Signal::ImagefsInodesFree),
        ];
        for (disk, bytes, inodes) in disks {
            disk_signals(disk, bytes, inodes, &mut signals);
        }
    }
    if needs(Pressure::Pid)
        && let Some((running, most)) = read("processes", host.processes())
    {
        signals.insert(Signal::PidAvailable, observed(most.saturating_sub(running), most));
    }
    signals
}

fn disk_signals(disk: Option<FsStat>, bytes: Signal, inodes: Signal, signals: &mut Signals) {
    let Some(disk) = disk else { return };
    signals.insert(bytes, observed(disk.available_bytes, disk.total_bytes));
    if disk.total_inodes > 0 {
        signals.insert(inodes, observed(disk.free_inodes, disk.total_inodes));
    }
}

fn observed(available: u64, capacity: u64) -> Observed {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Observed { available: signed(available), capacity: signed(capacity) }
}

fn read<T>(what: &str, result: HostResult<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(e) => {
            tracing::warn!(what, error = %actor::chain(&e), "cannot be observed: its eviction thresholds are passed over");
            None
        }
    }
}
