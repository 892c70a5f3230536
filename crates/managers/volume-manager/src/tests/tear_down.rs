//! Effects of taking away.

use model::PodUid;
use ports::host::TMPFS_MAGIC;
use serde_json::json;

use super::rig::{Host, all, config, deps, pod};
use crate::layout::PodLayout;
use crate::tear_down::{Proof, pod_dir, present, volumes_of};

fn layout(host: &Host) -> PodLayout {
    PodLayout::new(&config(host).root_dir, &PodUid::from("u")).unwrap()
}

fn set_up(host: &Host) {
    let volumes = json!([{"name": "v", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}]);
    all(&deps(host), &config(host), &pod("u", volumes)).unwrap();
    host.file("pods/u/volumes/kubernetes.io~empty-dir/v/data");
    host.file("pods/u/volumes/kubernetes.io~empty-dir/m/data");
}

#[test]
fn volumes_go_with_their_content_and_their_markers() {
    for proof in [Proof::Ended, Proof::Marker] {
        let host = Host::default();
        set_up(&host);
        assert_eq!(present(&host.0, &layout(&host)).unwrap().unwrap(), ["m", "v"]);
        for _ in 0..2 {
            volumes_of(&deps(&host), &layout(&host), proof).unwrap();
        }
        assert!(present(&host.0, &layout(&host)).unwrap().unwrap().is_empty());
        assert!(!host.is_mounted("pods/u/volumes/kubernetes.io~empty-dir/m"));
        for below in ["volumes/kubernetes.io~empty-dir/v", "plugins/kubernetes.io~empty-dir/v"] {
            assert!(!host.exists(&format!("pods/u/{below}")), "{below}");
        }
    }
}

#[test]
fn binds_of_sub_paths_go_before_their_volumes() {
    let host = Host::default();
    set_up(&host);
    host.dir("pods/u/volume-subpaths/v/app");
    for index in ["0", "1"] {
        host.mount(&format!("pods/u/volume-subpaths/v/app/{index}"), 1);
    }
    host.write("pods/u/volume-subpaths/v/app/2", "");
    volumes_of(&deps(&host), &layout(&host), Proof::Ended).unwrap();
    assert!(!host.exists("pods/u/volume-subpaths"));
}

#[test]
fn a_bind_that_cannot_be_undone_keeps_everything() {
    let host = Host::default();
    set_up(&host);
    host.mount("pods/u/volume-subpaths/v/app/0", 1);
    host.fail("unmount", "pods/u/volume-subpaths");
    assert!(volumes_of(&deps(&host), &layout(&host), Proof::Ended).is_err());
    assert!(host.exists("pods/u/volumes/kubernetes.io~empty-dir/v/data"));
}

#[test]
fn content_without_proof_stays() {
    for (what, kind, kept) in [
        ("no marker", "kubernetes.io~empty-dir", true),
        ("a kind of others", "kubernetes.io~nfs", true),
        ("with the marker of a wrapped kind", "kubernetes.io~secret", false),
    ] {
        let host = Host::default();
        host.file(&format!("pods/u/volumes/{kind}/v/precious"));
        host.file("pods/u/plugins/kubernetes.io~empty-dir/wrapped_v/ready");
        let done = pod_dir(&deps(&host), &layout(&host));
        assert_eq!(done.is_err(), kept, "{what}: {done:?}");
        assert_eq!(host.exists(&format!("pods/u/volumes/{kind}/v/precious")), kept, "{what}");
        assert_eq!(host.exists("pods/u"), kept, "{what}");
    }
}

#[test]
fn an_ended_pods_own_content_needs_no_marker() {
    let host = Host::default();
    host.file("pods/u/volumes/kubernetes.io~empty-dir/v/data");
    volumes_of(&deps(&host), &layout(&host), Proof::Ended).unwrap();
    assert!(!host.exists("pods/u/volumes/kubernetes.io~empty-dir/v"));
}

#[test]
fn foreign_mounts_are_never_touched() {
    for (dir, magic) in [
        ("kubernetes.io~empty-dir/v", 0xef53),
        ("kubernetes.io~csi/pv/mount", 0xef53),
        ("kubernetes.io~nfs/share", 0x6969),
        ("kubernetes.io~nfs/memory", TMPFS_MAGIC),
    ] {
        for proof in [Proof::Ended, Proof::Marker] {
            let host = Host::default();
            let below = format!("pods/u/volumes/{dir}");
            host.mount(&below, magic);
            host.file(&format!("{below}/precious"));
            host.file("pods/u/plugins/kubernetes.io~empty-dir/v/ready");
            assert!(volumes_of(&deps(&host), &layout(&host), proof).is_err(), "{dir}");
            assert!(pod_dir(&deps(&host), &layout(&host)).is_err(), "{dir}");
            assert!(host.is_mounted(&below) && host.exists(&format!("{}/{}", &below, "precious")), "{dir}");
        }
    }
}

#[test]
fn the_directory_of_an_unknown_pod_goes_with_what_the_node_keeps_there() {
    let host = Host::default();
    set_up(&host);
    host.file("pods/u/etc-hosts");
    host.file("pods/u/containers/app/1a2b3c4d");
    host.dir("pods/u/volumeDevices/kubernetes.io~csi");
    for _ in 0..2 {
        pod_dir(&deps(&host), &layout(&host)).unwrap();
    }
    assert!(!host.exists("pods/u") && host.exists("pods"));
    assert_eq!(present(&host.0, &layout(&host)).unwrap(), None);
}

#[test]
fn stray_files_and_mounts_keep_the_directory() {
    for stray in ["volumes/file", "volumes/kubernetes.io~nfs/file", "volumeDevices/kubernetes.io~csi/pv"] {
        let host = Host::default();
        host.file(&format!("pods/u/{stray}"));
        host.file("pods/u/etc-hosts");
        assert!(pod_dir(&deps(&host), &layout(&host)).is_err(), "{stray}");
        assert!(host.exists(&format!("{}/{}", "pods/u", stray)), "{stray}");
        assert!(host.exists("pods/u/etc-hosts"), "{stray}: the rest waits too");
    }
    let host = Host::default();
    host.mount("pods/u/containers/app", 1);
    assert!(pod_dir(&deps(&host), &layout(&host)).is_err());
    assert!(host.is_mounted("pods/u/containers/app"));
}
