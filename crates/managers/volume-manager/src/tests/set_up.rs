//! Effects of setting up.

use contract::volume::{MountedVolume, PrepareSubPath};
use fakes::Folder;
use fakes::files::{Errno, FileTrouble};
use model::PodUid;
use ports::host::{FileKind, HostFs, Mounter, TMPFS_MAGIC};
use serde_json::json;

use super::rig::{all, config, deps, host, pod, with_spec};
use crate::failed::Failed;
use crate::sub_path::prepare;

const DIR: &str = "pods/u/volumes/kubernetes.io~empty-dir/v";
const MARKER: &str = "pods/u/plugins/kubernetes.io~empty-dir/v/ready";

#[test]
fn an_empty_dir_is_open_to_all_whatever_the_umask_and_set_up_once() {
    let host = host();
    let p = pod("u", json!([{"name": "v", "emptyDir": {}}]));
    for _ in 0..2 {
        let done = all(&deps(&host), &config(&host), &p).unwrap();
        let expected = MountedVolume { host_path: host.path(DIR), read_only: false, selinux_relabel: true };
        assert_eq!(done.volumes["v"], expected);
    }
    assert_eq!(host.mode(DIR), 0o777);
    for parent in ["pods", "pods/u", "pods/u/volumes", "pods/u/volumes/kubernetes.io~empty-dir"] {
        assert_eq!(host.mode(parent), 0o750, "{parent}");
    }
    assert_eq!(host.mode("pods/u/plugins/kubernetes.io~empty-dir/v"), 0o750);
    assert!(host.exists(MARKER));
    host.write(format!("{DIR}/data"), "kept");
    host.disk.set_mode(&host.path(DIR), 0o700).unwrap();
    all(&deps(&host), &config(&host), &p).unwrap();
    assert_eq!(host.mode(DIR), 0o700, "what the pod changed stays");
    assert!(host.exists(format!("{}/{}", DIR, "data")));
    host.remove(DIR);
    all(&deps(&host), &config(&host), &p).unwrap();
    assert_eq!(host.mode(DIR), 0o777, "a volume that somebody removed is made again");
}

#[test]
fn memory_is_mounted_once_and_again_after_a_reboot() {
    let host = host();
    let p = pod("u", json!([{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]));
    all(&deps(&host), &config(&host), &p).unwrap();
    assert!(host.is_mounted(DIR));
    assert_eq!(host.disk.tmpfs_size(&host.path(DIR)), Some(Some(1 << 20)));
    host.fail("mount", "");
    all(&deps(&host), &config(&host), &p).unwrap();
    host.disk.calm();
    // A reboot takes the mount and leaves the directories.
    host.disk.unmount(&host.path(DIR)).unwrap();
    all(&deps(&host), &config(&host), &p).unwrap();
    assert!(host.is_mounted(DIR));
}

#[test]
fn a_mount_that_a_crash_left_without_marker_is_taken_over() {
    let host = host();
    host.mount(DIR, TMPFS_MAGIC);
    host.fail("mount", "");
    all(&deps(&host), &config(&host), &pod("u", json!([{"name": "v", "emptyDir": {"medium": "Memory"}}]))).unwrap();
    assert!(host.exists(MARKER));
    let huge = json!({"requests": {"hugepages-2Mi": "4Mi"}});
    let other = with_spec(
        "u",
        json!({
            "volumes": [{"name": "w", "emptyDir": {"medium": "HugePages"}}],
            "containers": [{"name": "c", "resources": huge, "volumeMounts": [{"name": "w", "mountPath": "/"}]}],
        }),
    );
    host.mount("pods/u/volumes/kubernetes.io~empty-dir/w", TMPFS_MAGIC);
    let failed = all(&deps(&host), &config(&host), &other).unwrap_err();
    assert!(failed[0].error.contains("another medium is mounted there"), "{failed:?}");
}

#[test]
fn the_pods_group_gets_the_volume_and_what_is_in_it() {
    let host = host();
    host.write(format!("{DIR}/sub/file"), "content");
    host.link("file", format!("{DIR}/sub/link"));
    host.disk.set_mode(&host.path(DIR).join("sub/file"), 0o400).unwrap();
    let p = with_spec(
        "u",
        json!({
            "securityContext": {"fsGroup": 2000},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/"}]}],
        }),
    );
    all(&deps(&host), &config(&host), &p).unwrap();
    for (below, mode) in [("", 0o2777), ("sub", 0o2775), ("sub/file", 0o660)] {
        let stat = host.stat(format!("{DIR}/{below}"));
        assert_eq!((stat.gid, stat.mode), (2000, mode), "{below}");
    }
    assert_eq!(host.stat(format!("{DIR}/sub/link")).gid, 2000);
}

#[test]
fn a_group_that_cannot_be_given_is_no_failure() {
    let host = host();
    host.fail("chown", "");
    let p = with_spec(
        "u",
        json!({
            "securityContext": {"fsGroup": 2000},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/"}]}],
        }),
    );
    assert!(all(&deps(&host), &config(&host), &p).is_ok());
}

#[test]
fn host_path_table() {
    let host = host();
    host.dir("h/dir");
    host.write("h/file", "content");
    host.link("dir", "h/link");
    host.link("nowhere", "h/dangling");
    host.disk.special(&host.path("h/sock"), FileKind::Socket);
    host.disk.special(&host.path("h/null"), FileKind::CharDevice);
    let p = |name: &str| host.path(format!("h/{name}")).to_string_lossy().into_owned();
    let not = |name: &str, what: &str| Some(format!("hostPath type check failed: {} is not a {what}", p(name)));
    for (path, check, error) in [
        (p("absent"), "", None),
        (p("dir"), "Directory", None),
        (p("link"), "Directory", None),
        (p("file"), "Directory", not("file", "directory")),
        (p("dangling"), "Directory", not("dangling", "directory")),
        (p("absent"), "Directory", not("absent", "directory")),
        (p("file"), "File", None),
        (p("dir"), "File", not("dir", "file")),
        (p("absent"), "File", not("absent", "file")),
        (p("new/deep"), "DirectoryOrCreate", None),
        (p("file"), "DirectoryOrCreate", not("file", "directory")),
        (p("newfile"), "FileOrCreate", None),
        (p("dir"), "FileOrCreate", not("dir", "file")),
        (p("sock"), "Socket", None),
        (p("file"), "Socket", not("file", "socket file")),
        (p("null"), "CharDevice", None),
        (p("file"), "CharDevice", not("file", "character device")),
        (p("file"), "BlockDevice", not("file", "block device")),
        (p("file"), "Wrong", Some("Wrong is an invalid volume type".to_owned())),
        ("/a/../b".to_owned(), "Directory", Some("invalid HostPath `/a/../b`: must not contain '..'".to_owned())),
        ("/a/..b".to_owned(), "", None),
    ] {
        let volume = json!([{"name": "s", "hostPath": {"path": path, "type": check}}]);
        let got = all(&deps(&host), &config(&host), &pod("u", volume));
        let expected = error.map(|error| vec![Failed::own("s", error, false)]);
        if let Ok(done) = &got {
            let mounted = MountedVolume { host_path: path.clone().into(), read_only: false, selinux_relabel: false };
            assert_eq!(done.volumes["s"], mounted, "{path}");
        }
        assert_eq!(got.err(), expected, "{path} as {check:?}");
    }
    assert_eq!(host.mode("h/new"), 0o755);
    assert_eq!(host.mode("h/newfile"), 0o644);
    let volume = json!([{"name": "s", "hostPath": {"path": p("no/parent"), "type": "FileOrCreate"}}]);
    assert!(all(&deps(&host), &config(&host), &pod("u", volume)).unwrap_err()[0].error.starts_with("create "));
}

#[test]
fn a_host_path_without_a_type_is_not_touched() {
    let host = host();
    host.disk.trouble(&host.path("h"), FileTrouble::Fail(Errno::Access));
    let path = host.path("h/fuse");
    let volume = |check: &str| json!([{"name": "s", "hostPath": {"path": path.to_str().unwrap(), "type": check}}]);
    assert!(all(&deps(&host), &config(&host), &pod("u", volume(""))).is_ok());
    assert!(all(&deps(&host), &config(&host), &pod("u", volume("Directory"))).is_err());
}

#[test]
fn other_kinds_are_refused_by_name_and_hold_up_none_of_the_rest() {
    let host = host();
    let p = pod(
        "u",
        json!([{"name": "cm", "glusterfs": {"endpoints": "e", "path": "/"}}, {"name": "v", "emptyDir": {}}, {"name": "i", "image": {}}]),
    );
    let failed = all(&deps(&host), &config(&host), &p).unwrap_err();
    let error = "volume \"cm\": glusterfs volumes are not supported".to_owned();
    assert_eq!(failed, [Failed::own("cm", error, true)]);
    assert!(host.exists(MARKER));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let host = host();
    for (uid, volume) in [("../../etc", "v"), ("..", "v"), ("", "v"), ("u", ".."), ("u", "a/b")] {
        let failed =
            all(&deps(&host), &config(&host), &pod(uid, json!([{"name": volume, "emptyDir": {}}]))).unwrap_err();
        assert!(failed[0].error.ends_with("cannot be the name of a directory"), "{uid} {volume}: {failed:?}");
    }
    assert!(!host.exists(""));
}

fn sub_path(host: &Folder, path: &str) -> PrepareSubPath {
    PrepareSubPath {
        uid: PodUid::from("u"),
        container: "app".into(),
        volume: "v".into(),
        volume_path: host.path(DIR),
        sub_path: path.into(),
        mount_index: 1,
    }
}

#[test]
fn a_missing_sub_path_gets_the_mode_of_its_volume_and_is_bound() {
    let host = host();
    host.dir(DIR);
    host.disk.set_mode(&host.path(DIR), 0o2770).unwrap();
    let target = prepare(&deps(&host), &config(&host), &sub_path(&host, "a/b"), "v").unwrap();
    assert_eq!(target, host.path("pods/u/volume-subpaths/v/app/1"));
    assert_eq!(host.mode(format!("{DIR}/a/b")), 0o2770);
    assert!(host.is_mounted("pods/u/volume-subpaths/v/app/1"));
    assert_eq!(host.disk.stat(&target).unwrap().unwrap().kind, FileKind::Dir);
}

/// The link of a pod in its own volume, which leads to a directory beside it.
#[test]
fn a_sub_path_may_be_a_link_that_stays_in_its_volume() {
    let host = host();
    host.write(format!("{DIR}/releases/2/page"), "new");
    host.link("releases/2", format!("{DIR}/current"));
    host.link("../releases", format!("{DIR}/deep"));
    assert!(prepare(&deps(&host), &config(&host), &sub_path(&host, "current"), "v").is_ok());
    assert!(host.is_mounted("pods/u/volume-subpaths/v/app/1"));
    let e = prepare(&deps(&host), &config(&host), &sub_path(&host, "deep/2"), "v").unwrap_err();
    assert_eq!(e.message, "failed to prepare subPath for volumeMount \"v\" of container \"app\"");
}

#[test]
fn sub_path_refusals_tell_a_pod_nothing_about_the_host() {
    let host = host();
    host.write(format!("{DIR}/file"), "content");
    assert!(prepare(&deps(&host), &config(&host), &sub_path(&host, "file"), "v").is_ok());
    for (path, text) in [
        ("../x", "subPath \"../x\" must be relative and must not contain '..'"),
        ("/etc", "subPath \"/etc\" must be relative and must not contain '..'"),
        ("a/../../x", "subPath \"a/../../x\" must be relative and must not contain '..'"),
    ] {
        let e = prepare(&deps(&host), &config(&host), &sub_path(&host, path), "v").unwrap_err();
        assert_eq!(e.message, text);
    }
    host.fail("bind mount", "");
    let e = prepare(&deps(&host), &config(&host), &sub_path(&host, "file"), "v").unwrap_err();
    assert_eq!(e.message, "failed to prepare subPath for volumeMount \"v\" of container \"app\"");
    assert!(!e.message.contains("/kubelet"));
}
