use serde_json::{Value, json};

use super::*;
use crate::fixture;

struct World {
    pod: Pod,
    container: Container,
    node: NodeSettings,
    env: Environment,
    volumes: BTreeMap<String, VolumeSource>,
    sub_paths: BTreeMap<usize, String>,
    has_pod_ip: bool,
    log: Option<&'static str>,
    recursive: bool,
    userns: Option<UserNamespace>,
}

fn path(host_path: &str, read_only: bool) -> VolumeSource {
    VolumeSource::Path { host_path: host_path.to_owned(), read_only, selinux_relabel: true }
}

fn world(volume_mounts: Value) -> World {
    let mut env = Environment::default();
    env.set("A", "one");
    env.set("EMPTY", "");
    let image = ImageSpec { image: "sha256:1".to_owned(), ..Default::default() };
    World {
        pod: fixture::pod(json!({})),
        container: fixture::container(json!({"volumeMounts": volume_mounts})),
        node: fixture::node(),
        env,
        volumes: [
            ("rw".to_owned(), path("/v/rw", false)),
            ("ro".to_owned(), path("/v/ro", true)),
            ("img".to_owned(), VolumeSource::Image(image)),
        ]
        .into(),
        sub_paths: BTreeMap::new(),
        has_pod_ip: false,
        log: None,
        recursive: false,
        userns: None,
    }
}

fn made(w: &World) -> Result<Vec<Mount>, MountError> {
    mounts(&MountInput {
        pod: &w.pod,
        container: &w.container,
        node: &w.node,
        env: &w.env,
        volumes: &w.volumes,
        sub_paths: &w.sub_paths,
        has_pod_ip: w.has_pod_ip,
        termination_log: w.log,
        recursive_read_only: w.recursive,
        userns: w.userns,
    })
}

fn one(mount: Value) -> Result<Mount, MountError> {
    made(&world(json!([mount]))).map(|mut m| m.remove(0))
}

#[test]
fn a_mount_follows_its_volume() {
    let rows = [
        ("writable", json!({"name": "rw", "mountPath": "/m"}), ("/m", "/v/rw", false)),
        ("read-only mount", json!({"name": "rw", "mountPath": "/m", "readOnly": true}), ("/m", "/v/rw", true)),
        ("read-only volume", json!({"name": "ro", "mountPath": "/m"}), ("/m", "/v/ro", true)),
        ("relative path", json!({"name": "rw", "mountPath": "m/n"}), ("/m/n", "/v/rw", false)),
    ];
    for (row, mount, (container_path, host_path, readonly)) in rows {
        let got = one(mount).expect(row);
        assert_eq!(
            (got.container_path.as_str(), got.host_path.as_str(), got.readonly),
            (container_path, host_path, readonly),
            "{row}"
        );
        assert!(got.image.is_none() && got.uid_mappings.is_empty(), "{row}");
    }
}

#[test]
fn an_image_is_mounted_read_only_by_reference() {
    let got = one(json!({"name": "img", "mountPath": "/m", "subPath": "a/b"})).expect("a mount");
    assert_eq!(got.image.map(|i| i.image).as_deref(), Some("sha256:1"));
    assert_eq!((got.host_path.as_str(), got.image_sub_path.as_str(), got.readonly), ("", "a/b", true));
}

#[test]
fn propagation_follows_the_word() {
    use MountPropagation as P;
    let rows = [
        (Value::Null, P::PropagationPrivate),
        (json!("None"), P::PropagationPrivate),
        (json!("HostToContainer"), P::PropagationHostToContainer),
        (json!("Bidirectional"), P::PropagationBidirectional),
    ];
    for (word, want) in rows {
        let got = one(json!({"name": "rw", "mountPath": "/m", "mountPropagation": word}));
        assert_eq!(got.expect("a mount").propagation(), want, "{word}");
    }
    let odd = one(json!({"name": "rw", "mountPath": "/m", "mountPropagation": "Odd"}));
    assert_eq!(odd, Err(MountError::Propagation("Odd".to_owned())));
}

#[test]
fn recursive_read_only_needs_a_read_only_private_mount_and_the_runtime() {
    use MountError as E;
    let name = || "rw".to_owned();
    let rows = [
        ("absent", Value::Null, json!(true), Value::Null, true, Ok(false)),
        ("disabled", json!("Disabled"), json!(false), Value::Null, true, Ok(false)),
        ("if possible, possible", json!("IfPossible"), json!(true), Value::Null, true, Ok(true)),
        ("if possible, not", json!("IfPossible"), json!(true), json!("None"), false, Ok(false)),
        ("enabled, possible", json!("Enabled"), json!(true), Value::Null, true, Ok(true)),
        ("enabled, not", json!("Enabled"), json!(true), Value::Null, false, Err(E::RecursiveUnsupported(name()))),
        ("writable", json!("Enabled"), json!(false), Value::Null, true, Err(E::RecursiveButWritable(name()))),
        (
            "propagation",
            json!("IfPossible"),
            json!(true),
            json!("HostToContainer"),
            true,
            Err(E::RecursiveWithPropagation { volume: name(), mode: "HostToContainer".to_owned() }),
        ),
        ("unknown", json!("Odd"), json!(true), Value::Null, true, Err(E::RecursiveUnknown("Odd".to_owned()))),
    ];
    for (row, mode, read_only, propagation, supported, want) in rows {
        let mount = json!({"name": "rw", "mountPath": "/m", "recursiveReadOnly": mode, "readOnly": read_only,
                           "mountPropagation": propagation});
        let w = World { recursive: supported, ..world(json!([mount])) };
        assert_eq!(made(&w).map(|m| m[0].recursive_read_only), want, "{row}");
    }
}

#[test]
fn a_volume_that_is_not_mounted_stops_the_container() {
    let error = one(json!({"name": "gone", "mountPath": "/m"})).expect_err("no volume").to_string();
    assert_eq!(error, "cannot find volume \"gone\" to mount into container \"app\"");
}

#[test]
fn sub_paths_are_checked_and_expanded() {
    let w = world(json!([
        {"name": "rw", "mountPath": "/a"},
        {"name": "rw", "mountPath": "/b", "subPath": "x/y"},
        {"name": "rw", "mountPath": "/c", "subPathExpr": "$(A)/z"},
        {"name": "rw", "mountPath": "/d", "subPath": ""},
        {"name": "rw", "mountPath": "/e", "subPath": "..x/y.."},
        {"name": "rw", "mountPath": "/f", "subPath": "$(A)"},
    ]));
    let sub = |index, path: &str| SubPath { index, volume: "rw".to_owned(), path: path.to_owned() };
    let want = vec![sub(1, "x/y"), sub(2, "one/z"), sub(4, "..x/y.."), sub(5, "$(A)")];
    assert_eq!(sub_paths(&w.container, &w.env), Ok(want), "subPath itself is not expanded");
}

#[test]
fn bad_sub_paths_stop_the_container() {
    let rows = [
        ("empty variable", json!({"subPathExpr": "$(EMPTY)"}), "missing value for EMPTY"),
        ("several, sorted", json!({"subPathExpr": "$(Z)/$(B)/$(A)/$(Z)"}), "missing value for B, Z"),
        ("absolute", json!({"subPath": "/etc"}), "error SubPath `/etc` must not be an absolute path"),
        ("backstep", json!({"subPath": "a/../b"}), "unable to provision SubPath `a/../b`: must not contain '..'"),
        ("only dots", json!({"subPath": ".."}), "unable to provision SubPath `..`: must not contain '..'"),
        (
            "absolute after expansion",
            json!({"subPathExpr": "/$(A)"}),
            "error SubPath `/one` must not be an absolute path",
        ),
    ];
    for (row, mut mount, want) in rows {
        mount["name"] = json!("rw");
        mount["mountPath"] = json!("/m");
        let w = world(json!([mount]));
        let error = sub_paths(&w.container, &w.env).expect_err(row);
        assert_eq!(error.to_string(), want, "{row}");
        assert_eq!(made(&w), Err(error), "{row}");
    }
}

#[test]
fn a_sub_path_is_mounted_from_where_it_was_prepared() {
    let mut w = world(json!([{"name": "ro", "mountPath": "/a"}, {"name": "ro", "mountPath": "/b", "subPath": "x"}]));
    let missing = MountError::SubPathNotPrepared { mount: "ro".to_owned(), container: "app".to_owned() };
    assert_eq!(made(&w), Err(missing));
    w.sub_paths.insert(1, "/prepared".to_owned());
    let got = made(&w).expect("mounts");
    let paths: Vec<_> = got.iter().map(|m| (m.host_path.as_str(), m.readonly)).collect();
    assert_eq!(paths, [("/v/ro", true), ("/prepared", true)]);
}

#[test]
fn relabelling_is_asked_for_once_per_volume_and_only_with_selinux() {
    let mounts = json!([{"name": "rw", "mountPath": "/a"}, {"name": "rw", "mountPath": "/b"}, {"name": "ro", "mountPath": "/c"}]);
    let mut w = World { has_pod_ip: true, ..world(mounts) };
    let labels = |w: &World| made(w).expect("mounts").iter().map(|m| m.selinux_relabel).collect::<Vec<_>>();
    assert_eq!(labels(&w), [false, false, false, false]);
    w.node.selinux = true;
    assert_eq!(labels(&w), [true, false, true, true]);
}

#[test]
fn the_hosts_file_is_mounted_when_the_pod_has_an_address_and_no_mount_of_its_own() {
    let own = json!([{"name": "rw", "mountPath": "/etc/hosts"}]);
    let host = json!({"hostNetwork": true});
    let rows = [
        ("address", json!({}), json!([]), true, true),
        ("no address yet", json!({}), json!([]), false, false),
        ("host network", host.clone(), json!([]), false, true),
        ("own mount", json!({}), own.clone(), true, false),
        ("own mount, host network", host, own, true, false),
        ("mount below", json!({}), json!([{"name": "rw", "mountPath": "/etc/hosts.d"}]), true, true),
    ];
    for (row, spec, mounts, has_pod_ip, want) in rows {
        let w = World { pod: fixture::pod(spec), has_pod_ip, ..world(mounts) };
        let managed = made(&w).expect(row).iter().any(|m| m.host_path == "/var/lib/kubelet/pods/u-1/etc-hosts");
        assert_eq!(managed, want, "{row}");
    }
}

#[test]
fn the_termination_log_comes_last_and_only_when_both_ends_exist() {
    let mut w =
        World { has_pod_ip: true, log: Some("/c/app/0a1b2c3d"), ..world(json!([{"name": "rw", "mountPath": "/a"}])) };
    let paths = |w: &World| made(w).expect("mounts").into_iter().map(|m| m.container_path).collect::<Vec<_>>();
    assert_eq!(paths(&w), ["/a", "/etc/hosts"], "no path");
    w.container.termination_message_path = Some("/dev/termination-log".to_owned());
    assert_eq!(paths(&w), ["/a", "/etc/hosts", "/dev/termination-log"]);
    w.log = None;
    assert_eq!(paths(&w), ["/a", "/etc/hosts"], "no file");
}

#[test]
fn in_a_user_namespace_every_mount_carries_the_mapping() {
    let mut w = World {
        has_pod_ip: true,
        log: Some("/c/app/0a1b2c3d"),
        userns: Some(UserNamespace { host_id: 65_536, length: 65_536 }),
        ..world(json!([{"name": "rw", "mountPath": "/a"}]))
    };
    w.container.termination_message_path = Some("/t".to_owned());
    for mount in made(&w).expect("mounts") {
        let ids =
            |m: &[cri_api::v1::IdMapping]| m.iter().map(|m| (m.host_id, m.container_id, m.length)).collect::<Vec<_>>();
        assert_eq!(ids(&mount.uid_mappings), [(65_536, 0, 65_536)], "{}", mount.container_path);
        assert_eq!(ids(&mount.gid_mappings), [(65_536, 0, 65_536)], "{}", mount.container_path);
    }
}

#[test]
fn host_files_of_a_pod_have_fixed_places() {
    let pod = fixture::pod(json!({}));
    assert_eq!(etc_hosts_path("/var/lib/kubelet/", &pod), "/var/lib/kubelet/pods/u-1/etc-hosts");
    assert_eq!(container_dir("/var/lib/kubelet", &pod, "app"), "/var/lib/kubelet/pods/u-1/containers/app");
}
