//! One look at what may run short. Cheap: a handful of files; pods are not measured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Effects};
use cri_api::v1;
use eviction::{Layout, Observed, Signal, Signals, Threshold};
use futures::FutureExt as _;
use model::node::Pressure;
use model::reading::Depth;
use ports::host::{FsStat, HostResult};
use tokio::time::timeout;

use crate::config::{Config, Deps};
use crate::disks::DiskLooks;
use crate::unseen::Missed;

/// Name of what is not known as long as the runtime does not say where it keeps images.
const PLACE: &str = "where the runtime keeps images";
/// Name of what is not known while a look at disks is out for too long.
const DISKS: &str = "disks";
const PROCESSES: &str = "processes";
/// A look at the machine that takes longer is given up: the next one is due soon.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// Longest that the runtime may take to say where it keeps images.
const RUNTIME_DEADLINE: Duration = Duration::from_secs(2);

/// Where the runtime keeps what is on disk. Found once, as in a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) images: PathBuf,
    pub(crate) layers: PathBuf,
    pub(crate) layout: Layout,
}

/// What was seen of memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryLook {
    pub(crate) signals: Signals,
    /// Page cache that counts as available, of the machine and of all pods: the kernel's notifications of v1 count it as used.
    pub(crate) cache: Option<u64>,
    pub(crate) pods_cache: Option<u64>,
    /// What could not be seen.
    pub(crate) missed: Missed,
}

/// What was seen of disks and processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct OthersLook {
    pub(crate) signals: Signals,
    /// `None`: not found out yet.
    pub(crate) places: Option<Places>,
    pub(crate) missed: Missed,
}

/// Looks at memory: the kernel's own files, which wait for no disk. `None`: they do not answer.
pub(crate) async fn look_at_memory(deps: Arc<Deps>, config: Arc<Config>, effects: &Effects) -> Option<MemoryLook> {
    effects.hit("look").await;
    let read = effects.blocking(Class::HostFiles, move || read_memory(&deps, &config));
    timeout(LOOK_LIMIT, read).await.ok()
}

/// Looks at every other signal that a threshold needs. What cannot be read is left out.
pub(crate) async fn look_at_others(
    deps: Arc<Deps>,
    config: Arc<Config>,
    places: Option<Places>,
    disks: DiskLooks<OthersLook>,
    effects: &Effects,
) -> OthersLook {
    effects.hit("look").await;
    let mut seen = OthersLook { places: places.clone(), ..OthersLook::default() };
    if needs(&config.thresholds, Pressure::Pid) {
        let deps = deps.clone();
        let read = effects.blocking(Class::HostFiles, move || read_processes(&deps));
        match timeout(LOOK_LIMIT, read).await {
            Ok(processes) => seen.add(processes),
            Err(_) => seen.miss(PROCESSES, "the machine does not answer"),
        }
    }
    if needs(&config.thresholds, Pressure::Disk) || config.local_storage {
        let effects = effects.clone();
        match disks.seen(|| look_at_disks(deps, config, places, effects).boxed()).await {
            Some(of_disks) => seen.add(of_disks),
            None => seen.miss(DISKS, "a disk, or the runtime, does not answer"),
        }
    }
    seen
}

impl OthersLook {
    fn add(&mut self, other: OthersLook) {
        self.signals.extend(other.signals);
        self.places = other.places.or(self.places.take());
        self.missed.extend(other.missed);
    }

    fn miss(&mut self, what: &'static str, why: &str) {
        self.missed.insert(what, why.to_owned());
    }
}

/// A disk that hangs costs a thread, and none of those without which the node cannot go on.
async fn look_at_disks(deps: Arc<Deps>, config: Arc<Config>, places: Option<Places>, effects: Effects) -> OthersLook {
    let mut missed = Missed::new();
    let places = match places {
        None => find_places(&deps, &config, &effects).await.map_err(|why| missed.insert(PLACE, why)).ok(),
        known => known,
    };
    effects.blocking(Class::UserPaths, move || read_disks(&deps, &config, places, missed)).await
}

/// Whether some threshold may cause it.
pub(crate) fn needs(thresholds: &[Threshold], kind: Pressure) -> bool {
    thresholds.iter().any(|t| t.signal.pressure() == kind)
}

async fn find_places(deps: &Arc<Deps>, config: &Arc<Config>, effects: &Effects) -> Result<Places, String> {
    let info = match timeout(RUNTIME_DEADLINE, deps.images.image_fs_info()).await {
        Ok(answer) => answer.map_err(|e| e.go_text())?,
        Err(_) => return Err("the runtime does not answer".to_owned()),
    };
    let (deps, config) = (deps.clone(), config.clone());
    effects.blocking(Class::UserPaths, move || places(&deps, &config, &info)).await
}

fn places(deps: &Deps, config: &Config, info: &v1::ImageFsInfoResponse) -> Result<Places, String> {
    let point = |all: &[v1::FilesystemUsage]| {
        let id = all.first().and_then(|fs| fs.fs_id.as_ref());
        id.map(|id| PathBuf::from(&id.mountpoint)).filter(|path| path.is_absolute())
    };
    let images = point(&info.image_filesystems).ok_or("the runtime names no folder of images")?;
    let layers = point(&info.container_filesystems).unwrap_or_else(|| images.clone());
    let device = |path: &PathBuf| match deps.fs.stat(path) {
        Ok(Some(stat)) => Ok(stat.dev),
        Ok(None) => Err(format!("{} is not there", path.display())),
        Err(e) => Err(actor::chain(&e)),
    };
    let (of_root, of_images, of_layers) = (device(&config.root_dir)?, device(&images)?, device(&layers)?);
    Ok(Places { layout: Layout::new(of_images != of_root, of_layers != of_images), images, layers })
}

/// What the kernel tells of memory.
pub(crate) fn read_memory(deps: &Deps, config: &Config) -> MemoryLook {
    let (mut signals, mut missed, mut pods_cache) = (Signals::new(), Missed::new(), None);
    let cache = machine_memory(deps, &mut signals, &mut missed);
    let allocatable = config.thresholds.iter().any(|t| t.signal == Signal::AllocatableMemoryAvailable);
    if let Some(cgroup) = config.pods_cgroup.as_deref().filter(|_| allocatable) {
        let read = pods_memory(deps, cgroup, &mut signals);
        pods_cache = read.unwrap_or_else(|why| {
            missed.insert("memory of all pods", why);
            None
        });
    }
    MemoryLook { signals, cache, pods_cache, missed }
}

/// How many processes there may be more.
pub(crate) fn read_processes(deps: &Deps) -> OthersLook {
    let mut seen = OthersLook::default();
    if let Some((running, most)) = read(PROCESSES, deps.host.processes(), &mut seen.missed) {
        seen.signals.insert(Signal::PidAvailable, observed(most.saturating_sub(running), most));
    }
    seen
}

/// What disks tell, of those that a threshold needs.
pub(crate) fn read_disks(deps: &Deps, config: &Config, places: Option<Places>, mut missed: Missed) -> OthersLook {
    let mut signals = Signals::new();
    if needs(&config.thresholds, Pressure::Disk) {
        disks(deps, config, places.as_ref(), &mut signals, &mut missed);
    }
    OthersLook { signals, places, missed }
}

/// As `/stats/summary` has it: by the root cgroup, where it says so.
fn machine_memory(deps: &Deps, signals: &mut Signals, missed: &mut Missed) -> Option<u64> {
    let told = read("memory", deps.host.memory_use(), missed)?;
    let of_root = deps.stats.cgroup("/", Depth::Usage).map(|root| root.memory);
    let counted = of_root.and_then(|m| Some((m.usage?, m.working_set()?)));
    let working_set = counted.map_or(told.working_set_bytes, |(_, working_set)| working_set);
    let available = told.total_bytes.saturating_sub(working_set);
    signals.insert(Signal::MemoryAvailable, observed(available, available.saturating_add(working_set)));
    counted.map(|(usage, working_set)| usage.saturating_sub(working_set))
}

/// What pods may still take below the limit that they have together; no signal without a limit.
fn pods_memory(deps: &Deps, cgroup: &str, signals: &mut Signals) -> Result<Option<u64>, String> {
    let reading = deps.stats.cgroup(cgroup, Depth::Usage).ok_or_else(|| format!("there is no cgroup {cgroup}"))?;
    let memory = reading.memory;
    let used = memory.working_set().ok_or_else(|| format!("cgroup {cgroup} does not tell what it uses"))?;
    let Some(limit) = memory.limit else { return Ok(None) };
    let available = limit.saturating_sub(used);
    signals.insert(Signal::AllocatableMemoryAvailable, observed(available, available.saturating_add(used)));
    Ok(memory.usage.map(|usage| usage.saturating_sub(used)))
}

fn disks(deps: &Deps, config: &Config, places: Option<&Places>, signals: &mut Signals, missed: &mut Missed) {
    let node = read("root folder", deps.host.disk(&config.root_dir), missed);
    disk_signals(node, Signal::NodefsAvailable, Signal::NodefsInodesFree, signals);
    let Some(places) = places else { return };
    let images = read("file system of images", deps.host.disk(&places.images), missed);
    disk_signals(images, Signal::ImagefsAvailable, Signal::ImagefsInodesFree, signals);
    let layers = if places.layers == places.images {
        images
    } else {
        read("file system of layers", deps.host.disk(&places.layers), missed)
    };
    disk_signals(layers, Signal::ContainerfsAvailable, Signal::ContainerfsInodesFree, signals);
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

fn read<T>(what: &'static str, result: HostResult<T>, missed: &mut Missed) -> Option<T> {
    result.map_err(|e| missed.insert(what, actor::chain(&e))).ok()
}
