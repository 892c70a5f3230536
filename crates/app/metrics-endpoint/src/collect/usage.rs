//! Space of claims and logs, as measured for `/stats/summary`.

use std::time::Duration;

use metrics::Kind::Gauge;

use crate::deps::{Deps, Usage};
use crate::families::{Families, Row};

const CLAIM: &[&str] = &["namespace", "persistentvolumeclaim"];
const LOG: &str = "kubelet_container_log_filesystem_used_bytes";

pub(crate) const TABLE: &[Row] = &[
    ("kubelet_volume_stats_capacity_bytes", Gauge, "Size of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_available_bytes", Gauge, "Free bytes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_used_bytes", Gauge, "Used bytes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_inodes", Gauge, "Inodes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_inodes_free", Gauge, "Free inodes of the claim's volume.", CLAIM),
    ("kubelet_volume_stats_inodes_used", Gauge, "Used inodes of the claim's volume.", CLAIM),
    (
        "kubelet_volume_stats_health_status_abnormal",
        Gauge,
        "1: the claim's volume is not well, as its driver says.",
        CLAIM,
    ),
    (LOG, Gauge, "Bytes that the container's logs take.", &["uid", "namespace", "pod", "container"]),
];

/// Longest that a scrape waits for usage; the rest of the families does not wait longer for these.
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) async fn read(deps: &Deps) -> Usage {
    let Some(source) = &deps.usage else { return Usage::default() };
    tokio::time::timeout(LIMIT, source()).await.unwrap_or_else(|_| {
        tracing::warn!("usage of volumes and logs was not told in time; this scrape lacks it");
        Usage::default()
    })
}

pub(crate) fn fill(families: &mut Families, usage: &Usage) {
    for claim in &usage.claims {
        let labels: &[&str] = &[&claim.namespace, &claim.claim];
        for (name, value) in [
            ("kubelet_volume_stats_capacity_bytes", claim.capacity_bytes),
            ("kubelet_volume_stats_available_bytes", claim.available_bytes),
            ("kubelet_volume_stats_used_bytes", claim.used_bytes),
            ("kubelet_volume_stats_inodes", claim.inodes),
            ("kubelet_volume_stats_inodes_free", claim.inodes_free),
            ("kubelet_volume_stats_inodes_used", claim.inodes_used),
            ("kubelet_volume_stats_health_status_abnormal", claim.abnormal.map(u64::from)),
        ] {
            if let Some(value) = value {
                families.put(name, labels, number(value));
            }
        }
    }
    for log in &usage.logs {
        families.put(LOG, &[&log.uid, &log.namespace, &log.pod, &log.container], number(log.used_bytes));
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers of metrics are doubles")]
fn number(n: u64) -> f64 {
    n as f64
}
