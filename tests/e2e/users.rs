//! Pods with users of their own (`hostUsers: false`): on containerd 2.x (`cargo xtask e2e --newer`) they run, on Debian 12's
//! 1.6 they wait with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::Value;
use testbed::{identity, wait_until};

use crate::node::{Node, SOON, block, shell};

/// Says who it is, writes into its volumes, and stays.
fn own(node: &Node, name: &str) {
    let script = "cat /proc/self/uid_map > /dev/termination-log && test -s /etc/hosts && cat /about/name > /work/read && \
                  touch /work/made && until [ -e /work/end ]; do sleep 0.1; done; exit 3";
    let mounts = "    volumeMounts: [{name: work, mountPath: /work}, {name: about, mountPath: /about}]\n";
    let spec = format!(
        "  hostUsers: false\n  securityContext: {{}}\n  terminationGracePeriodSeconds: 1\n  containers:\n{}  volumes:\n  \
         - {{name: work, emptyDir: {{}}}}\n  \
         - {{name: about, downwardAPI: {{items: [{{path: name, fieldRef: {{fieldPath: metadata.name}}}}]}}}}\n",
        shell("main", script, mounts)
    );
    node.put(name, &spec);
}

fn folder(node: &Node, pod: &Value) -> PathBuf {
    node.bed.dir().join("node/pods").join(pod["metadata"]["uid"].as_str().expect("uid"))
}

fn work(node: &Node, pod: &Value) -> PathBuf {
    folder(node, pod).join("volumes/kubernetes.io~empty-dir/work")
}

/// First id of the pod on the host, as its file says.
fn first_id(node: &Node, pod: &Value) -> u64 {
    let path = folder(node, pod).join("userns");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(file["uidMappings"], file["gidMappings"], "{text}");
    assert_eq!(
        (&file["uidMappings"][0]["containerId"], &file["uidMappings"][0]["length"]),
        (&0.into(), &65_536.into())
    );
    file["uidMappings"][0]["hostId"].as_u64().expect("a number")
}

/// Users of the host that the processes of containers and sandboxes are, and how many of those are each: all processes of one are in
/// its cgroup.
fn owners(node: &Node) -> BTreeMap<u64, usize> {
    let group = format!("{}/", node.bed.cgroup_root());
    let mut found: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for of in std::fs::read_dir("/proc").expect("proc").flatten().map(|entry| entry.path()) {
        // It may end meanwhile.
        let (Ok(facts), Ok(text)) = (of.metadata(), std::fs::read_to_string(of.join("cgroup"))) else { continue };
        if let Some((_, own)) = text.lines().find_map(|line| line.split_once(&group)) {
            found.entry(facts.uid().into()).or_default().insert(own.to_owned());
        }
    }
    found.into_iter().map(|(owner, groups)| (owner, groups.len())).collect()
}

/// Whether the runtime is a containerd 2.x.
pub(crate) fn is_new(node: &Node) -> bool {
    if node.bed.has_own_runtime() {
        // Pods with users of their own need runc 1.2, and Debian 12 has 1.1.
        return false;
    }
    let version = block(async { node.cri().version().await }).expect("a version").runtime_version;
    !version.trim_start_matches('v').starts_with("1.")
}

#[test]
fn the_root_of_a_pod_is_nobody_on_the_host() {
    let mut node = Node::start();
    own(&node, "one");
    if !is_new(&node) {
        let why = "can't set `spec.hostUsers: false`, runtime does not support user namespaces";
        let said = || if node.bosun.log().contains(why) { Ok(()) } else { Err(node.bosun.log()) };
        return wait_until("the reason to be told", SOON, said).unwrap_or_else(|e| panic!("{e}"));
    }
    own(&node, "two");
    let pods = ["one", "two"].map(|name| node.wait_running(name));
    let ids = [first_id(&node, &pods[0]), first_id(&node, &pods[1])];
    assert!(ids[0].abs_diff(ids[1]) >= 65_536 && ids.iter().all(|id| *id >= 65_536), "{ids:?}");
    for (pod, name) in pods.iter().zip(["one", "two"]) {
        let made = work(&node, pod).join("made");
        wait_until("the pod to write", SOON, || made.metadata().map_err(|e| e.to_string())).expect("written");
        assert_eq!(made.metadata().expect("there").uid(), 0, "the volume shows the pod's root as the host's");
        assert_eq!(std::fs::read_to_string(work(&node, pod).join("read")).expect("read"), format!("{name}-bed"));
    }
    assert_eq!(owners(&node), ids.map(|id| (id, 2)).into(), "sandbox and container of each");

    let before = pods.each_ref().map(identity);
    node.bosun.kill();
    node.bosun.start_again(&mut node.bed).expect("starts again");
    assert_eq!(["one", "two"].map(|name| identity(&node.wait_running(name))), before, "not started anew");

    // A container that starts anew has the ids of its sandbox.
    std::fs::write(work(&node, &pods[0]).join("end"), "").expect("written");
    let count = |p: &Value| p["status"]["containerStatuses"][0]["restartCount"].as_u64();
    let again = node.wait("one", "to be started anew", |p| (count(p) > Some(0)).then(|| p.clone()));
    let map =
        again["status"]["containerStatuses"][0]["lastState"]["terminated"]["message"].as_str().unwrap_or_default();
    let map: Vec<&str> = map.split_whitespace().collect();
    assert_eq!(map, ["0", &ids[0].to_string(), "65536"]);
    assert_eq!(first_id(&node, &again), ids[0]);

    for (pod, name) in pods.iter().zip(["one", "two"]) {
        node.remove(name);
        node.wait_gone(name);
        let folder = folder(&node, pod);
        let gone = || if folder.exists() { Err(folder.display().to_string()) } else { Ok(()) };
        wait_until("the pod's folder to go", SOON, gone).expect("removed");
    }
}
