//! A pod from nothing to nothing, on cgroup v2.

use testbed::plain_id;

use crate::node::{Node, PODS, shell, uid};

#[test]
fn a_pod_has_the_cgroup_v2_values_that_it_asks_for_and_leaves_nothing() {
    let node = Node::start();
    let extra = "    resources: {limits: {memory: 64Mi, cpu: 100m}, requests: {memory: 32Mi, cpu: 50m}}\n    \
                 volumeMounts: [{name: work, mountPath: /work}]\n";
    let script = "echo made > /work/file; exec sleep 100000";
    let volumes = "  volumes: [{name: work, emptyDir: {}}]\n";
    node.put("bounded", &format!("  containers:\n{}{volumes}", shell("main", script, extra)));
    let pod = node.wait_running("bounded");
    let uid = uid(&pod);
    let group = format!("/sys/fs/cgroup/kubepods/burstable/pod{uid}");
    let container = pod["status"]["containerStatuses"][0]["containerID"].as_str().expect("an id");
    let container = plain_id(container);
    for (what, want) in [("memory.max", "67108864"), ("cpu.max", "10000 100000"), ("cpu.weight", "2")] {
        for group in [&group, &format!("{group}/{container}")] {
            assert_eq!(node.sh(&format!("cat {group}/{what}")).trim(), want, "{group}/{what}");
        }
    }
    let controllers = node.sh("cat /sys/fs/cgroup/kubepods/burstable/cgroup.subtree_control");
    for controller in ["cpu", "memory", "pids"] {
        assert!(controllers.split_whitespace().any(|c| c == controller), "{controllers}");
    }
    let volume = format!("{PODS}/{uid}/volumes/kubernetes.io~empty-dir/work");
    assert_eq!(node.sh(&format!("cat {volume}/file")), "made\n");
    node.remove("bounded");
    node.wait_gone("bounded");
    node.wait("folder and cgroup to go", || {
        let left = node.sh(&format!("ls -d {PODS}/{uid} {group} 2> /dev/null || true"));
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
    assert_eq!(node.sh("grep -c /var/lib/kubelet/pods /proc/self/mounts || true").trim(), "0");
}
