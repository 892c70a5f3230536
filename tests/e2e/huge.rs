//! Huge pages of the machine: what the node grants, what a pod mounts and takes, who is refused.
//!
//! The pages are the machine's own (`/sys/kernel/mm/hugepages`): some are set aside for a test, and given back after it. That the kernel
//! holds a pod to its limit (`hugetlb.2MB.max`) cannot be shown where the controller is missing: neither here on cgroup v1 nor in a guest,
//! whose kernel knows no huge pages.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::wait_until;

use crate::node::{Node, SOON, shell};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// So many pages of 2 MiB.
const PAGES: u64 = 16;

/// Pages of the machine, until it is dropped.
struct Pool {
    before: u64,
}

fn count(file: &str) -> u64 {
    let path = Path::new(POOL).join(file);
    let text =
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("no huge pages of 2 MiB: {}: {e}", path.display()));
    text.trim().parse().expect("a number")
}

fn set(pages: u64) -> std::io::Result<()> {
    std::fs::write(Path::new(POOL).join("nr_hugepages"), pages.to_string())
}

impl Pool {
    /// Sets pages aside; the kernel may need some time to move what is in their way.
    fn take() -> Pool {
        let pool = Pool { before: count("nr_hugepages") };
        let wanted = pool.before + PAGES;
        wait_until("the kernel to give huge pages", Duration::from_secs(20), || {
            set(wanted).map_err(|e| e.to_string())?;
            let is = count("nr_hugepages");
            if is == wanted { Ok(()) } else { Err(format!("{is} of {wanted}")) }
        })
        .unwrap_or_else(|e| panic!("{e}"));
        pool
    }

    fn all(&self) -> u64 {
        self.before + PAGES
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Err(e) = set(self.before) {
            eprintln!("{POOL}: {e}: {} pages were there before", self.before);
        }
    }
}

/// One that asks for so many MiB of pages.
fn asks(mib: u64, script: &str) -> String {
    let resources = format!("{{requests: {{cpu: 10m}}, limits: {{hugepages-2Mi: {mib}Mi, memory: 32Mi}}}}");
    let extra = format!("    resources: {resources}\n    volumeMounts: [{{name: pages, mountPath: /pages}}]\n");
    let volume = "  volumes: [{name: pages, emptyDir: {medium: HugePages-2Mi}}]\n";
    format!("  terminationGracePeriodSeconds: 1\n  containers:\n{}{volume}", shell("main", script, &extra))
}

#[test]
fn a_pod_has_the_machines_huge_pages_as_far_as_the_node_grants_them_and_gives_them_back() {
    let pool = Pool::take();
    let node = Node::start();
    let free = count("free_hugepages");
    let takes = "set -e; grep ' /pages hugetlbfs ' /proc/mounts > /dev/termination-log; fallocate -l 6291456 /pages/f; exec sleep 100000";
    node.put("takes", &asks(8, takes));
    let pod = node.wait_running("takes");
    let given = &pod["spec"]["containers"][0]["resources"];
    assert_eq!(given["requests"]["hugepages-2Mi"], "8Mi", "requests are the limits: {given}");
    let mount = mounted(&node, &pod);
    assert!(mount.contains("pagesize=2M"), "{mount}");
    wait_until("three pages to be taken", SOON, || match count("free_hugepages") {
        now if now + 3 == free => Ok(()),
        now => Err(format!("{now} of {free} are free")),
    })
    .unwrap_or_else(|e| panic!("{e}\n{}", node.bosun.log()));
    told_to_the_runtime(&node, &pod);

    // What is granted to one is not granted to another. A pod of the folder is critical: others would have to make room for what it lacks,
    // and nobody does.
    node.put("much", &asks(2 * pool.all(), "exec sleep 100000"));
    let refused = node.wait_phase("much", "Failed");
    let status = &refused["status"];
    assert_eq!(status["reason"], "UnexpectedAdmissionError", "{status}");
    let lacks = format!("no set of running pods found to reclaim resources: [(res: hugepages-2Mi, q: {}), ]", 8 << 20);
    assert!(status["message"].as_str().is_some_and(|m| m.contains(&lacks)), "{status}");
    assert_eq!(testbed::identity(&node.wait_running("takes")), testbed::identity(&pod), "the other one runs on");

    node.remove("takes");
    node.wait_gone("takes");
    wait_until("all pages to be free again", SOON, || match count("free_hugepages") {
        now if now == free => Ok(()),
        now => Err(format!("{now} of {free} are free")),
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let own = node.bed.dir().to_string_lossy().into_owned();
    assert!(!mounts.lines().any(|line| line.contains(&own) && line.contains("hugetlbfs")), "{mounts}");
}

/// The line of the pod's volume in the machine's mounts.
fn mounted(node: &Node, pod: &Value) -> String {
    let uid = pod["metadata"]["uid"].as_str().expect("a UID");
    let path = node.bed.dir().join("node/pods").join(uid).join("volumes/kubernetes.io~empty-dir/pages");
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == path.to_str() && line.contains(" hugetlbfs "));
    line.unwrap_or_else(|| panic!("{} is not mounted: {mounts}", path.display())).to_owned()
}

/// The runtime has a limit for each size of pages, also those that the pod does not ask for.
fn told_to_the_runtime(node: &Node, pod: &Value) {
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().expect("an id");
    let info = node.bed.container_info(id).expect("told");
    let limits = &info["runtimeSpec"]["linux"]["resources"]["hugepageLimits"];
    if limits.is_null() {
        // containerd leaves them out where the kernel has no such controller.
        assert!(!has_controller(), "{info}");
        return;
    }
    let all = limits.as_array().expect("limits");
    assert!(all.contains(&json!({"pageSize": "2MB", "limit": 8 << 20})), "{limits}");
    assert!(all.iter().filter(|l| l["pageSize"] != "2MB").all(|l| l["limit"] == 0), "{limits}");
}

fn has_controller() -> bool {
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    Path::new("/sys/fs/cgroup/hugetlb").exists() || controllers.split_whitespace().any(|c| c == "hugetlb")
}
