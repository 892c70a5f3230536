//! Directories on file systems that count projects: nobody walks them to know what they take. The daemon's own port by a program,
//! and a pod with users of its own, which has such volumes.

use std::path::PathBuf;

use serde_json::json;

use crate::node::{Node, PODS, shell, uid};

/// Lines that stay when the node has no volume.
const OTHERS: [(&str, &str); 2] = [("projects", "7:/srv/theirs\n"), ("projid", "# ours\ntheirs:7\n")];

fn probe(node: &Node, what: &str, dir: &str) -> String {
    node.sh(&format!("/share/quota-probe {what} {dir}")).trim().to_owned()
}

/// Both files are as they were, but for these projects.
fn expect(node: &Node, projects: &str, projid: &str) {
    for ((file, others), ours) in OTHERS.into_iter().zip([projects, projid]) {
        assert_eq!(node.sh(&format!("cat /etc/{file}")), format!("{others}{ours}"), "/etc/{file}");
    }
}

fn project(node: &Node, dir: &str) -> String {
    node.sh(&format!("lsattr -pd {dir}")).split_whitespace().next().unwrap_or_default().to_owned()
}

fn on(node: &Node, name: &str, make: &str, options: &str) {
    let at = format!("/mnt/{name}");
    node.sh(&format!(
        "set -e; truncate -s 320M /var/{name}.img; {make} /var/{name}.img; mkdir -p {at}; mount -o {options} /var/{name}.img {at}
         mkdir {at}/a {at}/b {at}/full; echo x > {at}/full/file"
    ));
    let (a, b, full) = (format!("{at}/a"), format!("{at}/b"), format!("{at}/full"));
    for _ in 0..2 {
        assert_eq!(probe(node, "assign", &a), "true");
    }
    assert_eq!(probe(node, "assign", &full), "false", "what was written before is not counted: it is walked");
    // A kubelet sets limits; an id that is in use on the disk is taken for nobody else, whatever the files say.
    node.sh(&format!("xfs_quota -x -f -c 'limit -p bhard=1g bsoft=1g 1048577' {at}; mkdir {at}/old; xfs_quota -x -f -c 'project -s -p {at}/old 1048578' {at}"));
    assert_eq!(probe(node, "assign", &b), "true");
    expect(node, &format!("1048577:{a}\n1048579:{b}\n"), "volume1048577:1048577\nvolume1048579:1048579\n");
    assert_eq!(
        (project(node, &a), project(node, &b), project(node, &full)),
        ("1048577".into(), "1048579".into(), "0".into())
    );
    node.sh(&format!(
        "set -e; mkdir -p {a}/c/d; dd if=/dev/zero of={a}/c/d/f bs=1k count=700 2> /dev/null; ln {a}/c/d/f {a}/g; sync"
    ));
    let usage = probe(node, "usage", &a);
    let (counted, walked) = usage.trim_start_matches("counted ").split_once(", walked ").expect("two readings");
    assert_eq!(counted, walked, "{name}");
    assert!(counted.ends_with(" in 4"), "{counted}");
    assert!(probe(node, "usage", &full).starts_with("counted nothing, walked "));
    for dir in [&a, &b, &full] {
        assert_eq!(probe(node, "release", dir), "");
    }
    expect(node, "", "");
    let limits = node.sh(&format!("xfs_quota -P/dev/null -D/dev/null -x -f -c 'quota -p -N -n -v -b 1048577' {at}"));
    let limits: Vec<&str> = limits.split_whitespace().skip(2).take(2).collect();
    assert_eq!(limits, ["0", "0"], "{name}: a kubelet's limits go with the project");
    assert!(
        probe(node, "usage", &a).starts_with("counted nothing"),
        "a directory without a line has no project of ours"
    );
}

#[test]
fn a_directory_is_counted_by_its_file_system_where_that_can_and_lines_of_others_stay() {
    let node = Node::without_services();
    let program = node.guest.share_dir().join("quota-probe");
    std::fs::copy(env!("CARGO_BIN_EXE_quota-probe"), program).expect("copied");
    for (file, text) in OTHERS {
        node.guest.put(&format!("/etc/{file}"), text).expect("written");
    }
    node.sh("modprobe -a quota_v2 xfs");
    on(&node, "ext4", "mkfs.ext4 -q -O quota,project -E quotatype=prjquota", "loop,prjquota");
    on(&node, "xfs", "mkfs.xfs -q", "loop,prjquota");
    // One that counts nothing.
    node.sh("truncate -s 16M /var/none.img; mkfs.ext4 -q /var/none.img; mkdir /mnt/none; mount -o loop /var/none.img /mnt/none; mkdir /mnt/none/a");
    assert_eq!(probe(&node, "assign", "/mnt/none/a"), "false");
    expect(&node, "", "");
}

/// What `cargo xtask setup --newer` brings: Debian 12's containerd knows no users of a pod's own.
const NEWER: &str = "/var/cache/bosun-testbed";

fn newer_containerd() -> Option<PathBuf> {
    let given = std::env::var_os("TESTBED_CONTAINERD").map(PathBuf::from);
    let brought = PathBuf::from(NEWER).join("containerd-forky/containerd");
    given.or(Some(brought)).filter(|path| path.is_file())
}

#[test]
fn the_volume_of_a_pod_with_users_of_its_own_is_counted_by_its_file_system() {
    let node = Node::without_services();
    node.bring(env!("CARGO_BIN_EXE_quota-probe"));
    node.configure(&json!({"featureGates": {"LocalStorageCapacityIsolationFSQuotaMonitoring": true}, "volumeStatsAggPeriod": "1s"}));
    node.sh(
        "set -e; modprobe -a quota_v2; truncate -s 320M /var/root.img; mkfs.ext4 -q -O quota,project -E quotatype=prjquota /var/root.img
         mkdir -p /var/lib/kubelet; mount -o loop,prjquota /var/root.img /var/lib/kubelet",
    );
    let script = "dd if=/dev/zero of=/work/file bs=1k count=700 2> /dev/null; sync; exec sleep 100000";
    let mounts = "    volumeMounts: [{name: work, mountPath: /work}]\n";
    let volumes = "  volumes: [{name: work, emptyDir: {}}]\n";
    let spec = format!("  hostUsers: false\n  containers:\n{}{volumes}", shell("main", script, mounts));
    let Some(containerd) = newer_containerd() else {
        println!("no containerd 2.x here (`cargo xtask setup --newer`): the pod waits with the reason");
        node.up();
        node.put("counted", &spec);
        node.wait("the reason to be told", || {
            let log = node.log();
            if log.contains("runtime does not support user namespaces") { Ok(()) } else { Err(log) }
        });
        return;
    };
    let path = containerd.display();
    node.sh(&format!("set -e; mkdir -p {NEWER}; mount -r -t hostfs -o {NEWER} none {NEWER}; CONTAINERD={path} svc containerd; svc bosun"));
    node.wait("bosun to answer", || node.ask("actors").map(drop));
    node.put("counted", &spec);
    node.put("plain", &format!("  containers:\n{}{volumes}", shell("main", script, mounts)));
    let [counted, plain] = ["counted", "plain"].map(|name| node.wait_running(name));
    let dir = |pod| format!("{PODS}/{}/volumes/kubernetes.io~empty-dir/work", uid(pod));
    let (counted_dir, plain_dir) = (dir(&counted), dir(&plain));
    for dir in [&counted_dir, &plain_dir] {
        node.wait("the pod to write", || {
            let size = node.sh(&format!("stat -c %s {dir}/file 2> /dev/null || true"));
            if size == "716800\n" { Ok(()) } else { Err(size) }
        });
    }
    let projects = || node.sh("cat /etc/projects 2> /dev/null || true");
    assert_eq!(projects(), format!("1048577:{counted_dir}\n"), "a pod of the machine's users has none");
    assert_eq!((project(&node, &counted_dir), project(&node, &plain_dir)), ("1048577".into(), "0".into()));
    let told = probe(&node, "usage", &counted_dir);
    let (by_kernel, walked) = told.trim_start_matches("counted ").split_once(", walked ").expect("two readings");
    assert_eq!(by_kernel, walked);
    let bytes: u64 = by_kernel.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    assert!((716_800..1_000_000).contains(&bytes), "700 KiB and a directory: {told}");
    node.wait("the statistics to say as much", || {
        let summary = node.sh("curl -sSk --max-time 20 https://10.77.0.1:10250/stats/summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).map_err(|e| format!("{e}: {summary}"))?;
        let pods = summary["pods"].as_array().ok_or("no pods")?;
        let of = pods.iter().find(|p| p["podRef"]["uid"] == uid(&counted)).ok_or("not yet")?;
        let used = of["volume"][0]["usedBytes"].as_u64().ok_or_else(|| of.to_string())?;
        if by_kernel.starts_with(&format!("{used} bytes")) { Ok(()) } else { Err(format!("{used}, not {by_kernel}")) }
    });
    // Its root is nobody on the machine, and the volume shows it as the machine's.
    assert_eq!(node.sh(&format!("stat -c %u {counted_dir}/file")), "0\n");
    node.restart_bosun();
    assert_eq!(testbed::identity(&node.wait_running("counted")), testbed::identity(&counted));
    assert_eq!(projects(), format!("1048577:{counted_dir}\n"));
    node.remove("counted");
    node.wait_gone("counted");
    node.wait("its project to go", || match projects() {
        none if none.is_empty() => Ok(()),
        some => Err(some),
    });
}
