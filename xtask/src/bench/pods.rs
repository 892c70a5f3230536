//! Pods of the rounds: how they are made, shown and waited for.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use testbed::{Bosun, PAUSE_IMAGE, wait_until};

/// A static pod with one container that does nothing.
pub(super) fn manifest(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: main\n    image: {PAUSE_IMAGE}\n"
    )
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// A pod whose container runs a script.
pub(super) fn talker(name: &str, script: &str) -> String {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": testbed::BUSYBOX_IMAGES[0], "command": ["sh", "-c", script]}]},
    })
    .to_string()
}

/// Lets time pass while the daemon is left alone.
#[allow(clippy::disallowed_methods, reason = "a bench measures real time; no arbiter here")]
pub(super) fn idle(time: Duration) {
    std::thread::sleep(time);
}

/// Pods that the daemon shows as Running, with the ids of their containers.
pub(super) fn running(bosun: &Bosun) -> anyhow::Result<BTreeMap<String, String>> {
    let pods = bosun.pods()?.into_iter().filter(|p| p["status"]["phase"] == "Running");
    let ready = pods.filter(|p| !p["status"]["containerStatuses"][0]["state"]["running"].is_null());
    Ok(ready
        .map(|p| {
            let name = p["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let id = p["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default().to_owned();
            (name, id)
        })
        .collect())
}

pub(super) fn wait_running(bosun: &Bosun, count: usize, limit: Duration) -> anyhow::Result<()> {
    wait_until(&format!("{count} pods to run"), limit, || {
        let shown = running(bosun).map_err(|e| e.to_string())?.len();
        if shown >= count {
            return Ok(());
        }
        // Asking costs processor time that the starts need.
        idle(Duration::from_millis(if count > 30 { 200 } else { 40 }));
        Err(format!("{shown} run\n{}", bosun.log()))
    })?;
    Ok(())
}

pub(super) fn wait_gone(bosun: &Bosun, limit: Duration) -> anyhow::Result<()> {
    wait_until("the pods to be gone", limit, || {
        let left = bosun.pods().map_err(|e| e.to_string())?.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} are left")) }
    })?;
    Ok(())
}
