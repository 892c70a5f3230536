//! Effects of taking away.

use fakes::Folder;
use model::PodUid;
use ports::host::TMPFS_MAGIC;
use serde_json::json;

use super::rig::{all, config, deps, host, pod};
use crate::layout::PodLayout;
use crate::tear_down::{Left, Proof, pod_dir, present, volumes_of};

fn layout(host: &Folder) -> PodLayout {
    PodLayout::new(&config(host).root_dir, &PodUid::from("u")).unwrap()
}

fn set_up(host: &Folder) {
    let volumes = json!([{"name": "v", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}]);
    all(&deps(host), &config(host), &pod("u", volumes)).unwrap();
    host.write("pods/u/volumes/kubernetes.io~empty-dir/v/data", "content");
    host.write("pods/u/volumes/kubernetes.io~empty-dir/m/data", "content");
}

#[test]
fn volumes_go_with_their_content_and_their_markers() {
    for proof in [Proof::Ended, Proof::Marker] {
        let host = host();
        set_up(&host);
        assert_eq!(present(&host.disk, &layout(&host)).unwrap().unwrap(), ["m", "v"]);
        for _ in 0..2 {
            volumes_of(&deps(&host), &layout(&host), proof).and_then(Left::all_gone).unwrap();
        }
        assert!(present(&host.disk, &layout(&host)).unwrap().unwrap().is_empty());
        assert!(!host.is_mounted("pods/u/volumes/kubernetes.io~empty-dir/m"));
        for below in ["volumes/kubernetes.io~empty-dir/v", "plugins/kubernetes.io~empty-dir/v"] {
            assert!(!host.exists(format!("pods/u/{below}")), "{below}");
        }
    }
}

#[test]
fn binds_of_sub_paths_go_before_their_volumes() {
    let host = host();
    set_up(&host);
    host.dir("pods/u/volume-subpaths/v/app");
    for index in ["0", "1"] {
        host.mount(format!("pods/u/volume-subpaths/v/app/{index}"), 1);
    }
    host.write("pods/u/volume-subpaths/v/app/2", "");
    volumes_of(&deps(&host), &layout(&host), Proof::Ended).and_then(Left::all_gone).unwrap();
    assert!(!host.exists("pods/u/volume-subpaths"));
}

#[test]
fn a_bind_that_cannot_be_undone_keeps_everything() {
    let host = host();
    set_up(&host);
    host.mount("pods/u/volume-subpaths/v/app/0", 1);
    host.fail("unmount", "pods/u/volume-subpaths");
    assert!(volumes_of(&deps(&host), &layout(&host), Proof::Ended).and_then(Left::all_gone).is_err());
    assert!(host.exists("pods/u/volumes/kubernetes.io~empty-dir/v/data"));
}

#[test]
fn content_without_proof_stays() {
    for (what, kind, kept) in [
        ("no marker", "kubernetes.io~empty-dir", true),
        ("a kind of others", "kubernetes.io~nfs", true),
        ("with the marker of a wrapped kind", "kubernetes.io~secret", false),
    ] {
        let host = host();
        host.write(format!("pods/u/volumes/{kind}/v/precious"), "content");
        host.write("pods/u/plugins/kubernetes.io~empty-dir/wrapped_v/ready", "content");
        let done = pod_dir(&deps(&host), &layout(&host)).and_then(Left::all_gone);
        assert_eq!(done.is_err(), kept, "{what}: {done:?}");
        assert_eq!(host.exists(format!("pods/u/volumes/{kind}/v/precious")), kept, "{what}");
        assert_eq!(host.exists("pods/u"), kept, "{what}");
    }
}

#[test]
fn files_of_an_atomic_writer_are_proof_also_when_few_are_left() {
    let files = "..2026_11_20_09_08_37.0000000001";
    for (what, kind, left, kept) in [
        ("whole", "kubernetes.io~configmap", &["..data", "a", files][..], false),
        ("before the switch", "kubernetes.io~configmap", &[files][..], false),
        ("half removed", "kubernetes.io~projected", &["a"][..], false),
        ("nothing yet", "kubernetes.io~configmap", &[][..], false),
        ("a kind without such files", "kubernetes.io~empty-dir", &["..data", "a", files][..], true),
    ] {
        let host = host();
        let dir = format!("pods/u/volumes/{kind}/v");
        host.dir(&dir);
        for name in left {
            match *name {
                "..data" => host.link(files, format!("{dir}/..data")),
                "a" => host.link("..data/a", format!("{dir}/a")),
                _ => host.write(format!("{dir}/{files}/a"), "content"),
            }
        }
        let done = pod_dir(&deps(&host), &layout(&host)).and_then(Left::all_gone);
        assert_eq!((done.is_err(), host.exists("pods/u")), (kept, kept), "{what}: {done:?}");
    }
}

#[test]
fn an_ended_pods_own_content_needs_no_marker() {
    let host = host();
    host.write("pods/u/volumes/kubernetes.io~empty-dir/v/data", "content");
    volumes_of(&deps(&host), &layout(&host), Proof::Ended).and_then(Left::all_gone).unwrap();
    assert!(!host.exists("pods/u/volumes/kubernetes.io~empty-dir/v"));
}

#[test]
fn foreign_mounts_are_never_touched() {
    for (dir, magic) in [
        ("kubernetes.io~empty-dir/v", 0xef53),
        ("kubernetes.io~glusterfs/share", 0x6573_5546),
        ("kubernetes.io~nfs/disk", 0xef53),
        ("kubernetes.io~nfs/memory", TMPFS_MAGIC),
    ] {
        for proof in [Proof::Ended, Proof::Marker] {
            let host = host();
            let below = format!("pods/u/volumes/{dir}");
            host.mount(&below, magic);
            host.write(format!("{below}/precious"), "content");
            host.write("pods/u/plugins/kubernetes.io~empty-dir/v/ready", "content");
            assert!(volumes_of(&deps(&host), &layout(&host), proof).and_then(Left::all_gone).is_err(), "{dir}");
            assert!(pod_dir(&deps(&host), &layout(&host)).and_then(Left::all_gone).is_err(), "{dir}");
            assert!(host.is_mounted(&below) && host.exists(format!("{}/{}", &below, "precious")), "{dir}");
        }
    }
}

#[test]
fn the_directory_of_an_unknown_pod_goes_with_what_the_node_keeps_there() {
    let host = host();
    set_up(&host);
    host.write("pods/u/etc-hosts", "content");
    host.write("pods/u/containers/app/1a2b3c4d", "content");
    host.dir("pods/u/volumeDevices/kubernetes.io~csi");
    for _ in 0..2 {
        pod_dir(&deps(&host), &layout(&host)).and_then(Left::all_gone).unwrap();
    }
    assert!(!host.exists("pods/u") && host.exists("pods"));
    assert_eq!(present(&host.disk, &layout(&host)).unwrap(), None);
}

#[test]
fn stray_files_and_mounts_keep_the_directory() {
    for stray in ["volumes/file", "volumes/kubernetes.io~nfs/file", "volumeDevices/kubernetes.io~csi/pv"] {
        let host = host();
        host.write(format!("pods/u/{stray}"), "content");
        host.write("pods/u/etc-hosts", "content");
        // What stands among the devices of drivers is theirs to take, as far as is known here.
        assert!(
            pod_dir(&deps(&host), &layout(&host)).and_then(Left::all_gone).map_or(true, |left| !left.is_empty()),
            "{stray}"
        );
        assert!(host.exists(format!("{}/{}", "pods/u", stray)), "{stray}");
        assert!(host.exists("pods/u/etc-hosts"), "{stray}: the rest waits too");
    }
    let host = host();
    host.mount("pods/u/containers/app", 1);
    assert!(pod_dir(&deps(&host), &layout(&host)).and_then(Left::all_gone).is_err());
    assert!(host.is_mounted("pods/u/containers/app"));
}
