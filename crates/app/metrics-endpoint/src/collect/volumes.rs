//! Volumes wanted and volumes there.

use std::collections::BTreeMap;

use contract::lookup::FoundPod;
use metrics::Kind::Gauge;
use model::core::Volume;

use crate::deps::Deps;
use crate::families::{Families, Row};

const TOTAL: &str = "volume_manager_total_volumes";

pub(crate) const TABLE: &[Row] =
    &[(TOTAL, Gauge, "Volumes that pods want, and volumes that are there.", &["plugin_name", "state"])];

pub(crate) fn fill(families: &mut Families, deps: &Deps) {
    let mut counts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for found in deps.lookup.all() {
        let Some(row) = deps.volumes.get(&found.uid) else { continue };
        for volume in volumes(&found) {
            let Some(plugin) = plugin(volume) else { continue };
            *counts.entry((plugin, "desired_state_of_world")).or_default() += 1;
            if row.present.contains(&volume.name) {
                *counts.entry((plugin, "actual_state_of_world")).or_default() += 1;
            }
        }
    }
    for ((plugin, state), n) in counts {
        families.put(TOTAL, &[plugin, state], f64::from(n));
    }
}

fn volumes(found: &FoundPod) -> impl Iterator<Item = &Volume> {
    found.pod().spec.iter().flat_map(|s| s.volumes.iter().flatten())
}

/// Name of the kubelet's plugin for the kinds that this node sets up.
fn plugin(v: &Volume) -> Option<&'static str> {
    let kinds = [
        (v.host_path.is_some(), "kubernetes.io/host-path"),
        (v.config_map.is_some(), "kubernetes.io/configmap"),
        (v.secret.is_some(), "kubernetes.io/secret"),
        (v.projected.is_some(), "kubernetes.io/projected"),
        (v.downward_api.is_some(), "kubernetes.io/downward-api"),
        (v.empty_dir.is_some(), "kubernetes.io/empty-dir"),
        (v.csi.is_some(), "kubernetes.io/csi"),
    ];
    kinds.into_iter().find(|(there, _)| *there).map(|(_, name)| name)
}
