//! Directories on file systems that count projects: nobody walks them to know what they take. Pods with users of their own, which have
//! such volumes, do not start here yet: the daemon's own port is driven by a program.

use crate::node::Node;

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
