//! Which threads do which work.

use actor::Class;
use contract::volume::PrepareSubPath;
use model::PodUid;
use serde_json::json;

use super::rig::{config, deps, host, pod};
use crate::class::{of_mount, of_sub_path, of_tear_down};
use crate::layout::PodLayout;

fn choose(may_meet_users: bool) -> Class {
    if may_meet_users { Class::UserPaths } else { Class::HostFiles }
}

#[test]
fn what_a_pod_has_decides() {
    for (volume, of_users) in [
        (json!({"name": "v", "emptyDir": {}}), false),
        (json!({"name": "v", "hostPath": {"path": "/h"}}), false),
        (json!({"name": "v", "hostPath": {"path": "/h", "type": "Directory"}}), true),
    ] {
        let (p, own) = (pod("u", json!([volume, {"name": "w", "emptyDir": {}}])), ["v", "w"].map(str::to_owned));
        assert_eq!(of_mount(&p, &own), choose(of_users), "{volume}");
        assert_eq!(of_mount(&p, &own[1..]), Class::HostFiles, "another volume of the same pod");
    }
}

#[test]
fn what_is_left_of_a_pod_decides_by_its_names_and_mounts() {
    use Class::{HostFiles, Removals, UserPaths};
    for (what, class, below, mounted) in [
        (
            "what a user may have filled",
            Removals,
            &["volumes/kubernetes.io~empty-dir/v", "volumes/kubernetes.io~secret/s"][..],
            "",
        ),
        ("objects", HostFiles, &["volumes/kubernetes.io~secret/s"], ""),
        ("with memory", HostFiles, &[], "volumes/kubernetes.io~secret/s"),
        ("with a mount of a container's", UserPaths, &[], "volumes/kubernetes.io~empty-dir/v/fuse"),
        ("a subPath of one", HostFiles, &["volumes/kubernetes.io~secret/s"], "volume-subpaths/s/app/0"),
        ("a subPath of a hostPath", UserPaths, &["volumes/kubernetes.io~secret/s"], "volume-subpaths/h/app/0"),
        ("a share of a server", UserPaths, &[], "volumes/kubernetes.io~nfs/share"),
        ("nothing", HostFiles, &[], ""),
    ] {
        let host = host();
        below.iter().for_each(|dir| host.dir(format!("pods/u/{dir}")));
        if !mounted.is_empty() {
            host.mount(format!("pods/u/{mounted}"), 1);
        }
        let layout = PodLayout::new(&config(&host).root_dir, &PodUid::from("u")).unwrap();
        assert_eq!(of_tear_down(&deps(&host), &layout), class, "{what}");
    }
}

#[test]
fn a_part_of_a_volume_made_here_is_the_nodes_unless_a_container_mounted_there() {
    let host = host();
    let layout = PodLayout::new(&config(&host).root_dir, &PodUid::from("u")).unwrap();
    let of = |volume_path| {
        let (container, volume, sub_path) = ("app".into(), "v".into(), "x".into());
        let uid = PodUid::from("u");
        let ask = PrepareSubPath { uid, container, volume, volume_path, sub_path, mount_index: 0 };
        of_sub_path(&deps(&host), &layout, &ask)
    };
    let own = || host.path("pods/u/volumes/kubernetes.io~empty-dir/v");
    host.mount("pods/u/volumes/kubernetes.io~empty-dir/v", 1);
    assert_eq!((of(own()), of("/nfs".into())), (Class::HostFiles, Class::UserPaths));
    for of_others in ["kubernetes.io~nfs/v", "kubernetes.io~csi/v/mount"] {
        let path = host.path(format!("pods/u/volumes/{of_others}"));
        assert_eq!(of(path), Class::UserPaths, "{of_others}: its server may not answer");
    }
    host.mount("pods/u/volumes/kubernetes.io~empty-dir/v/fuse", 1);
    assert_eq!(of(own()), Class::UserPaths);
}
