//! What volumes take: a walk over every file where no file system counts them, so it is done at most once per period and pod, and never while an asker waits.

use std::path::Path;
use std::sync::Arc;

use metrics::Stopwatch;
use metrics::volumes::COLLECTION;
use model::PodUid;
use model::Timestamp;
use model::core::{Pod, Volume};
use model::stats::{FsStats, VolumeStats};
use node_stats::MeasuredVolume;

use crate::config::Deps;
use crate::gather::{pod_dir, single_name};

/// No more files of a volume than these are counted: the walk would take seconds.
const MOST_FILES: u64 = 500_000;

/// A pod that is due.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) uid: PodUid,
    pub(crate) pod: Arc<Pod>,
    /// Volumes that are mounted.
    pub(crate) present: Vec<String>,
}

/// Measures the volumes of one pod. Blocks.
pub(crate) fn measure(deps: &Deps, root: &Path, due: &Due, now: Timestamp) -> Arc<[MeasuredVolume]> {
    if !single_name(due.uid.as_str()) {
        return Arc::default();
    }
    let dir = pod_dir(root, due.uid.as_str()).join("volumes");
    let wanted = due.pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    let present = wanted.filter(|v| due.present.contains(&v.name) && single_name(&v.name));
    let measured = present.filter_map(|volume| {
        let (plugin, is_local) = kind(volume)?;
        let path = dir.join(plugin).join(&volume.name);
        let watch = Stopwatch::start();
        let counted = deps.quotas.as_ref().filter(|_| volume.empty_dir.is_some()).and_then(|q| q.usage(&path));
        let source = if counted.is_some() { "fsquota" } else { "du" };
        let used = counted.or_else(|| deps.source.tree(&path, MOST_FILES));
        COLLECTION.with_label_values(&[source]).observe(watch.seconds());
        let used = used?;
        let fs = deps.source.fs(&path).ok()?;
        let inodes = (fs.inodes > 0).then_some(fs);
        let stats = FsStats {
            time: now,
            available_bytes: Some(fs.available_bytes),
            capacity_bytes: Some(fs.total_bytes),
            used_bytes: Some(used.bytes),
            inodes_free: inodes.map(|f| f.inodes_free),
            inodes: inodes.map(|f| f.inodes),
            inodes_used: Some(used.inodes),
        };
        Some(MeasuredVolume {
            stats: VolumeStats { fs: stats, name: volume.name.clone(), ..VolumeStats::default() },
            is_local,
        })
    });
    measured.collect()
}

/// Directory of the plugin (node-and-resources 6.1), and whether it counts against `ephemeral-storage`
/// (node-and-resources 9.2). A `hostPath` is not measured.
fn kind(volume: &Volume) -> Option<(&'static str, bool)> {
    if let Some(empty) = &volume.empty_dir {
        let on_disk = empty.medium.as_deref().unwrap_or_default().is_empty();
        return Some(("kubernetes.io~empty-dir", on_disk));
    }
    if volume.config_map.is_some() {
        return Some(("kubernetes.io~configmap", true));
    }
    if volume.secret.is_some() {
        return Some(("kubernetes.io~secret", false));
    }
    if volume.projected.is_some() {
        return Some(("kubernetes.io~projected", false));
    }
    volume.downward_api.as_ref().map(|_| ("kubernetes.io~downward-api", false))
}
