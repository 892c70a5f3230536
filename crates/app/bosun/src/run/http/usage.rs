//! What `/metrics` tells of disks that pods use: from statistics, measured anew at most once a minute; and which volumes there are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::stats::Summarise;
use contract::volume::ListVolumes;
use contract::{Crew, Server};
use metrics_endpoint::{ClaimUsage, LogUsage, Usage, UsageSource, VolumeSource};
use model::stats::{PodStats, Summary, VolumeStats};
use tokio::sync::Mutex;

/// A scrape that comes sooner gets what the last one got: a kubelet's volumes are measured as often.
const FRESH: Duration = Duration::from_secs(60);

/// Asks VolumeManager which volumes there are.
pub(super) fn volumes(crew: Crew<Server>) -> VolumeSource {
    Arc::new(move || {
        let crew = crew.clone();
        Box::pin(async move { crew.ask(ListVolumes).await.ok() })
    })
}

/// Reads usage through StatsManager. When that has no answer, what was known before is told again.
pub(super) fn source(crew: Crew<Server>) -> UsageSource {
    let last: Arc<Mutex<Option<(Instant, Usage)>>> = Arc::default();
    Arc::new(move || {
        let (crew, last) = (crew.clone(), last.clone());
        Box::pin(async move {
            let mut last = last.lock().await;
            if let Some((at, usage)) = last.as_ref()
                && at.elapsed() < FRESH
            {
                return usage.clone();
            }
            match crew.call(Summarise { only_cpu_and_memory: false }).await {
                Ok(summary) => last.insert((Instant::now(), usage(&summary))).1.clone(),
                Err(error) => {
                    tracing::debug!(%error, "no usage of disks for metrics");
                    last.as_ref().map(|(_, usage)| usage.clone()).unwrap_or_default()
                }
            }
        })
    })
}

fn usage(summary: &Summary) -> Usage {
    let mut claims = BTreeMap::new();
    for volume in summary.pods.iter().flat_map(|pod| &pod.volumes) {
        if let Some(claim) = &volume.pvc_ref {
            let key = (claim.namespace.clone(), claim.name.clone());
            claims.entry(key.clone()).or_insert_with(|| of_claim(key, volume));
        }
    }
    let logs = summary.pods.iter().flat_map(of_logs);
    Usage { claims: claims.into_values().collect(), logs: logs.collect() }
}

fn of_claim((namespace, claim): (String, String), volume: &VolumeStats) -> ClaimUsage {
    let fs = &volume.fs;
    ClaimUsage {
        namespace,
        claim,
        capacity_bytes: fs.capacity_bytes,
        available_bytes: fs.available_bytes,
        used_bytes: fs.used_bytes,
        inodes: fs.inodes,
        inodes_free: fs.inodes_free,
        inodes_used: fs.inodes_used,
        abnormal: volume.volume_health_stats.map(|h| h.abnormal),
    }
}

fn of_logs(pod: &PodStats) -> impl Iterator<Item = LogUsage> + '_ {
    pod.containers.iter().filter_map(|container| {
        Some(LogUsage {
            uid: pod.pod_ref.uid.clone(),
            namespace: pod.pod_ref.namespace.clone(),
            pod: pod.pod_ref.name.clone(),
            container: container.name.clone(),
            used_bytes: container.logs.as_ref()?.used_bytes?,
        })
    })
}
