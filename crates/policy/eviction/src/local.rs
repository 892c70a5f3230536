//! Limits on the local disk that a pod sets for itself (node-and-resources 3.6).

use std::str::FromStr as _;

use model::core::Pod;
use model::quantity::Quantity;
use model::resources::{self, EPHEMERAL_STORAGE};
use model::stats::{FsStats, PodStats};
use model::{core, pod};

use crate::layout::Layout;

/// A pod that uses more than it allowed itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// What it is counted as in `kubelet_evictions`.
    pub signal: &'static str,
    /// Why it goes.
    pub message: String,
}

/// Whether the pod sets any such limit, so that its usage must be known.
#[must_use]
pub fn has_local_limit(pod: &Pod) -> bool {
    let mut containers = pod::init_containers(pod).iter().chain(pod::regular_containers(pod));
    size_limits(pod).next().is_some() || containers.any(|c| resources::limit(c, EPHEMERAL_STORAGE).is_some())
}

/// The first limit that the pod is over, if any.
#[must_use]
pub fn local_overrun(pod: &Pod, stats: &PodStats, layout: Layout) -> Option<Overrun> {
    empty_dir(pod, stats).or_else(|| whole_pod(pod, stats)).or_else(|| container(pod, stats, layout))
}

/// Whether it is not known what some emptyDir on disk takes that a container of this pod uses.
#[must_use]
pub fn is_unmeasured(pod: &Pod, stats: &PodStats) -> bool {
    let on_disk = |volume: &core::Volume| {
        volume.empty_dir.as_ref().is_some_and(|e| e.medium.as_deref().unwrap_or_default().is_empty())
    };
    let is_used = |name: &str| {
        let mut mounts = pod::regular_containers(pod).iter().flat_map(|c| c.volume_mounts.iter().flatten());
        mounts.any(|mount| mount.name == name)
    };
    let is_known = |name: &str| stats.volumes.iter().any(|measured| measured.name == name);
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    !stats.containers.is_empty() && volumes.any(|v| on_disk(v) && is_used(&v.name) && !is_known(&v.name))
}

/// Limits of emptyDir volumes that are limits.
fn size_limits(pod: &Pod) -> impl Iterator<Item = (&core::Volume, Quantity)> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| {
        let limit = Quantity::from_str(&volume.empty_dir.as_ref()?.size_limit.as_ref()?.0).ok()?;
        (limit > Quantity::ZERO).then_some((volume, limit))
    })
}

fn empty_dir(pod: &Pod, stats: &PodStats) -> Option<Overrun> {
    size_limits(pod).find_map(|(volume, limit)| {
        let measured = stats.volumes.iter().find(|measured| measured.name == volume.name)?;
        let is_over = bytes(measured.fs.used_bytes?) > limit;
        is_over.then(|| Overrun {
            signal: "emptydirfs.limit",
            message: format!("Usage of EmptyDir volume \"{}\" exceeds the limit \"{limit}\". ", volume.name),
        })
    })
}

fn whole_pod(pod: &Pod, stats: &PodStats) -> Option<Overrun> {
    let limit = *resources::pod_limits(pod).get(EPHEMERAL_STORAGE)?;
    let is_over = used(stats.ephemeral_storage.as_ref()) > limit;
    is_over.then(|| Overrun {
        signal: "ephemeralpodfs.limit",
        message: format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "),
    })
}

fn container(pod: &Pod, stats: &PodStats, layout: Layout) -> Option<Overrun> {
    stats.containers.iter().find_map(|measured| {
        let container = pod::regular_containers(pod).iter().find(|c| c.name == measured.name)?;
        let limit = resources::limit(container, EPHEMERAL_STORAGE).filter(|limit| !limit.is_zero())?;
        // Layers on a disk of their own are that disk's matter.
        let layer = if layout == Layout::Single { used(measured.rootfs.as_ref()) } else { Quantity::ZERO };
        let is_over = used(measured.logs.as_ref()).plus(layer) > limit;
        is_over.then(|| Overrun {
            signal: "ephemeralcontainerfs.limit",
            message: format!("Container {} exceeded its local ephemeral storage limit \"{limit}\". ", container.name),
        })
    })
}

fn used(fs: Option<&FsStats>) -> Quantity {
    bytes(fs.and_then(|fs| fs.used_bytes).unwrap_or(0))
}

fn bytes(n: u64) -> Quantity {
    Quantity::from_bytes(i64::try_from(n).unwrap_or(i64::MAX))
}
