//! Which stored pods may start after a boot while the API server is silent. Pure but for the one journal line.
//!
//! A node that was away for long has lost its pods: after the eviction time the server deletes them, and their controllers
//! make others elsewhere. Two of a pod that must be one (two `web-0`, two writers on one volume) are worse than none.

use std::sync::Arc;
use std::time::Duration;

use model::Timestamp;
use model::core::Pod;
use ports::journal::{Journal, JournalError};
use serde::{Deserialize, Serialize};

const LINE: &str = "api-server/heard";

/// Which stored pods go on after a boot while the API server has not answered (`--pod-store-after-boot`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterBoot {
    /// Those of which there may be two, and only when the server answered last no longer than [`Policy::max_age`] ago.
    Safe,
    /// All: for nodes at the edge that must come up alone, and whose pods nobody starts elsewhere.
    All,
    /// None: all wait for the server.
    None,
}

/// What a boot means for the store.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Which pods go on.
    pub after_boot: AfterBoot,
    /// The node's pod-eviction time: when the server answered last longer ago, others may run in its pods' place.
    pub max_age: Duration,
    /// Id of the running boot; empty: not known, which counts as another one.
    pub boot_id: String,
}

/// When the API server answered last, and in which boot that was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastContact {
    pub(crate) boot_id: String,
    pub(crate) at_ns: i64,
}

/// Removes the pods that must wait; gives how many they are, and why.
pub(crate) fn hold_back(
    pods: &mut Vec<Arc<Pod>>,
    last: Option<&LastContact>,
    policy: &Policy,
    now: Timestamp,
) -> Option<(usize, &'static str)> {
    let same_boot = last.is_some_and(|h| !policy.boot_id.is_empty() && h.boot_id == policy.boot_id);
    if same_boot || policy.after_boot == AfterBoot::All {
        return None;
    }
    // A clock behind the last contact says nothing about how long ago that was.
    let age = last.and_then(|h| u64::try_from(now.0.saturating_sub(h.at_ns)).ok()).map(Duration::from_nanos);
    let before = pods.len();
    let why = if policy.after_boot == AfterBoot::None {
        pods.clear();
        "the machine was booted and --pod-store-after-boot is none"
    } else if age.is_none_or(|age| age > policy.max_age) {
        pods.clear();
        "the machine was booted and was without the server for longer than pods are kept on such a node"
    } else {
        pods.retain(|pod| !at_most_one(pod));
        "the machine was booted and there must not be two of them"
    };
    Some((before - pods.len(), why)).filter(|(waiting, _)| *waiting > 0)
}

/// Of a StatefulSet, or with a claim: its access mode is not known here, so it counts as one that a single pod may use.
fn at_most_one(pod: &Pod) -> bool {
    let owned = pod.metadata.owner_references.iter().flatten().any(|o| o.kind == "StatefulSet");
    let volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    owned || volumes.into_iter().any(|v| v.persistent_volume_claim.is_some())
}

/// Blocks. A line that cannot be decoded counts as none.
pub(crate) fn load(journal: &dyn Journal) -> Result<Option<LastContact>, JournalError> {
    Ok(journal.load(LINE)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Blocks.
pub(crate) fn save(journal: &dyn Journal, last: &LastContact) -> Result<(), JournalError> {
    let bytes = serde_json::to_vec(last).map_err(|e| JournalError { message: e.to_string() })?;
    journal.save(LINE, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pod;
    use serde_json::{Value, json};

    fn pod(name: &str, more: Value) -> Arc<Pod> {
        let mut value = json!({"metadata": {"name": name}, "spec": {"containers": []}});
        for (key, v) in more.as_object().unwrap() {
            value["metadata"][key] = v["meta"].clone();
            if !v["volumes"].is_null() {
                value["spec"]["volumes"] = v["volumes"].clone();
            }
        }
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn all() -> Vec<Arc<Pod>> {
        let owner = |kind: &str| json!({"ownerReferences": {"meta": [{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u"}]}});
        let volume = |kind: &str, v: Value| json!({"labels": {"meta": {}, "volumes": [{"name": "v", kind: v}]}});
        vec![
            pod("plain", json!({})),
            pod("of-a-daemonset", owner("DaemonSet")),
            pod("web-0", owner("StatefulSet")),
            pod("claim", volume("persistentVolumeClaim", json!({"claimName": "c"}))),
            pod("scratch", volume("emptyDir", json!({}))),
        ]
    }

    fn left(after_boot: AfterBoot, boot: &str, heard: Option<(&str, i64)>) -> String {
        const SECOND: i64 = 1_000_000_000;
        let policy = Policy { after_boot, max_age: Duration::from_secs(300), boot_id: boot.into() };
        let heard = heard.map(|(boot, ago)| LastContact { boot_id: boot.into(), at_ns: (10_000 - ago) * SECOND });
        let mut pods = all();
        let held = hold_back(&mut pods, heard.as_ref(), &policy, Timestamp(10_000 * SECOND)).map_or(0, |h| h.0);
        assert_eq!(pods.len() + held, 5);
        pods.iter().map(|p| pod::name(p)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pods_that_must_be_one_wait_after_a_boot_and_all_do_when_the_store_is_old() {
        const ALL: &str = "plain of-a-daemonset web-0 claim scratch";
        const SAFE: &str = "plain of-a-daemonset scratch";
        use AfterBoot::{All, None as Nobody, Safe};
        for (setting, boot, heard, want) in [
            (Safe, "b1", Some(("b1", 60)), ALL),
            // A restart of the daemon alone, however old the word: its containers run.
            (Safe, "b1", Some(("b1", 9_000)), ALL),
            (Safe, "b2", Some(("b1", 60)), SAFE),
            (Safe, "b2", Some(("b1", 300)), SAFE),
            (Safe, "b2", Some(("b1", 301)), ""),
            // A clock that went back, a store without a word, a boot without an id.
            (Safe, "b2", Some(("b1", -5)), ""),
            (Safe, "b2", None, ""),
            (Safe, "", Some(("", 60)), SAFE),
            (All, "b2", Some(("b1", 9_000)), ALL),
            (All, "b2", None, ALL),
            (Nobody, "b2", Some(("b1", 1)), ""),
            (Nobody, "b1", Some(("b1", 1)), ALL),
        ] {
            assert_eq!(left(setting, boot, heard), want, "{setting:?} {boot} {heard:?}");
        }
    }
}
