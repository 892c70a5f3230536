//! Which pod goes first (node-and-resources 3.5).

use std::cmp::Reverse;
use std::time::Duration;

use model::core::{Pod, Volume};
use model::resources::{self, EPHEMERAL_STORAGE, MEMORY};
use model::stats::{FsStats, PodStats};

use crate::layout::{Layout, counted};
use crate::signal::{Resource, Signal, Threshold};

/// A pod that may have to go.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// As it was allocated.
    pub pod: &'a Pod,
    /// What it uses; `None`: nobody knows, and it goes before those of which something is known.
    pub stats: Option<&'a PodStats>,
}

/// What candidates are compared by; the smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// 0: nothing is known of it, 1: it uses more than it requested, 2: it does not. 0 for all where requests do not count.
    tier: u8,
    priority: i32,
    is_known: bool,
    /// Above its request.
    usage: Reverse<i64>,
}

/// Puts candidates into the order in which they go. Those that are alike stay as they came.
pub fn rank(signal: Signal, layout: Layout, candidates: &mut [Candidate<'_>]) {
    candidates.sort_by_cached_key(|candidate| place(signal, layout, candidate));
}

fn place(signal: Signal, layout: Layout, candidate: &Candidate<'_>) -> Place {
    let (pod, stats) = (candidate.pod, candidate.stats);
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    let is_known = stats.is_some();
    let (usage, request, subtracted) = match (signal.resource(), stats) {
        (_, None) => (0, 0, 0),
        (Resource::Memory, Some(stats)) => {
            let request = request(pod, MEMORY);
            (signed(stats.memory.and_then(|m| m.working_set_bytes)), request, request)
        }
        (Resource::EphemeralStorage, Some(stats)) => {
            let request = request(pod, EPHEMERAL_STORAGE);
            (disk_usage(pod, stats, signal, layout, |fs| fs.used_bytes), request, request)
        }
        // Nobody requests inodes; as in a kubelet what is subtracted in the end is the request of bytes.
        (Resource::Inodes, Some(stats)) => {
            (disk_usage(pod, stats, signal, layout, |fs| fs.inodes_used), 0, request(pod, EPHEMERAL_STORAGE))
        }
        (Resource::Pids, Some(stats)) => (signed(stats.process_stats.map(|p| p.process_count)), 0, 0),
    };
    let tier = match signal.resource() {
        Resource::Pids => 0,
        _ if !is_known => 0,
        _ if usage > request => 1,
        _ => 2,
    };
    Place { tier, priority, is_known, usage: Reverse(usage.saturating_sub(subtracted)) }
}

/// The pod's request, with its overhead where it requests any.
fn request(pod: &Pod, name: &str) -> i64 {
    let of = |list: resources::ResourceList| list.get(name).copied().unwrap_or_default();
    let own = of(resources::pod_requests_without_overhead(pod));
    if own.is_zero() { 0 } else { own.plus(of(resources::overhead(pod))).value() }
}

fn disk_usage(
    pod: &Pod,
    stats: &PodStats,
    signal: Signal,
    layout: Layout,
    of: impl Fn(&FsStats) -> Option<u64>,
) -> i64 {
    let counted = counted(signal, layout);
    let used = |fs: Option<&FsStats>| fs.and_then(&of).unwrap_or(0);
    let mut sum: u64 = 0;
    for container in &stats.containers {
        if counted.layers {
            sum = sum.saturating_add(used(container.rootfs.as_ref()));
        }
        if counted.logs_and_volumes {
            sum = sum.saturating_add(used(container.logs.as_ref()));
        }
    }
    if counted.logs_and_volumes {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()).filter(|v| is_on_local_disk(v));
        for volume in volumes {
            let measured = stats.volumes.iter().find(|measured| measured.name == volume.name);
            sum = sum.saturating_add(used(measured.map(|m| &m.fs)));
        }
    }
    signed(Some(sum))
}

/// Volumes whose files are on the node's disk: those in memory are not, what outlives the pod is not its own.
fn is_on_local_disk(volume: &Volume) -> bool {
    let on_disk = |medium: Option<&str>| medium.unwrap_or_default().is_empty();
    volume.host_path.is_some()
        || volume.git_repo.is_some()
        || volume.config_map.is_some()
        || volume.empty_dir.as_ref().is_some_and(|e| on_disk(e.medium.as_deref()))
}

fn signed(n: Option<u64>) -> i64 {
    n.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// Seconds that a pod is given to end: one when a hard threshold is crossed, else at most `most`
/// (`evictionMaxPodGracePeriod`), and no more than it asks for itself.
#[must_use]
pub fn grace_seconds(threshold: &Threshold, pod: &Pod, most: Duration) -> i64 {
    if threshold.is_hard() {
        return 1;
    }
    let most = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
    let own = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    own.map_or(most, |own| own.min(most))
}
