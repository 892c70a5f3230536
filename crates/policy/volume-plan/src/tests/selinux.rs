use model::core::Pod;
use serde_json::{Value, json};

use super::{persistent, pod};
use crate::selinux::{SeLinux, access_mode, conflict, files_context, mismatch, mounted_context, with_context};
use crate::source::{Resolved, of_inline, of_persistent_volume};

const FILES: &str = "system_u:object_r:container_file_t:s0";

fn node(every_mode: bool) -> SeLinux {
    SeLinux { files: FILES.to_owned(), every_mode }
}

fn volume(modes: &[&str]) -> Resolved {
    let spec = json!({ "csi": { "driver": "d", "volumeHandle": "h" }, "accessModes": modes });
    of_persistent_volume(&persistent(spec, json!({})), false).unwrap()
}

fn inline() -> Resolved {
    let volume = serde_json::from_value(json!({ "name": "v", "csi": { "driver": "d" } })).unwrap();
    of_inline(&"u1".into(), "shop", &volume).unwrap().unwrap()
}

/// Containers with these options, the last of which has another volume.
fn with_options(of_pod: Value, of_containers: &[Value]) -> Pod {
    let container = |(n, options): (usize, &Value)| {
        let mount = json!({ "name": if n + 1 == of_containers.len() { "other" } else { "v" }, "mountPath": "/v" });
        json!({ "name": format!("c{n}"), "volumeMounts": [mount], "securityContext": { "seLinuxOptions": options } })
    };
    let containers: Vec<Value> = of_containers.iter().enumerate().map(container).collect();
    pod(json!({ "containers": containers, "securityContext": of_pod }))
}

#[test]
fn the_policy_of_the_host_says_what_files_of_containers_are() {
    let text = "# a comment\n\nprocess = \"system_u:system_r:container_t:s0\"\nfile = \"system_u:object_r:container_file_t:s0\"\nro_file=\"x\"\n";
    assert_eq!(files_context(text).as_deref(), Some(FILES));
    for none in ["", "file = \"system_u:object_r:container_file_t:s0\"", "process = \"a:b:c\"\nfile = \"\"", "file"] {
        assert_eq!(files_context(none), None, "{none:?}");
    }
}

#[test]
fn a_volume_has_the_label_of_the_containers_that_mount_it() {
    let level = |level: &str| json!({ "level": level });
    let label = |of: &Pod| node(false).label(of, "v", true);
    let (one, none) = (json!({ "seLinuxOptions": level("s0:c1,c2") }), json!(null));
    for (of_pod, containers, want) in [
        (none.clone(), vec![none.clone(), none.clone()], String::new()),
        (one.clone(), vec![none.clone(), none.clone()], format!("{FILES}:c1,c2")),
        (one.clone(), vec![level("s0:c3"), level("s0:c4")], format!("{FILES}:c3")),
        (none.clone(), vec![level("s0:c3"), none.clone(), none.clone()], format!("{FILES}:c3")),
        (
            none.clone(),
            vec![json!({ "level": "s0:c3", "user": "u", "role": "r", "type": "t" }), none.clone()],
            "u:object_r:container_file_t:s0:c3".to_owned(),
        ),
        (none.clone(), vec![json!({ "type": "t" }), none.clone()], String::new()),
    ] {
        assert_eq!(label(&with_options(of_pod, &containers)), Ok(want), "{containers:?}");
    }
    let two = with_options(one.clone(), &[level("s0:c3"), none.clone(), none.clone()]);
    let why = format!("multiple SELinux labels found: {FILES}:c1,c2,{FILES}:c3");
    assert_eq!(label(&two), Err(why.clone()));
    assert_eq!(node(false).label(&two, "v", false), Err(why), "also where nothing is mounted with a label");
    let pod = with_options(one, &[none.clone(), none.clone()]);
    assert_eq!(node(false).label(&pod, "v", false), Ok(String::new()));
    let of_pod = json!({ "seLinuxOptions": level("s0:c1,c2"), "seLinuxChangePolicy": "Recursive" });
    assert_eq!(label(&with_options(of_pod, &[none.clone(), none])), Ok(String::new()));
}

#[test]
fn the_access_mode_says_whether_a_volume_is_mounted_with_a_label() {
    for (modes, every, short) in [
        (&["ReadWriteOncePod"][..], true, "RWOP"),
        (&["ReadWriteOnce"], false, "RWO"),
        (&["ReadWriteOncePod", "ReadWriteOnce"], false, "RWO"),
        (&["ReadOnlyMany", "ReadWriteOnce"], false, "ROX"),
        (&["ReadWriteMany"], false, "RWX"),
        (&[], false, ""),
    ] {
        let volume = volume(modes);
        assert_eq!((node(false).mounts(&volume), access_mode(&volume)), (every, short), "{modes:?}");
        assert!(node(true).mounts(&volume));
    }
    assert_eq!((node(true).mounts(&inline()), access_mode(&inline())), (false, "inline"));
}

#[test]
fn the_words_are_those_of_a_kubelet() {
    let options = ["dirsync".to_owned()];
    assert_eq!(with_context(&options, ""), options);
    assert_eq!(with_context(&options, "u:r:t:s0:c1,c2"), ["dirsync", "context=\"u:r:t:s0:c1,c2\""]);
    assert_eq!(conflict(&volume(&[]), "a", "b"), "conflicting SELinux labels of volume pv1: \"a\" and \"b\"");
    let text = "waiting for unmount of volume \"n\", because it is already mounted to a different pod with a different SELinux label";
    assert_eq!(mismatch("n"), text);
}

#[test]
fn the_context_of_a_mount_is_read_as_the_kernel_writes_it() {
    for (options, wanted) in [
        ("rw,seclabel", ""),
        ("context=u:r:t:s0,rw", "u:r:t:s0"),
        ("rw,context=\"u:r:t:s0:c1,c2,c3\",stripe=4", "u:r:t:s0:c1,c2,c3"),
        ("rw,fscontext=u:r:t:s0", ""),
        ("rw,context=\"u:r:t:s0:c1", "u:r:t:s0:c1"),
    ] {
        assert_eq!(mounted_context(options), wanted, "{options}");
    }
}
