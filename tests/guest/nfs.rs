//! A real server shares a directory, pods have it as an inline volume, and the server goes for a while.

use crate::node::{Node, PODS, shell, uid};

/// Starts the server; again after [`stop`]. Nobody waits for clients of a former one for longer than 10 s.
fn serve(node: &Node) {
    node.sh("set -e; modprobe nfsd; mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
         for what in lease grace; do echo 10 > /proc/fs/nfsd/nfsv4${what}time; done
         exportfs -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 10.77.0.1:/srv/nfs
         pgrep -x rpc.mountd > /dev/null || rpc.mountd --no-nfs-version 2 --no-nfs-version 3
         rpc.nfsd --no-nfs-version 3 --nfs-version 4 --host 10.77.0.1 2");
}

/// From now on nobody answers; clients try again for ever.
fn stop(node: &Node) {
    node.sh("rpc.nfsd 0");
}

/// A pod that has the share at /share and runs a script.
fn pod(script: &str, read_only: bool) -> String {
    let mounts = "    volumeMounts: [{name: share, mountPath: /share}]\n";
    let volume = format!("{{name: share, nfs: {{server: 10.77.0.1, path: /a, readOnly: {read_only}}}}}");
    format!("  containers:\n{}  volumes: [{volume}]\n", shell("main", script, mounts))
}

fn mounts(node: &Node) -> Vec<String> {
    let table = node.sh("cat /proc/self/mounts");
    table.lines().filter(|l| l.contains(PODS) && l.contains(" nfs4 ")).map(str::to_owned).collect()
}

/// The line of a pod in the mount table.
fn mount_of(node: &Node, uid: &str) -> Option<String> {
    let at = format!(" {PODS}/{uid}/volumes/kubernetes.io~nfs/share ");
    mounts(node).into_iter().find(|l| l.contains(&at))
}

fn wait_file(node: &Node, name: &str, text: &str) {
    node.wait(&format!("{name} on the server"), || {
        let is = node.sh(&format!("cat /srv/nfs/a/{name} 2> /dev/null || true"));
        if is == text { Ok(()) } else { Err(is) }
    });
}

#[test]
fn a_share_is_mounted_as_asked_a_server_that_is_gone_holds_up_its_own_pods_only_and_nothing_stays() {
    let node = Node::without_services();
    node.sh("mkdir -p /srv/nfs/a");
    serve(&node);
    node.up();
    // Two write into it, the second in one go; a third may only read.
    let writes = "echo one > /share/one; while sleep 1; do [ -e /share/asked ] && cp /share/asked /share/told; done";
    node.put("writes", &pod(writes, false));
    node.put(
        "copies",
        &pod("until cp /share/one /share/two; do sleep 1; done; while sleep 1; do date > /share/busy; done", false),
    );
    node.put("reads", &pod("until cat /share/two; do sleep 1; done; touch /share/x; exec sleep 100000", true));
    let [writes, copies, reads] = ["writes", "copies", "reads"].map(|name| node.wait_running(name));
    wait_file(&node, "one", "one\n");
    wait_file(&node, "two", "one\n");
    for (pod, mode) in [(&writes, "rw"), (&copies, "rw"), (&reads, "ro")] {
        let line = mount_of(&node, uid(pod)).expect("mounted");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[0], words[2], words[3].split(',').next()), ("10.77.0.1:/a", "nfs4", Some(mode)), "{line}");
    }
    node.wait("the word of the pod that only reads", || {
        let log = node.sh(&format!("cat /var/log/pods/*_{}/main/0.log", uid(&reads)));
        if log.contains("touch: /share/x: Read-only file system") { Ok(()) } else { Err(log) }
    });
    let table = mounts(&node);
    node.restart_bosun();
    for (name, before) in [("writes", &writes), ("copies", &copies), ("reads", &reads)] {
        assert_eq!(testbed::identity(&node.wait_running(name)), testbed::identity(before), "{name} runs on");
    }
    assert_eq!(mounts(&node), table, "the next daemon finds what is mounted");

    stop(&node);
    node.put("late", &pod("echo late > /share/late; exec sleep 100000", false));
    node.remove("copies");
    node.put("other", "  containers: [{name: main, image: registry.k8s.io/pause:3.6}]\n");
    node.wait_running("other");
    // It dies over a mount, and at times over an unmount, that wait for the server.
    node.wait("a mount to wait", || {
        let programs = node.sh("ps -eo args | grep -E '^u?mount ' || true");
        if programs.contains("mount -t nfs ") { Ok(()) } else { Err(programs) }
    });
    node.restart_bosun();
    node.remove("other");
    node.wait_gone("other");
    let late = node.pod("late").expect("an answer").expect("a pod");
    assert_eq!(late["status"]["phase"], "Pending", "{late}");
    assert!(node.ask("volumes").is_ok(), "what volumes there are is told all the time");
    // By force, a minute after it was asked for, where the kernel has something of it that the server must have.
    node.wait_gone("copies");
    node.wait("what the pod had mounted to go", || match mount_of(&node, uid(&copies)) {
        None => Ok(()),
        Some(line) => Err(line),
    });

    serve(&node);
    node.wait_running("late");
    wait_file(&node, "late", "late\n");
    node.sh("echo asked > /srv/nfs/a/asked");
    wait_file(&node, "told", "asked\n");
    let after = node.wait_running("writes");
    assert_eq!(testbed::identity(&after), testbed::identity(&writes), "it went on when the server did");
    for name in ["writes", "reads", "late"] {
        node.remove(name);
    }
    for name in ["writes", "reads", "late"] {
        node.wait_gone(name);
    }
    node.wait("folders to go", || {
        let left = node.sh(&format!("ls {PODS}"));
        if left.is_empty() { Ok(()) } else { Err(left) }
    });
    assert_eq!(mounts(&node), Vec::<String>::new());
    assert_eq!(node.sh("ps -eo args | grep -E '^([a-z/]*/)?u?mount' || true"), "", "no program waits");
    let files = node.sh("cd /srv/nfs/a; rm busy; for f in *; do echo $f $(cat $f); done");
    assert_eq!(files, "asked asked\nlate late\none one\ntold asked\ntwo one\n", "what is shared is as it was");
}
