//! Volumes wanted and volumes there.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::volume::{VolumeRow, VolumeStage};
use metrics::Kind::Gauge;

use crate::deps::Deps;
use crate::families::{Families, Row};

const TOTAL: &str = "volume_manager_total_volumes";
/// Longest that a scrape waits for the list; the rest of the families does not wait longer for it.
const LIMIT: Duration = Duration::from_secs(2);

pub(crate) const TABLE: &[Row] =
    &[(TOTAL, Gauge, "Volumes that pods want, and volumes that are there.", &["plugin_name", "state"])];

/// All volumes that are known; `None`: nobody says.
pub(crate) async fn read(deps: &Deps) -> Option<VolumeRows> {
    let rows = tokio::time::timeout(LIMIT, (deps.volumes)()).await.ok().flatten();
    if rows.is_none() {
        tracing::debug!("volumes were not told in time; this scrape lacks them");
    }
    rows
}

pub(crate) use crate::deps::VolumeRows;

pub(crate) fn fill(families: &mut Families, rows: &[VolumeRow]) {
    let mut counts: BTreeMap<(String, &str), u32> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.pod.is_some()) {
        let Some(plugin) = plugin(row) else { continue };
        if !matches!(row.stage, VolumeStage::Leaving | VolumeStage::Unreadable) {
            *counts.entry((plugin.clone(), "desired_state_of_world")).or_default() += 1;
        }
        if row.stage == VolumeStage::Mounted {
            *counts.entry((plugin, "actual_state_of_world")).or_default() += 1;
        }
    }
    for ((plugin, state), n) in counts {
        families.put(TOTAL, &[&plugin, state], f64::from(n));
    }
}

/// Name of the kubelet's plugin, with the driver if it is one's; `None`: it is not known yet which volume it is.
fn plugin(row: &VolumeRow) -> Option<String> {
    Some(match row.kind.as_str() {
        "csi" => format!("kubernetes.io/csi:{}", row.driver),
        "hostPath" => "kubernetes.io/host-path".to_owned(),
        "configMap" => "kubernetes.io/configmap".to_owned(),
        "downwardAPI" => "kubernetes.io/downward-api".to_owned(),
        "emptyDir" => "kubernetes.io/empty-dir".to_owned(),
        "local" => "kubernetes.io/local-volume".to_owned(),
        kind @ ("secret" | "projected" | "image" | "nfs" | "iscsi" | "fc") => format!("kubernetes.io/{kind}"),
        _ => return None,
    })
}
