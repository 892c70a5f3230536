//! Space of claims and logs, as measured for `/stats/summary`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contract::stats::StatsHandle;
use futures::FutureExt;
use metrics::Kind::Gauge;
use model::stats::{FsStats, Summary};
use tokio::time::Instant;

use crate::sheet::{Row, Sheet};
use crate::{ClaimUsage, Deps, LogUsage, Usage, UsageSource};

const CLAIM: &[&str] = &["namespace", "persistentvolumeclaim"];
const LOG: &str = "kubelet_container_log_filesystem_used_bytes";

pub(crate) const TABLE: &[Row] = &[
    ("kubelet_volume_stats_capacity_bytes", Gauge, "Size of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_available_bytes", Gauge, "Free bytes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_used_bytes", Gauge, "Used bytes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_inodes", Gauge, "Inodes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_inodes_free", Gauge, "Free inodes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_inodes_used", Gauge, "Used inodes of the claim's volume.", CLAIM),
    (LOG, Gauge, "Bytes that the container's logs take.", &["uid", "namespace", "pod", "container"]),
];

/// Longest that a scrape waits for usage; the rest of the families does not wait longer for these.
const LIMIT: Duration = Duration::from_secs(5);

/// Usage changes slowly, and a gathering costs more than the rest of a scrape: one a minute is enough, as for volumes
/// (`volumeStatsAggPeriod`).
const FRESH: Duration = Duration::from_secs(60);

/// Usage as StatsManager measures it.
#[must_use]
pub fn usage_of_stats(stats: StatsHandle) -> UsageSource {
    let kept: Arc<Mutex<Option<(Instant, Usage)>>> = Arc::default();
    Arc::new(move || {
        let (stats, kept) = (stats.clone(), kept.clone());
        async move {
            let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, usage)) = lock().as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
                return usage.clone();
            }
            match stats.summary(false).await {
                Ok(summary) => {
                    let usage = Usage::from(&*summary);
                    *lock() = Some((Instant::now(), usage.clone()));
                    usage
                }
                Err(e) => {
                    tracing::warn!(error = %e, "usage of volumes and logs is not known");
                    Usage::default()
                }
            }
        }
        .boxed()
    })
}

impl From<&Summary> for Usage {
    fn from(summary: &Summary) -> Self {
        let mut claims: BTreeMap<(&str, &str), ClaimUsage> = BTreeMap::new();
        let mut logs = Vec::new();
        for pod in &summary.pods {
            for volume in &pod.volumes {
                let Some(claim) = &volume.pvc_ref else { continue };
                let row = || claim_usage(&claim.namespace, &claim.name, &volume.fs);
                claims.entry((&claim.namespace, &claim.name)).or_insert_with(row);
            }
            for container in &pod.containers {
                let Some(used_bytes) = container.logs.as_ref().and_then(|l| l.used_bytes) else { continue };
                logs.push(LogUsage {
                    uid: pod.pod_ref.uid.clone(),
                    namespace: pod.pod_ref.namespace.clone(),
                    pod: pod.pod_ref.name.clone(),
                    container: container.name.clone(),
                    used_bytes,
                });
            }
        }
        Self { claims: claims.into_values().collect(), logs }
    }
}

fn claim_usage(namespace: &str, claim: &str, fs: &FsStats) -> ClaimUsage {
    ClaimUsage {
        namespace: namespace.to_owned(),
        claim: claim.to_owned(),
        capacity_bytes: fs.capacity_bytes,
        available_bytes: fs.available_bytes,
        used_bytes: fs.used_bytes,
        inodes: fs.inodes,
        inodes_free: fs.inodes_free,
        inodes_used: fs.inodes_used,
    }
}

pub(crate) async fn read(deps: &Deps) -> Usage {
    let Some(source) = &deps.usage else { return Usage::default() };
    tokio::time::timeout(LIMIT, source()).await.unwrap_or_else(|_| {
        tracing::warn!("usage of volumes and logs was not told in time; this scrape lacks it");
        Usage::default()
    })
}

pub(crate) fn fill(sheet: &mut Sheet, usage: &Usage) {
    for claim in &usage.claims {
        let labels: &[&str] = &[&claim.namespace, &claim.claim];
        for (name, value) in [
            ("kubelet_volume_stats_capacity_bytes", claim.capacity_bytes),
            ("kubelet_volume_stats_available_bytes", claim.available_bytes),
            ("kubelet_volume_stats_used_bytes", claim.used_bytes),
            ("kubelet_volume_stats_inodes", claim.inodes),
            ("kubelet_volume_stats_inodes_free", claim.inodes_free),
            ("kubelet_volume_stats_inodes_used", claim.inodes_used),
        ] {
            if let Some(value) = value {
                sheet.put(name, labels, number(value));
            }
        }
    }
    for log in &usage.logs {
        sheet.put(LOG, &[&log.uid, &log.namespace, &log.pod, &log.container], number(log.used_bytes));
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
fn number(n: u64) -> f64 {
    n as f64
}
