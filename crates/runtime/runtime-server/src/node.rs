//! What this machine and its OCI runtime can do.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use container_spec::{AppArmor, CapabilityNames, NodeFacts};
use host_linux::LinuxCgroups;
use pod_supervisor::CAPABILITIES;
use ports::host::{CgroupFs, CgroupVersion};

const TIME_LIMIT: Duration = Duration::from_secs(10);

const SYS_RESOURCE: &str = "CAP_SYS_RESOURCE";

/// Looks at machine and OCI runtime. What a runtime does not say of itself it does not get asked for.
pub(crate) async fn facts(cgroups: &LinuxCgroups, apparmor: &AppArmor, oci_runtime: &Path) -> NodeFacts {
    let features = features(oci_runtime).await.unwrap_or_default();
    let cgroup_v2 = cgroups.version() == CgroupVersion::V2;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = capabilities(&status);
    NodeFacts {
        cgroup_v2,
        cgroup_mount_options: cgroup_mount_options(),
        swap_controller: cgroups.has_swap_controller(),
        hugetlb_controller: has_hugetlb(cgroup_v2),
        seccomp: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
        apparmor: apparmor.clone(),
        selinux: Path::new("/sys/fs/selinux/enforce").exists(),
        recursive_read_only: features["mountOptions"].as_array().is_some_and(|o| o.iter().any(|o| o == "rro")),
        idmap_mounts: features["linux"]["mountExtensions"]["idmap"]["enabled"] == true,
        lowest_oom_score_adj: if capabilities.contains(SYS_RESOURCE) { None } else { own_oom_score_adj() },
        capabilities,
        architecture: std::env::consts::ARCH.to_owned(),
        host_devices: Vec::new(),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        rlimits: Vec::new(),
    }
}

/// `runc features`; crun 1.8 has no such call.
async fn features(program: &Path) -> Option<serde_json::Value> {
    let mut call = tokio::process::Command::new(program);
    call.arg("features").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let out = tokio::time::timeout(TIME_LIMIT, call.output()).await.ok()?.ok()?;
    serde_json::from_slice(&out.stdout).ok()
}

/// Whether the kernel lets a process join all namespaces of another one at once (Linux 5.8), which commands are begun by. What containers
/// are started by is older: mounts that are made apart from all folders (Linux 5.2).
pub(crate) fn joins_by_pidfd() -> bool {
    is_since(&rustix::system::uname().release().to_string_lossy(), (5, 8))
}

fn is_since(release: &str, first: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= first)
}

/// What this process may give: its bounding set.
fn capabilities(status: &str) -> CapabilityNames {
    let bits = status.lines().find_map(|l| l.strip_prefix("CapBnd:"));
    let bits = bits.and_then(|b| u64::from_str_radix(b.trim(), 16).ok()).unwrap_or_default();
    let held = CAPABILITIES.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1);
    held.map(|(_, name)| format!("CAP_{name}")).collect::<BTreeSet<_>>()
}

fn own_oom_score_adj() -> Option<i32> {
    fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().parse().ok()
}

fn has_hugetlb(cgroup_v2: bool) -> bool {
    if !cgroup_v2 {
        return Path::new("/sys/fs/cgroup/hugetlb").is_dir();
    }
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    controllers.split_whitespace().any(|c| c == "hugetlb")
}

/// Options of the node's own mount that containers without a cgroup namespace must not undo.
fn cgroup_mount_options() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let line = mounts.lines().find(|l| l.split(' ').nth(4) == Some("/sys/fs/cgroup")).unwrap_or_default();
    let options = line.rsplit(' ').next().unwrap_or_default().split(',');
    options.filter(|o| ["nsdelegate", "memory_recursiveprot"].contains(o)).map(str::to_owned).collect()
}

/// A machine that can do nothing.
#[cfg(test)]
pub(crate) fn nothing() -> NodeFacts {
    NodeFacts {
        cgroup_v2: false,
        cgroup_mount_options: Vec::new(),
        swap_controller: false,
        hugetlb_controller: false,
        seccomp: false,
        apparmor: AppArmor::Off,
        selinux: false,
        recursive_read_only: false,
        idmap_mounts: false,
        capabilities: CapabilityNames::new(),
        lowest_oom_score_adj: None,
        architecture: String::new(),
        host_devices: Vec::new(),
        hostname: String::new(),
        rlimits: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{capabilities, is_since};

    #[test]
    fn kernels_are_told_by_their_releases() {
        for (release, want) in [
            ("5.8.0", true),
            ("5.7.19-x", false),
            ("6.1.0-18-amd64", true),
            ("4.19", false),
            ("5.10", true),
            ("x", false),
        ] {
            assert_eq!(is_since(release, (5, 8)), want, "{release}");
        }
    }

    #[test]
    fn capabilities_are_bits_of_the_bounding_set() {
        let all = capabilities("Name:\tx\nCapBnd:\t000001ffffffffff\n");
        assert_eq!(all.len(), 41);
        let some = capabilities("CapBnd:\t0000000001000021\n");
        assert_eq!(some.into_iter().collect::<Vec<_>>(), ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_RESOURCE"]);
        assert!(capabilities("").is_empty());
    }
}
