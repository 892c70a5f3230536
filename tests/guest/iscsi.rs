//! A real iSCSI target (the kernel's own) with two disks, and pods that have them as inline volumes.

use crate::node::{Node, PODS, shell, uid};

const IQN: &str = "iqn.2024-01.test:disks";
const PORTAL: &str = "10.77.0.1:3260";

/// A target with two empty disks, files of the guest; udev, which names disks, and the initiator.
fn serve(node: &Node) {
    node.sh(&format!(
        "set -e; modprobe -a target_core_file iscsi_target_mod iscsi_tcp sd_mod
         mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
         of=/sys/kernel/config/target; group=$of/iscsi/{IQN}/tpgt_1; mkdir -p $group/np/{PORTAL}
         for n in 0 1; do
           truncate -s 64M /var/disk$n.img; mkdir -p $of/core/fileio_0/disk$n $group/lun/lun_$n
           echo fd_dev_name=/var/disk$n.img,fd_dev_size=67108864 > $of/core/fileio_0/disk$n/control
           echo 1 > $of/core/fileio_0/disk$n/enable; ln -s $of/core/fileio_0/disk$n $group/lun/lun_$n/disk
         done
         for on in generate_node_acls cache_dynamic_acls; do echo 1 > $group/attrib/$on; done
         for off in demo_mode_write_protect authentication; do echo 0 > $group/attrib/$off; done
         echo 1 > $group/enable
         /lib/systemd/systemd-udevd --daemon; iscsid"
    ));
}

fn pod(lun: u8, script: &str) -> String {
    let mounts = "    volumeMounts: [{name: disk, mountPath: /disk}]\n";
    let source = format!("{{targetPortal: \"{PORTAL}\", iqn: \"{IQN}\", lun: {lun}, fsType: ext4}}");
    format!(
        "  containers:\n{}  volumes: [{{name: disk, iscsi: {source}}}]\n",
        shell("main", &format!("{script}; sync; echo done; exec sleep 100000"), mounts)
    )
}

/// How many sessions there are, and the names of the target's disks.
fn sessions_and_disks(node: &Node) -> (usize, Vec<String>) {
    let names = node.sh("ls /sys/class/iscsi_session /dev/disk/by-path 2> /dev/null || true");
    let sessions = names.lines().filter(|l| l.starts_with("session")).count();
    let disks = names.lines().filter_map(|l| l.strip_prefix(&format!("ip-{PORTAL}-iscsi-{IQN}-"))).map(str::to_owned);
    (sessions, disks.collect())
}

fn wait_disks(node: &Node, sessions: usize, disks: &[&str]) {
    node.wait(&format!("{sessions} sessions with {disks:?}"), || {
        let is = sessions_and_disks(node);
        if is.0 == sessions && is.1 == disks { Ok(()) } else { Err(format!("{is:?}")) }
    });
}

/// Waits until the script of a pod has come to its end; answers what it said before.
fn wait_said(node: &Node, uid: &str) -> String {
    node.wait("the pod's script", || {
        let log = node.sh(&format!("sed 's/^[^ ]* stdout F //' /var/log/pods/*_{uid}/main/0.log"));
        log.strip_suffix("done\n").map(str::to_owned).ok_or(log)
    })
}

#[test]
fn a_disk_of_a_target_is_formatted_mounted_for_all_its_pods_and_the_session_ends_with_the_last() {
    let node = Node::without_services();
    serve(&node);
    node.up();
    node.put("first", &pod(0, "echo one > /disk/one"));
    let first = node.wait_running("first");
    assert_eq!(wait_said(&node, uid(&first)), "");
    wait_disks(&node, 1, &["lun-0"]);
    node.put("second", &pod(0, "cat /disk/one; echo two > /disk/two"));
    node.put("other", &pod(1, "ls -A /disk; echo three > /disk/three"));
    let (second, other) = (node.wait_running("second"), node.wait_running("other"));
    assert_eq!(wait_said(&node, uid(&second)), "one\n");
    assert_eq!(wait_said(&node, uid(&other)), "lost+found\n");
    wait_disks(&node, 1, &["lun-0", "lun-1"]);

    node.restart_bosun();
    for (name, before) in [("first", &first), ("second", &second), ("other", &other)] {
        assert_eq!(testbed::identity(&node.wait_running(name)), testbed::identity(before), "{name} runs on");
    }
    node.remove("first");
    node.wait_gone("first");
    assert_eq!(sessions_and_disks(&node).0, 1);
    let path = format!("{PODS}/{}/volumes/kubernetes.io~iscsi/disk/two", uid(&second));
    assert_eq!(node.sh(&format!("cat {path}")), "two\n", "the other pod has the disk");
    // The disk goes, its session stays for the other one.
    node.remove("second");
    node.wait_gone("second");
    wait_disks(&node, 1, &["lun-1"]);
    assert!(node.sh("cat /proc/self/mounts").contains(&format!("{PODS}/{}/volumes", uid(&other))));
    // The last one goes while no daemon is there.
    node.sh("svc kill bosun");
    node.remove("other");
    node.sh("svc bosun");
    wait_disks(&node, 0, &[]);
    node.wait("nothing of it to be left", || {
        let left = node.sh(&format!(
            "grep /var/lib/kubelet /proc/self/mounts; ls {PODS}; find /var/lib/kubelet/plugins -name '*lun-*'; ls -d /dev/sd* || true"
        ));
        let known = node.sh("iscsiadm -m node 2>&1 || true");
        if left.lines().all(|l| l.contains("No such file")) && known.contains("No records found") { Ok(()) } else { Err(format!("{left}\n{known}")) }
    });
    // What the pods wrote is on the disks.
    let files = node.sh(
        "for n in 0 1; do mount -o loop,ro /var/disk$n.img /mnt; cd /mnt; grep . *; cd /; umount /mnt; done 2> /dev/null",
    );
    assert_eq!(files, "one:one\ntwo:two\nthree:three\n");
}
