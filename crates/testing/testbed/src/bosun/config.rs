//! What the daemon is given to read: its configuration, kernel parameters.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::file;
use crate::{BedError, TestBed};

/// What the daemon looks for in its folder of kernel parameters.
const FRESH_SYSCTLS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "0"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "0"),
    ("kernel/panic_on_oops", "0"),
    ("kernel/keys/root_maxkeys", "200"),
    ("kernel/keys/root_maxbytes", "20000"),
];

/// Kernel parameters for the daemon alone, in `dir`, as a fresh kernel has them; the machine's own stay as they are.
pub(super) fn sysctls(dir: &Path) -> Result<(), BedError> {
    for (name, value) in FRESH_SYSCTLS {
        let path = dir.join(name);
        if !path.exists() {
            let folder = path.parent().unwrap_or(dir);
            file("mkdir", folder, std::fs::create_dir_all(folder))?;
            file("write", &path, std::fs::write(&path, value))?;
        }
    }
    Ok(())
}

/// `evictionHard` under which nothing is ever short: how full the machine's disk and memory are is no matter of a test. A node
/// that is short removes unused images, and a bed cannot pull its own again.
fn never_short() -> Value {
    let signals =
        ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"];
    signals.iter().map(|signal| ((*signal).to_owned(), json!("0%"))).collect()
}

/// The KubeletConfiguration of the daemon under test. `extra` fields are laid over the bed's own.
pub(super) fn kubelet(bed: &TestBed, extra: &Value) -> String {
    let (dir, cgroup_root) = (bed.dir(), bed.cgroup_root());
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": dir.join("manifests"),
        "containerRuntimeEndpoint": bed.endpoint(),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_root,
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": ["none"],
        "podLogsDir": dir.join("logs"),
        "failSwapOn": false,
        "failCgroupV1": false,
        "maxPods": 250,
        // Each bed has an address of its own, and no cluster to ask who may do what.
        "address": bed.node_ip(),
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "evictionHard": never_short(),
        "imageGCHighThresholdPercent": 100,
        // File name and line of resolv.conf are the host's business; pods of the bed need no names.
        "resolvConf": dir.join("resolv.conf"),
        // The machine's own rules are not the bed's; a test that wants the chains has a network of its own.
        "makeIPTablesUtilChains": false,
    });
    if let (Some(own), Some(extra)) = (config.as_object_mut(), extra.as_object()) {
        own.extend(extra.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    serde_json::to_string_pretty(&config).unwrap_or_default()
}
