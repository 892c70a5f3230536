//! Mounts and namespaces.

use cri_api::v1;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::{MountSource, PodNamespaces, SourcePropagation};

fn bind(path: &str) -> v1::Mount {
    v1::Mount { container_path: path.into(), host_path: "/src".into(), ..Default::default() }
}

fn give(f: &mut Fixture, mount: v1::Mount, propagation: SourcePropagation) {
    f.config.mounts.push(mount);
    f.sources.push(MountSource { path: "/real".into(), propagation });
}

fn at<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    json["mounts"].as_array().expect("mounts").iter().find(|m| m["destination"] == path)
}

#[test]
fn every_container_has_the_same_file_systems() {
    let json = Fixture::default().json();
    let all = json["mounts"].as_array().expect("mounts");
    let places: Vec<_> = all.iter().map(|m| m["destination"].as_str().unwrap_or_default()).collect();
    assert_eq!(places, ["/proc", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/sys", "/sys/fs/cgroup"]);
    assert_eq!(at(&json, "/sys").expect("sys")["options"], json!(["nosuid", "noexec", "nodev", "ro"]));
    let options = json!(["nosuid", "noexec", "nodev", "relatime", "ro"]);
    assert_eq!(at(&json, "/sys/fs/cgroup").expect("cgroup")["options"], options);
    // Privileged: writable, and without a cgroup namespace the options of the node's mount stay.
    let json = Fixture::with(Fixture::privileged).json();
    let options = json!(["nosuid", "noexec", "nodev", "relatime", "rw", "nsdelegate"]);
    assert_eq!(at(&json, "/sys/fs/cgroup").expect("cgroup")["options"], options);
    assert_eq!(at(&json, "/sys").expect("sys")["options"][3], "rw");
}

#[test]
fn what_is_asked_for_stands_in_the_place_of_what_would_be_there() {
    let f = Fixture::with(|f| {
        give(f, bind("/dev/shm/"), SourcePropagation::Private);
        give(f, bind("/a/b/c"), SourcePropagation::Private);
        give(f, bind("/a"), SourcePropagation::Private);
        f.files.shm = Some("/pod/shm".into());
        f.files.hosts = Some("/pod/hosts".into());
        f.security().readonly_rootfs = true;
    });
    let json = f.json();
    let all = json["mounts"].as_array().expect("mounts");
    let places: Vec<_> = all.iter().skip(6).map(|m| m["destination"].as_str().unwrap_or_default()).collect();
    assert_eq!(places, ["/a", "/dev/shm/", "/etc/hosts", "/a/b/c"]);
    assert!(at(&json, "/dev/shm").is_none());
    assert_eq!(at(&json, "/etc/hosts").expect("hosts")["options"], json!(["rbind", "rprivate", "ro"]));
    let json = Fixture::with(|f| give(f, bind("/dev"), SourcePropagation::Private)).json();
    assert!(at(&json, "/dev/pts").is_none() && at(&json, "/dev/shm").is_none());
    assert_eq!(at(&json, "/dev").expect("dev")["source"], "/real");
}

#[test]
fn propagation_and_access_are_checked_against_the_source() {
    use SourcePropagation::{Private, Shared, Slave};
    use v1::MountPropagation as P;
    type Want = Result<(&'static str, &'static str, Option<&'static str>), &'static str>;
    let rows: &[(P, SourcePropagation, bool, bool, Want)] = &[
        (P::PropagationPrivate, Private, false, false, Ok(("rprivate", "rw", None))),
        (P::PropagationPrivate, Private, true, false, Ok(("rprivate", "ro", None))),
        (P::PropagationPrivate, Private, true, true, Ok(("rprivate", "rro", None))),
        (P::PropagationHostToContainer, Slave, false, false, Ok(("rslave", "rw", Some("rslave")))),
        (P::PropagationBidirectional, Shared, false, false, Ok(("rshared", "rw", Some("rshared")))),
        (P::PropagationHostToContainer, Private, false, false, Err("neither shared nor slave")),
        (P::PropagationBidirectional, Slave, false, false, Err("is not shared")),
        (P::PropagationPrivate, Private, false, true, Err("conflicts with a writable mount")),
        (P::PropagationHostToContainer, Shared, true, true, Err("needs private propagation")),
    ];
    for (propagation, source, readonly, recursive_read_only, want) in rows {
        let mount = v1::Mount {
            propagation: (*propagation).into(),
            readonly: *readonly,
            recursive_read_only: *recursive_read_only,
            ..bind("/m")
        };
        let f = Fixture::with(|f| give(f, mount, *source));
        match want {
            Ok((propagation, access, root)) => {
                let json = f.json();
                assert_eq!(at(&json, "/m").expect("mount")["options"], json!(["rbind", propagation, access]));
                assert_eq!(json["linux"].get("rootfsPropagation"), root.map(|r| json!(r)).as_ref());
            }
            Err(text) => assert!(f.error().contains(text), "{}", f.error()),
        }
    }
    let relative = Fixture::with(|f| give(f, bind("m"), Private));
    assert!(relative.error().contains("absolute path"));
    let recursive = v1::Mount { readonly: true, recursive_read_only: true, ..bind("/m") };
    let f = Fixture::with(|f| {
        f.node.recursive_read_only = false;
        give(f, recursive, Private);
    });
    assert!(f.error().contains("does not support recursive read-only"));
}

#[test]
fn nothing_of_an_image_is_run() {
    let image = |name: &str| Some(v1::ImageSpec { image: name.into(), ..Default::default() });
    let options = |mount: v1::Mount| {
        let f = Fixture::with(|f| give(f, mount, SourcePropagation::Private));
        at(&f.json(), "/m").expect("mount")["options"].clone()
    };
    let read = v1::Mount { readonly: true, ..bind("/m") };
    let of_image = options(v1::Mount { image: image("data"), ..read.clone() });
    assert_eq!(of_image, json!(["rbind", "rprivate", "ro", "noexec", "nosuid", "nodev"]));
    // A field that says nothing makes no image of a path.
    for none in [None, image("")] {
        assert_eq!(options(v1::Mount { image: none, ..read.clone() }), json!(["rbind", "rprivate", "ro"]));
    }
}

#[test]
fn mapped_mounts_need_a_runtime_that_makes_them() {
    let mapping = v1::IdMapping { host_id: 65536, container_id: 0, length: 65536 };
    let mount = v1::Mount { uid_mappings: vec![mapping], gid_mappings: vec![mapping], ..bind("/m") };
    let mut f = Fixture::with(|f| give(f, mount, SourcePropagation::Private));
    assert!(f.error().contains("no mounts with mapped ids"));
    f.node.idmap_mounts = true;
    let json = f.json();
    let want = json!([{"hostID": 65536, "containerID": 0, "size": 65536}]);
    assert_eq!(at(&json, "/m").expect("mount")["uidMappings"], want);
}

fn kinds(json: &Value) -> Vec<(String, String)> {
    let all = json["linux"]["namespaces"].as_array().expect("namespaces");
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    all.iter().map(|n| (text(&n["type"]), text(&n["path"]))).collect()
}

#[test]
fn namespaces_follow_their_modes() {
    use v1::NamespaceMode as M;
    let pod = [("network", "/run/ns/net"), ("uts", "/run/ns/uts"), ("ipc", "/run/ns/ipc")];
    type Row<'a> = (M, M, M, Option<u32>, &'a [(&'a str, &'a str)]);
    let rows: &[Row<'_>] = &[
        // network, ipc, pid, target -> beside mount and cgroup
        (M::Pod, M::Pod, M::Container, None, &[pod[0], pod[1], pod[2], ("pid", "")]),
        (M::Pod, M::Pod, M::Pod, None, &[pod[0], pod[1], pod[2], ("pid", "/run/ns/pid")]),
        (M::Pod, M::Pod, M::Target, Some(42), &[pod[0], pod[1], pod[2], ("pid", "/proc/42/ns/pid")]),
        (M::Node, M::Pod, M::Container, None, &[pod[2], ("pid", "")]),
        (M::Node, M::Node, M::Node, None, &[]),
    ];
    for (network, ipc, pid, target, want) in rows {
        let f = Fixture::with(|f| {
            f.target_pid = *target;
            let o = f.options();
            (o.network, o.ipc, o.pid) = ((*network).into(), (*ipc).into(), (*pid).into());
        });
        let mut all = vec![("mount".to_owned(), String::new())];
        all.extend(want.iter().map(|(k, p)| ((*k).to_owned(), (*p).to_owned())));
        all.push(("cgroup".to_owned(), String::new()));
        assert_eq!(kinds(&f.json()), all, "{network:?} {ipc:?} {pid:?}");
    }
    // Who asks for the pod's gets the node's where the pod has that.
    let f = Fixture::with(|f| {
        f.namespaces = PodNamespaces::default();
        let pod = f.pod_security().namespace_options.get_or_insert_default();
        (pod.network, pod.ipc, pod.pid) = (M::Node.into(), M::Node.into(), M::Node.into());
        f.options().pid = M::Pod.into();
    });
    assert_eq!(kinds(&f.json()).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>(), ["mount", "cgroup"]);
    let f = Fixture::with(|f| f.options().network = M::Container.into());
    assert_eq!(f.error(), "namespace mode 1 is not for the network namespace");
    let f = Fixture::with(|f| f.options().pid = M::Target.into());
    assert!(f.error().contains("does not run"));
    let f = Fixture::with(|f| f.namespaces.network = None);
    assert_eq!(f.error(), "the pod has no network namespace to join");
}

#[test]
fn a_cgroup_namespace_comes_with_cgroup_v2_unless_privileged() {
    let has = |f: &Fixture| kinds(&f.json()).iter().any(|(kind, _)| kind == "cgroup");
    assert!(has(&Fixture::default()));
    assert!(!has(&Fixture::with(|f| f.node.cgroup_v2 = false)));
    assert!(!has(&Fixture::with(Fixture::privileged)));
}

#[test]
fn users_of_its_own_are_the_pods() {
    let mapping = |host_id| v1::IdMapping { host_id, container_id: 0, length: 65536 };
    let users = |uids: Vec<v1::IdMapping>| {
        Some(v1::UserNamespace { mode: v1::NamespaceMode::Pod.into(), gids: uids.clone(), uids })
    };
    let with = |container, pod| {
        Fixture::with(|f| {
            f.options().userns_options = container;
            f.pod_security().namespace_options.get_or_insert_default().userns_options = pod;
        })
    };
    let one = users(vec![mapping(65536)]);
    let f = with(one.clone(), one.clone());
    let json = f.json();
    assert!(kinds(&json).contains(&("user".to_owned(), "/run/ns/user".to_owned())));
    assert_eq!(json["linux"]["uidMappings"], json!([{"hostID": 65536, "containerID": 0, "size": 65536}]));
    assert!(with(one.clone(), users(vec![mapping(1)])).error().contains("different"));
    assert!(with(one.clone(), None).error().contains("different"));
    let two = users(vec![mapping(1), mapping(2)]);
    assert!(with(two.clone(), two).error().contains("one mapping"));
    // The node's network and users of its own: sysfs cannot be mounted, the node's is bound.
    let mut f = with(one.clone(), one);
    f.options().network = v1::NamespaceMode::Node.into();
    f.pod_security().namespace_options.get_or_insert_default().network = v1::NamespaceMode::Node.into();
    assert_eq!(at(&f.json(), "/sys").expect("sys")["type"], "bind");
}
