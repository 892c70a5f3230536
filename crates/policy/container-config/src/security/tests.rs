use serde_json::{Value, json};

use cri_api::v1::{NamespaceMode, NamespaceOption};

use super::*;
use crate::fixture;

struct World {
    pod: Pod,
    container: Container,
    node: NodeSettings,
    image: ImageUser,
    target: Option<&'static str>,
    groups: Vec<i64>,
    userns: Option<UserNamespace>,
}

fn world(pod: Value, container: Value) -> World {
    World {
        pod: fixture::pod(json!({"securityContext": pod})),
        container: fixture::container(json!({"securityContext": container})),
        node: fixture::node(),
        image: ImageUser::default(),
        target: None,
        groups: vec![],
        userns: None,
    }
}

fn made(w: &World) -> Result<LinuxContainerSecurityContext, SecurityError> {
    container_context(&ContextInput {
        pod: &w.pod,
        container: &w.container,
        node: &w.node,
        image_user: &w.image,
        userns: w.userns,
        volume_groups: &w.groups,
        target: w.target,
    })
}

fn user(uid: Option<i64>, username: &str) -> ImageUser {
    ImageUser { uid, username: username.to_owned() }
}

#[test]
fn the_user_is_the_containers_else_the_pods_else_the_images() {
    let rows = [
        ("container", json!({"runAsUser": 1}), json!({"runAsUser": 2}), user(Some(3), ""), (Some(2), "")),
        ("pod", json!({"runAsUser": 1}), json!({}), user(Some(3), ""), (Some(1), "")),
        ("image", json!({}), json!({}), user(Some(3), "app"), (Some(3), "")),
        ("image, by name", json!({}), json!({}), user(None, "app"), (None, "app")),
        ("image without a user is root", json!({}), json!({}), user(None, ""), (Some(0), "")),
        ("explicit root", json!({"runAsUser": 1}), json!({"runAsUser": 0}), user(Some(3), ""), (Some(0), "")),
    ];
    for (row, pod, container, image, (uid, name)) in rows {
        let got = made(&World { image, ..world(pod, container) }).expect(row);
        assert_eq!((got.run_as_user.map(|u| u.value), got.run_as_username.as_str()), (uid, name), "{row}");
    }
}

#[test]
fn run_as_non_root_is_verified_before_the_container_exists() {
    let on = json!({"runAsNonRoot": true});
    let with = |uid: i64| json!({"runAsNonRoot": true, "runAsUser": uid});
    let tail = "(pod: \"web_ns(u-1)\", container: app)";
    let rows = [
        ("explicit root", with(0), user(Some(7), ""), Some("container's runAsUser breaks non-root policy")),
        ("explicit other", with(1), user(Some(0), ""), None),
        ("image root", on.clone(), user(Some(0), ""), Some("container has runAsNonRoot and image will run as root")),
        (
            "image says nothing",
            on.clone(),
            user(None, ""),
            Some("container has runAsNonRoot and image will run as root"),
        ),
        (
            "image name",
            on.clone(),
            user(None, "app"),
            Some("container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root"),
        ),
        ("image other", on.clone(), user(Some(7), ""), None),
        ("switched off", json!({"runAsNonRoot": false, "runAsUser": 0}), user(Some(0), ""), None),
    ];
    for (row, context, image, want) in rows {
        for w in [world(context.clone(), json!({})), world(json!({}), context)] {
            let got = made(&World { image: image.clone(), ..w }).err().map(|e| e.to_string());
            assert_eq!(got, want.map(|w| format!("{w} {tail}")), "{row}");
        }
    }
    let overridden = world(on, json!({"runAsNonRoot": false}));
    assert!(made(&overridden).is_ok(), "the container's word wins");
}

#[test]
fn plain_fields_are_passed_on() {
    let got = made(&world(
        json!({"runAsGroup": 3000}),
        json!({"privileged": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
               "capabilities": {"add": ["NET_ADMIN", "CAP_X"], "drop": ["ALL"]}}),
    ))
    .expect("a context");
    assert_eq!(got.run_as_group.map(|g| g.value), Some(3000));
    assert!(got.privileged && got.readonly_rootfs && got.no_new_privs);
    let caps = got.capabilities.expect("capabilities");
    assert_eq!(
        (caps.add_capabilities, caps.drop_capabilities),
        (vec!["NET_ADMIN".to_owned(), "CAP_X".to_owned()], vec!["ALL".to_owned()])
    );

    let bare = made(&world(json!({}), json!({}))).expect("a context");
    assert_eq!((bare.capabilities, bare.no_new_privs, bare.privileged), (None, false, false));
    for allow in [json!(true), Value::Null] {
        let got = made(&world(json!({}), json!({"allowPrivilegeEscalation": allow}))).expect("a context");
        assert!(!got.no_new_privs, "only an explicit false");
    }
}

#[test]
fn seccomp_is_the_containers_else_the_pods_else_the_nodes_default() {
    use ProfileType::{Localhost, RuntimeDefault, Unconfined};
    let p = |v: Value| json!({"seccompProfile": v});
    let local = json!({"type": "Localhost", "localhostProfile": "a/b.json"});
    let rows = [
        ("none", json!({}), json!({}), false, (Unconfined, "")),
        ("node default", json!({}), json!({}), true, (RuntimeDefault, "")),
        ("pod", p(json!({"type": "RuntimeDefault"})), json!({}), false, (RuntimeDefault, "")),
        (
            "container wins",
            p(json!({"type": "RuntimeDefault"})),
            p(json!({"type": "Unconfined"})),
            true,
            (Unconfined, ""),
        ),
        ("localhost", p(local.clone()), json!({}), false, (Localhost, "/var/lib/kubelet/seccomp/a/b.json")),
    ];
    for (row, pod, container, default, (kind, reference)) in rows {
        let mut w = world(pod, container);
        w.node.seccomp_default = default;
        let got = made(&w).expect(row).seccomp.expect(row);
        assert_eq!((got.profile_type(), got.localhost_ref.as_str()), (kind, reference), "{row}");
    }
    for nameless in [json!({"type": "Localhost"}), json!({"type": "Localhost", "localhostProfile": ""})] {
        assert_eq!(made(&world(p(nameless.clone()), json!({}))), Err(SecurityError::NoSeccompName));
        assert_eq!(made(&world(p(local.clone()), p(nameless))), Err(SecurityError::NoSeccompName));
    }
}

#[test]
#[allow(deprecated)]
fn apparmor_is_the_containers_else_the_annotation_else_the_pods() {
    use ProfileType::{Localhost, RuntimeDefault, Unconfined};
    let p = |kind: &str, name: &str| json!({"appArmorProfile": {"type": kind, "localhostProfile": name}});
    let none = json!({});
    let rows = [
        ("none", none.clone(), none.clone(), None, None),
        ("pod", p("RuntimeDefault", ""), none.clone(), None, Some((RuntimeDefault, "", "runtime/default"))),
        (
            "container",
            p("RuntimeDefault", ""),
            p("Unconfined", ""),
            Some("runtime/default"),
            Some((Unconfined, "", "unconfined")),
        ),
        (
            "annotation before pod",
            p("RuntimeDefault", ""),
            none.clone(),
            Some("localhost/x"),
            Some((Localhost, "x", "localhost/x")),
        ),
        (
            "annotation, unconfined",
            none.clone(),
            none.clone(),
            Some("unconfined"),
            Some((Unconfined, "", "unconfined")),
        ),
        ("odd annotation", p("Unconfined", ""), none.clone(), Some("odd"), Some((Unconfined, "", "unconfined"))),
        ("localhost", none.clone(), p("Localhost", "my"), None, Some((Localhost, "my", "localhost/my"))),
    ];
    for (row, pod, container, annotation, want) in rows {
        let mut w = world(pod, container);
        if let Some(text) = annotation {
            let key = "container.apparmor.security.beta.kubernetes.io/app".to_owned();
            w.pod.metadata.annotations.get_or_insert_default().insert(key, text.to_owned());
        }
        let got = made(&w).expect(row);
        let legacy = got.apparmor_profile.clone();
        let got = got.apparmor.map(|p| (p.profile_type(), p.localhost_ref, legacy));
        assert_eq!(got, want.map(|(k, r, l)| (k, r.to_owned(), l.to_owned())), "{row}");
    }
    assert_eq!(made(&world(none, p("Localhost", ""))), Err(SecurityError::NoAppArmorName));
}

#[test]
fn paths_are_masked_unless_proc_is_asked_for() {
    let mut w = world(json!({}), json!({}));
    w.node.thermal_throttle_paths = vec!["/sys/devices/system/cpu/cpu0/thermal_throttle".to_owned()];
    let got = made(&w).expect("a context");
    assert_eq!(got.masked_paths.len(), 13);
    assert_eq!(got.masked_paths[12], w.node.thermal_throttle_paths[0]);
    assert_eq!(got.readonly_paths, ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]);
    let rows = [("Default", 12, 5), ("Unmasked", 0, 0)];
    for (kind, masked, readonly) in rows {
        let got = made(&world(json!({}), json!({"procMount": kind}))).expect(kind);
        assert_eq!((got.masked_paths.len(), got.readonly_paths.len()), (masked, readonly), "{kind}");
    }
}

#[test]
fn groups_come_in_the_order_of_each_message() {
    let context = json!({"fsGroup": 2000, "supplementalGroups": [4000, 4001], "supplementalGroupsPolicy": "Strict"});
    let w = World { groups: vec![555], ..world(context, json!({})) };
    let container = made(&w).expect("a context");
    assert_eq!(container.supplemental_groups, [2000, 4000, 4001, 555]);
    let sandbox = sandbox_context(&w.pod, None, &w.groups);
    assert_eq!(sandbox.supplemental_groups, [2000, 555, 4000, 4001]);
    let strict = i32::from(SupplementalGroupsPolicy::Strict);
    assert_eq!((container.supplemental_groups_policy, sandbox.supplemental_groups_policy), (strict, strict));
}

#[test]
fn selinux_options_of_the_container_win() {
    let options = |level: &str| json!({"seLinuxOptions": {"level": level, "type": "t"}});
    let level = |w: World| made(&w).expect("a context").selinux_options.map(|o| (o.level, o.r#type, o.user));
    let want = |l: &str| Some((l.to_owned(), "t".to_owned(), String::new()));
    assert_eq!(level(world(options("s0"), json!({}))), want("s0"));
    assert_eq!(level(world(options("s0"), options("s1"))), want("s1"));
    assert_eq!(level(world(json!({}), json!({}))), None);
}

#[test]
fn namespaces_follow_the_pod() {
    use NamespaceMode::{Container as Own, Node, Pod as Shared, Target};
    let rows = [
        ("plain", json!({}), None, (Shared, Own, Shared), ""),
        ("host network", json!({"hostNetwork": true}), None, (Node, Own, Shared), ""),
        ("host pid", json!({"hostPID": true, "shareProcessNamespace": true}), None, (Shared, Node, Shared), ""),
        ("host ipc", json!({"hostIPC": true}), None, (Shared, Own, Node), ""),
        ("shared processes", json!({"shareProcessNamespace": true}), None, (Shared, Shared, Shared), ""),
        ("target", json!({}), Some("c-1"), (Shared, Target, Shared), "c-1"),
        (
            "target of shared processes",
            json!({"shareProcessNamespace": true}),
            Some("c-1"),
            (Shared, Shared, Shared),
            "",
        ),
        ("target under host pid", json!({"hostPID": true}), Some("c-1"), (Shared, Node, Shared), ""),
    ];
    for (row, spec, target, (network, pid, ipc), id) in rows {
        let got = namespace_options(&fixture::pod(spec), None, target);
        assert_eq!((got.network(), got.pid(), got.ipc(), got.target_id.as_str()), (network, pid, ipc, id), "{row}");
        assert_eq!(got.userns_options.map(|u| (u.mode(), u.uids.len())), Some((Node, 0)), "{row}");
    }
}

#[test]
fn a_user_namespace_is_one_range_for_users_and_groups() {
    let pod = fixture::pod(json!({"hostUsers": false}));
    let got: NamespaceOption = namespace_options(&pod, Some(UserNamespace { host_id: 131_072, length: 65_536 }), None);
    let userns = got.userns_options.expect("options");
    assert_eq!(userns.mode(), NamespaceMode::Pod);
    assert_eq!(userns.uids, userns.gids);
    let range: Vec<_> = userns.uids.iter().map(|m| (m.host_id, m.container_id, m.length)).collect();
    assert_eq!(range, [(131_072, 0, 65_536)]);
}

#[test]
fn a_sandbox_without_a_pod_context_says_privilege_and_seccomp_only() {
    let privileged = json!({"name": "p", "securityContext": {"privileged": true}});
    let plain = json!({"name": "c"});
    let rows = [
        ("none", json!({"containers": [plain]}), false),
        ("regular", json!({"containers": [plain, privileged]}), true),
        ("init", json!({"containers": [plain], "initContainers": [privileged]}), true),
        ("ephemeral", json!({"containers": [plain], "ephemeralContainers": [privileged]}), true),
    ];
    for (row, spec, want) in rows {
        let got = sandbox_context(&fixture::pod(spec), None, &[7]);
        let only = LinuxSandboxSecurityContext {
            privileged: want,
            seccomp: Some(SecurityProfile::default()),
            ..Default::default()
        };
        assert_eq!(got, only, "{row}");
    }
}
