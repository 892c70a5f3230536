//! What probing costs while nothing changes.

use std::time::Duration;

use serde_json::json;
use testbed::{ClusterNode, Watch};

use super::super::pods::idle;
use super::super::report::Report;
use super::super::steady;
use super::watched::{PODS, gone, pod, ready, wait_for};

/// Pods with one exec probe each, every second.
const PROBED: usize = 30;

pub(super) fn exec(node: &ClusterNode, watch: &Watch, report: &mut Report) -> anyhow::Result<()> {
    let admin = node.cluster.admin();
    for n in 0..PROBED {
        let mut pod = pod(&format!("probed-{n}"), node.name());
        let container = &mut pod["spec"]["containers"][0];
        container["image"] = json!(testbed::BUSYBOX_IMAGES[0]);
        container["command"] = json!(["sh", "-c", "trap exit TERM; while :; do sleep 1000 & wait; done"]);
        container["readinessProbe"] = json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
        admin.create(PODS, &pod)?;
    }
    wait_for(watch, "probed pods to be ready", "probed-", PROBED, ready)?;
    idle(Duration::from_secs(5));
    steady::share(&node.bosun, &format!("CPU, {PROBED} exec probes per second"), 0.8, report)?;
    for n in 0..PROBED {
        admin.delete(&format!("{PODS}/probed-{n}"))?;
    }
    wait_for(watch, "probed pods to be gone", "probed-", PROBED, gone)
}
