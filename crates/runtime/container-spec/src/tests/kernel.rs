//! Limits, devices, profiles, labels, cgroup paths.

use cri_api::v1;
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::{AppArmor, DeviceKind, DeviceNode, SeccompChoice, cgroup_path, seccomp_choice};
use v1::security_profile::ProfileType;

#[test]
fn cgroup_paths_of_both_drivers() {
    for (parent, want) in [
        ("/kubepods/pod1", Some("/kubepods/pod1/c1")),
        ("kubepods/pod1/", Some("kubepods/pod1/c1")),
        ("/kubepods.slice/kubepods-pod1.slice", Some("kubepods-pod1.slice:cri-containerd:c1")),
        ("", None),
    ] {
        assert_eq!(cgroup_path(parent, "c1").as_deref(), want, "{parent}");
    }
}

#[test]
fn limits_and_what_follows_from_them() {
    let f = Fixture::with(|f| {
        let r = f.resources();
        (r.cpu_period, r.cpu_quota, r.cpu_shares, r.memory_limit_in_bytes) = (100_000, 50_000, 512, 1 << 20);
        (r.cpuset_cpus, r.cpuset_mems) = ("0-1".into(), "0".into());
        r.unified.insert("memory.high".into(), "1000".into());
        r.hugepage_limits = vec![v1::HugepageLimit { page_size: "2MB".into(), limit: 5 }];
    });
    let limits = f.json()["linux"]["resources"].clone();
    assert_eq!(limits["cpu"], json!({"period": 100_000, "quota": 50_000, "shares": 512, "cpus": "0-1", "mems": "0"}));
    assert_eq!(limits["memory"], json!({"limit": 1 << 20, "swap": 1 << 20}));
    assert_eq!(limits["unified"], json!({"memory.high": "1000"}));
    assert_eq!(limits["hugepageLimits"], json!([{"pageSize": "2MB", "limit": 5}]));
    assert_eq!(limits["devices"], json!([{"allow": false, "access": "rwm"}]));
    let mut f = f;
    f.resources().memory_swap_limit_in_bytes = 3 << 20;
    assert_eq!(f.json()["linux"]["resources"]["memory"]["swap"], 3 << 20);
    (f.node.swap_controller, f.node.hugetlb_controller) = (false, false);
    let limits = f.json()["linux"]["resources"].clone();
    assert_eq!(limits["memory"], json!({"limit": 1 << 20}));
    assert!(limits.get("hugepageLimits").is_none());
}

fn null_device() -> DeviceNode {
    DeviceNode { path: "/dev/x".into(), kind: DeviceKind::Char, major: 1, minor: 3, mode: 0o666, uid: 0, gid: 5 }
}

#[test]
fn devices_are_made_and_allowed() {
    let f = Fixture::with(|f| {
        f.config.devices = vec![v1::Device {
            container_path: "/dev/x".into(),
            host_path: "/dev/null".into(),
            permissions: "rw".into(),
        }];
        f.devices = vec![vec![null_device()]];
    });
    let linux = f.json()["linux"].clone();
    assert_eq!(
        linux["devices"],
        json!([{"path": "/dev/x", "type": "c", "major": 1, "minor": 3, "fileMode": 0o666, "uid": 0, "gid": 5}])
    );
    assert_eq!(
        linux["resources"]["devices"][1],
        json!({"allow": true, "type": "c", "major": 1, "minor": 3, "access": "rw"})
    );
    let mut f = f;
    f.privileged();
    f.node.host_devices =
        vec![null_device(), DeviceNode { path: "/dev/y".into(), kind: DeviceKind::Block, ..null_device() }];
    let paths: Vec<Value> =
        f.json()["linux"]["devices"].as_array().expect("devices").iter().map(|d| d["path"].clone()).collect();
    assert_eq!(paths, [json!("/dev/x"), json!("/dev/y")]);
}

fn profile(kind: ProfileType, name: &str) -> Option<v1::SecurityProfile> {
    Some(v1::SecurityProfile { profile_type: kind.into(), localhost_ref: name.into() })
}

#[test]
#[allow(deprecated)]
fn which_seccomp_profile() {
    let file = |name: &str| Ok(SeccompChoice::File(name.into()));
    let rows = [
        (profile(ProfileType::RuntimeDefault, ""), "", Ok(SeccompChoice::Default)),
        (profile(ProfileType::Unconfined, ""), "runtime/default", Ok(SeccompChoice::Unconfined)),
        (profile(ProfileType::Localhost, "localhost//p/a.json"), "", file("/p/a.json")),
        (profile(ProfileType::Localhost, "/p/a.json"), "", file("/p/a.json")),
        (profile(ProfileType::Localhost, ""), "", Err(())),
        (None, "", Ok(SeccompChoice::Unconfined)),
        (None, "runtime/default", Ok(SeccompChoice::Default)),
        (None, "docker/default", Ok(SeccompChoice::Default)),
        (None, "localhost//p", file("/p")),
        (None, "strange", Err(())),
    ];
    for (seccomp, seccomp_profile_path, want) in rows {
        let text = format!("{seccomp:?} {seccomp_profile_path}");
        let context = v1::LinuxContainerSecurityContext {
            seccomp,
            seccomp_profile_path: seccomp_profile_path.into(),
            ..Default::default()
        };
        assert_eq!(seccomp_choice(Some(&context)).map_err(|_| ()), want, "{text}");
    }
}

fn calls(json: &Value, name: &str) -> Vec<Value> {
    let all = json["linux"]["seccomp"]["syscalls"].as_array().expect("calls").clone();
    all.into_iter().filter(|c| c["names"].as_array().is_some_and(|n| n.contains(&json!(name)))).collect()
}

#[test]
fn the_default_profile_follows_capabilities() {
    let mut f = Fixture::with(|f| f.security().seccomp = profile(ProfileType::RuntimeDefault, ""));
    let json = f.json();
    assert_eq!(json["linux"]["seccomp"]["defaultAction"], "SCMP_ACT_ERRNO");
    assert_eq!(json["linux"]["seccomp"]["architectures"][0], "SCMP_ARCH_X86_64");
    for (name, count) in
        [("read", 1), ("arch_prctl", 1), ("mount", 0), ("keyctl", 0), ("io_uring_setup", 0), ("userfaultfd", 0)]
    {
        assert_eq!(calls(&json, name).len(), count, "{name}");
    }
    // CAP_SYS_CHROOT is among the defaults.
    assert_eq!(calls(&json, "chroot").len(), 1);
    assert_eq!(calls(&json, "clone")[0]["args"][0]["value"], 0x7e02_0000);
    assert_eq!(calls(&json, "clone3")[0]["errnoRet"], 38);
    assert_eq!(calls(&json, "socket").len(), 3);
    f.security().capabilities.get_or_insert_default().add_capabilities = vec!["SYS_ADMIN".into()];
    let json = f.json();
    assert_eq!(calls(&json, "mount").len(), 1);
    assert!(calls(&json, "clone")[0].get("args").is_none());
    assert_eq!(calls(&json, "clone3")[0]["action"], "SCMP_ACT_ALLOW");
    f.node.architecture = "aarch64".into();
    assert_eq!(calls(&f.json(), "arch_prctl").len(), 0);
    f.node.seccomp = false;
    assert_eq!(f.error(), "seccomp is not supported on this node");
}

#[test]
fn a_profile_of_a_file_is_taken_as_it_is() {
    let mut f = Fixture::with(|f| f.security().seccomp = profile(ProfileType::Localhost, "/p/a.json"));
    f.seccomp_file = Some(r#"{"defaultAction": "SCMP_ACT_LOG"}"#.into());
    assert_eq!(f.json()["linux"]["seccomp"]["defaultAction"], "SCMP_ACT_LOG");
    f.seccomp_file = Some("{".into());
    assert!(f.error().starts_with("seccomp profile \"/p/a.json\":"), "{}", f.error());
    f.privileged();
    assert!(f.json()["linux"].get("seccomp").is_none());
}

#[test]
#[allow(deprecated)]
fn apparmor_profiles() {
    let on = AppArmor::On { default_profile: Some("def".into()) };
    let bare = AppArmor::On { default_profile: None };
    let unsupported = Err("AppArmor is not supported on this node");
    let rows = [
        (&on, None, "", Ok(Some("def"))),
        (&bare, None, "", Ok(None)),
        (&on, profile(ProfileType::RuntimeDefault, ""), "", Ok(Some("def"))),
        (
            &bare,
            profile(ProfileType::RuntimeDefault, ""),
            "",
            Err("AppArmor profile RuntimeDefault is not supported on this node"),
        ),
        (&on, profile(ProfileType::Localhost, "localhost/mine"), "", Ok(Some("mine"))),
        (&on, profile(ProfileType::Unconfined, ""), "", Ok(Some("unconfined"))),
        (&on, None, "localhost/old", Ok(Some("old"))),
        (&on, None, "strange", Err("invalid AppArmor profile \"strange\"")),
        (&AppArmor::Off, None, "", Ok(None)),
        (&AppArmor::Off, profile(ProfileType::Unconfined, ""), "", Ok(None)),
        (&AppArmor::Off, profile(ProfileType::Localhost, "mine"), "", unsupported),
        (&AppArmor::Off, None, "runtime/default", unsupported),
    ];
    for (node, apparmor, old, want) in rows {
        let f = Fixture::with(|f| {
            f.node.apparmor = node.clone();
            (f.security().apparmor, f.security().apparmor_profile) = (apparmor.clone(), old.into());
        });
        match want {
            Ok(want) => assert_eq!(
                f.json()["process"].get("apparmorProfile"),
                want.map(|w| json!(w)).as_ref(),
                "{node:?} {apparmor:?} {old}"
            ),
            Err(text) => assert_eq!(f.error(), text),
        }
    }
}

#[test]
fn selinux_labels_are_the_containers_then_the_pods() {
    let option =
        |kind: &str, level: &str| v1::SeLinuxOption { r#type: kind.into(), level: level.into(), ..Default::default() };
    let mut f = Fixture::with(|f| {
        f.node.selinux = true;
        f.pod_security().selinux_options = Some(option("", "s0:c1,c2"));
    });
    let json = f.json();
    assert_eq!(json["process"]["selinuxLabel"], "system_u:system_r:container_t:s0:c1,c2");
    assert_eq!(json["linux"]["mountLabel"], "system_u:object_r:container_file_t:s0:c1,c2");
    f.security().selinux_options = Some(option("spc_t", ""));
    assert_eq!(f.json()["process"]["selinuxLabel"], "system_u:system_r:spc_t:s0");
    f.node.selinux = false;
    assert!(f.json()["process"].get("selinuxLabel").is_none());
}
