//! What a container is started with.

use contract::volume::{MakePodDirs, MountVolumes, VolumeError};
use fakes::StandIn;

use super::*;
use model::core::Service;
use model::userns::UserNamespace;

fn config_map(value: &str) -> Value {
    json!({ "k": value, "K2": "two" })
}

fn secret() -> Value {
    json!({ "p": "c2VzYW1l" })
}

fn service(ns: &str, name: &str, ip: &str) -> Service {
    let spec = json!({ "clusterIP": ip, "ports": [{ "port": 80 }] });
    fakes::object(json!({ "metadata": { "name": name, "namespace": ns }, "spec": spec }))
}

fn from_config_map(name: &str) -> Value {
    json!({ "env": [{ "name": "A", "valueFrom": { "configMapKeyRef": { "name": name, "key": "k" } } }] })
}

#[test]
fn the_environment_comes_from_objects_services_and_the_node() {
    with_bench(async |bench| {
        bench.know_node(&["10.9.0.1", "fd00::9"], &[("cpu", "3"), ("memory", "1Gi")]);
        bench.objects.put_map("app", config_map("one"));
        bench.objects.put_secret("login", secret());
        let services = [service("ns", "db", "10.0.0.5"), service("default", "kubernetes", "10.0.0.1")];
        bench.objects.put_services(Some(&services));
        let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
        let container = json!({
            "envFrom": [{ "prefix": "CM_", "configMapRef": { "name": "app" } }],
            "env": [
                { "name": "A", "valueFrom": { "configMapKeyRef": { "name": "app", "key": "k" } } },
                { "name": "P", "valueFrom": { "secretKeyRef": { "name": "login", "key": "p" } } },
                { "name": "HOST", "valueFrom": field("status.hostIP") },
                { "name": "HOSTS", "valueFrom": field("status.hostIPs") },
                { "name": "POD", "valueFrom": field("status.podIP") },
                { "name": "CPU", "valueFrom": { "resourceFieldRef": { "resource": "limits.cpu" } } },
            ],
        });
        bench.tell(&pod(container, json!({})), UpdateKind::Create).await;
        let env = bench.env();
        for (name, value) in [
            ("CM_k", "one"),
            ("CM_K2", "two"),
            ("A", "one"),
            ("P", "sesame"),
            ("HOST", "10.9.0.1"),
            ("HOSTS", "10.9.0.1,fd00::9"),
            ("POD", "10.1.0.7"),
            ("CPU", "3"),
            ("DB_SERVICE_HOST", "10.0.0.5"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        let status = bench.last_status();
        assert_eq!(status.host_ip.as_deref(), Some("10.9.0.1"));
        assert_eq!(status.host_ips.unwrap().len(), 2);
    });
}

#[test]
fn without_links_only_the_api_server_is_in_the_environment() {
    with_bench(async |bench| {
        let services = [("ns", "db"), ("default", "kubernetes")].map(|(ns, name)| service(ns, name, "10.0.0.1"));
        bench.objects.put_services(Some(&services));
        bench.tell(&pod(json!({}), json!({ "enableServiceLinks": false })), UpdateKind::Create).await;
        let env = bench.env();
        assert!(env.contains_key("KUBERNETES_SERVICE_HOST"));
        assert!(!env.contains_key("DB_SERVICE_HOST"));
    });
}

#[test]
fn a_missing_object_is_told_in_the_words_of_the_api_and_tried_again() {
    with_bench(async |bench| {
        bench.tell(&pod(from_config_map("nope"), json!({})), UpdateKind::Create).await;
        let text = "configmap \"nope\" not found";
        assert_eq!(bench.waiting(), ("CreateContainerConfigError".to_owned(), text.to_owned()));
        assert_eq!(bench.events("Failed"), [format!("Error: {text}")]);
        assert!(bench.see(|w| w.created.is_empty()));
        bench.objects.put_map("nope", config_map("late"));
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(bench.env()["A"], "late");
        assert_eq!(bench.last_status().phase.as_deref(), Some("Running"));
    });
}

#[test]
fn a_missing_key_and_unread_services_have_their_own_words() {
    with_bench(async |bench| {
        bench.objects.put_map("app", json!({}));
        bench.objects.put_services(None);
        bench.tell(&pod(from_config_map("app"), json!({})), UpdateKind::Create).await;
        let text = "services have not yet been read at least once, cannot construct envvars";
        assert_eq!(bench.waiting(), ("CreateContainerConfigError".to_owned(), text.to_owned()));
        bench.objects.put_services(Some(&[]));
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(bench.waiting().1, "couldn't find key k in ConfigMap ns/app");
    });
}

#[test]
fn an_optional_object_that_is_missing_is_left_out() {
    with_bench(async |bench| {
        let reference = json!({ "name": "nope", "key": "k", "optional": true });
        let container = json!({ "env": [{ "name": "A", "valueFrom": { "configMapKeyRef": reference } }],
            "envFrom": [{ "secretRef": { "name": "nope", "optional": true } }] });
        bench.tell(&pod(container, json!({})), UpdateKind::Create).await;
        assert!(!bench.env().contains_key("A"));
    });
}

#[test]
fn objects_that_only_a_later_version_of_the_pod_names_are_held_too() {
    with_bench(async |bench| {
        let naming = |name: &str| pod(json!({}), json!({ "imagePullSecrets": [{ "name": name }] }));
        bench.tell(&naming("one"), UpdateKind::Create).await;
        assert!(bench.objects.holds("one"));
        bench.tell(&naming("two"), UpdateKind::Update).await;
        assert!(bench.objects.holds("two"));
    });
}

#[test]
fn pull_secrets_go_with_the_pull_and_missing_ones_are_told_of_together() {
    with_bench(async |bench| {
        bench.objects.put_secret("good", secret());
        let names = json!([{ "name": "gone" }, { "name": "good" }, { "name": "" }, { "name": "lost" }]);
        bench.tell(&pod(json!({}), json!({ "imagePullSecrets": names })), UpdateKind::Create).await;
        assert!(bench.see(|w| !w.pull_secrets.is_empty() && w.pull_secrets.iter().all(|names| *names == ["good"])));
        let text =
            "Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed.";
        assert_eq!(bench.events("FailedToRetrieveImagePullSecret"), [text]);
        assert_eq!(bench.last_status().phase.as_deref(), Some("Running"));
    });
}

#[test]
fn a_runtime_class_chooses_the_handler_of_the_sandbox() {
    with_bench(async |bench| {
        bench.tell(&pod(json!({}), json!({ "runtimeClassName": "kata" })), UpdateKind::Create).await;
        assert_eq!(bench.see(|w| w.sandboxes[0].runtime_handler.clone()), "kata-qemu");
    });
}

#[test]
fn users_of_a_pods_own_are_those_that_the_volume_manager_gives_in_sandbox_and_container() {
    with_bench(async |bench| {
        bench.handlers(&[("", true), ("kata-qemu", false)]);
        bench.tell(&pod(json!({}), json!({ "hostUsers": false, "securityContext": {} })), UpdateKind::Create).await;
        let given = Some(UserNamespace { host_id: 131_072, length: 65_536 });
        assert_eq!(bench.see(|w| container_config::user_namespace(&w.sandboxes[0].config)), given);
        bench.see(|w| {
            let options = &w.created[0].linux.as_ref().unwrap().security_context.as_ref().unwrap().namespace_options;
            let users = options.as_ref().unwrap().userns_options.as_ref().unwrap();
            assert_eq!((users.uids[0].host_id, users.uids == users.gids), (131_072, true));
            let mapped = |m: &cri_api::v1::Mount| m.uid_mappings == users.uids && m.gid_mappings == users.gids;
            assert!(
                !w.created[0].mounts.is_empty() && w.created[0].mounts.iter().all(mapped),
                "{:?}",
                w.created[0].mounts
            );
        });
    });
}

#[test]
fn a_runtime_that_cannot_give_a_pod_users_of_its_own_is_not_asked_to() {
    for (class, handlers, who) in [
        (json!({}), &[][..], "runtime"),
        (json!({}), &[("", false)], "runtime"),
        (
            json!({ "runtimeClassName": "kata" }),
            &[("", true), ("kata-qemu", false)],
            "RuntimeClass handler \"kata-qemu\"",
        ),
    ] {
        with_bench(async |bench| {
            bench.handlers(handlers);
            let mut spec = class;
            spec["hostUsers"] = false.into();
            bench.tell(&pod(json!({}), spec), UpdateKind::Create).await;
            let text = format!(
                "Failed to create pod sandbox: can't set `spec.hostUsers: false`, {who} does not support user namespaces"
            );
            assert_eq!(bench.events("FailedCreatePodSandBox"), [text]);
            assert!(bench.see(|w| w.sandboxes.is_empty()));
        });
    }
}

/// A volume on a file system that cannot show its files to other users (NFS, FUSE of an old kernel): nobody but the runtime finds
/// out, when it mounts it, and a kubelet tells that in the runtime's words.
#[test]
fn a_volume_that_cannot_be_mapped_to_users_of_a_pods_own_is_told_in_the_runtimes_words() {
    with_bench(async |bench| {
        bench.handlers(&[("", true)]);
        let why = "failed to create containerd task: failed to create shim task: failed to set MOUNT_ATTR_IDMAP on /d: \
            invalid argument (maybe the filesystem used doesn't support idmap mounts on this kernel?)";
        bench.set(|w| w.start_fails = Some(why.to_owned()));
        bench.tell(&pod(json!({}), json!({ "hostUsers": false, "securityContext": {} })), UpdateKind::Create).await;
        assert_eq!(bench.events("Failed"), [format!("Error: {why}")]);
        let waits = |s: &model::core::PodStatus| {
            let waiting = s.container_statuses.as_ref()?.first()?.state.as_ref()?.waiting.as_ref()?;
            (waiting.reason.as_deref() == Some("RunContainerError")).then(|| waiting.message.clone())?
        };
        assert_eq!(bench.see(|w| w.statuses.iter().find_map(waits)), Some(why.to_owned()));
    });
}

#[test]
fn a_runtime_class_that_does_not_exist_fails_the_sandbox() {
    with_bench(async |bench| {
        bench.tell(&pod(json!({}), json!({ "runtimeClassName": "nope" })), UpdateKind::Create).await;
        let text = "Failed to create pod sandbox: runtimeclass.node.k8s.io \"nope\" not found";
        assert_eq!(bench.events("FailedCreatePodSandBox"), [text]);
        assert!(bench.see(|w| w.sandboxes.is_empty()));
    });
}

#[test]
fn a_failed_sandbox_is_told_with_the_code_of_the_runtime() {
    with_bench(async |bench| {
        bench.set(|w| w.sandbox_fails = Some(("Unknown".to_owned(), "failed to setup network".to_owned())));
        bench.tell(&pod(json!({}), json!({})), UpdateKind::Create).await;
        let text = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network";
        assert_eq!(bench.events("FailedCreatePodSandBox"), [text]);
    });
}

#[test]
fn a_pod_that_was_promised_devices_does_not_start_without_them() {
    let promised = json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "web-gpu" }] });
    with_bench(async |bench| {
        bench.tell(&pod(json!({}), promised), UpdateKind::Create).await;
        let text =
            "Failed to prepare dynamic resources: ResourceClaim web-gpu: this node prepares no dynamic resources";
        assert_eq!(bench.events("FailedPrepareDynamicResources"), [text]);
        assert!(bench.see(|w| w.sandboxes.is_empty()), "no sandbox is asked for");
        assert_eq!(bench.last_status().phase.as_deref(), Some("Pending"));
    });
}

#[test]
fn a_container_of_an_adopted_pod_is_not_started_again_without_its_devices() {
    let promised = json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "web-gpu" }] });
    run(11, |kernel| async move {
        let mut observed = nothing();
        observed.sandboxes.push(sandbox(""));
        observed.ips = vec!["10.1.0.7".parse().unwrap()];
        let bench = Bench::start(&kernel, observed);
        let wants = json!({ "resources": { "claims": [{ "name": "gpu" }] } });
        bench.tell(&pod(wants, promised), UpdateKind::Create).await;
        let text = "ResourceClaim web-gpu: this node prepares no dynamic resources";
        assert_eq!(bench.waiting(), ("CreateContainerConfigError".to_owned(), text.to_owned()));
        assert_eq!(bench.events("Failed"), [format!("Error: {text}")]);
    });
}

/// What the rules say counts only with the gate RestartAllContainersOnContainerExits.
#[test]
fn all_containers_are_restarted_only_where_the_gate_is_on() {
    for (gate, ends) in [(true, "Running"), (false, "Failed")] {
        run(12, move |kernel| async move {
            let rules = json!([{ "action": "RestartAllContainers", "exitCodes": { "operator": "In", "values": [9] } }]);
            let fields = json!({ "restartPolicy": "Never", "restartPolicyRules": rules });
            let pod = pod(fields, json!({ "restartPolicy": "Never" }));
            let mut observed = left_running(&pod);
            observed.containers[0].state = model::runtime::ContainerState::Exited;
            observed.containers[0].exit_code = 9;
            let bench = Bench::start_with(&kernel, observed, |config| config.restart_all_containers = gate);
            bench.tell(&pod, UpdateKind::Create).await;
            assert_eq!(bench.last_status().phase.as_deref(), Some(ends), "gate {gate}");
            let created = bench.see(|w| w.created.len());
            assert_eq!(created, usize::from(gate), "gate {gate}: {:#?}", bench.see(|w| w.words.clone()));
        });
    }
}

#[test]
fn a_pod_whose_volume_finds_no_place_on_the_node_is_refused() {
    run(15, move |kernel| async move {
        let bench = Bench::start(&kernel, nothing());
        let full = VolumeError { refused: true, ..VolumeError::new("Node has reached its volume attachment limit") };
        bench.set(|w| w.volumes_fail = Some(full));
        bench.tell(&pod(json!({}), json!({})), UpdateKind::Create).await;
        let status = bench.last_status();
        let told = (status.phase.as_deref(), status.reason.as_deref());
        assert_eq!(told, (Some("Failed"), Some("VolumeAttachmentLimitExceeded")), "{status:?}");
        assert_eq!(bench.events("VolumeAttachmentLimitExceeded"), ["Node has reached its volume attachment limit"]);
        assert_eq!((bench.events("FailedMount").len(), bench.see(|w| w.created.len())), (0, 0));
    });
}

/// What volumes are made of may take a request; folders may hang.
#[test]
fn volumes_are_asked_for_while_folders_are_made_and_nothing_starts_before_both() {
    run(18, move |kernel| async move {
        let bench = Bench::start(&kernel, nothing());
        let volumes = StandIn::<contract::VolumeManager>::on(&bench.wiring);
        volumes.answer_later(|_: &MakePodDirs| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok(())
        });
        volumes.answer(|_: &MountVolumes| Ok(Arc::default()));
        bench.tell(&pod(json!({}), json!({})), UpdateKind::Create).await;
        let asked = (volumes.asked::<MakePodDirs>().len(), volumes.asked::<MountVolumes>().len());
        assert_eq!((asked, bench.see(|w| w.created.len())), ((1, 1), 0));
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(bench.see(|w| w.created.len()), 1);
    });
}

#[test]
fn without_folders_nobody_waits_for_volumes() {
    run(19, move |kernel| async move {
        let bench = Bench::start(&kernel, nothing());
        let volumes = StandIn::<contract::VolumeManager>::on(&bench.wiring);
        volumes.answer(|_: &MakePodDirs| Err(VolumeError::new("no space left on device")));
        volumes.answer_later(|_: &MountVolumes| std::future::pending());
        bench.tell(&pod(json!({}), json!({})), UpdateKind::Create).await;
        assert_eq!(bench.events("Failed"), ["error making pod data directories: no space left on device"]);
        assert_eq!(bench.see(|w| w.created.len()), 0);
    });
}

/// A pod is looked at every 60 to 90 s.
#[test]
fn volumes_with_content_are_made_sure_of_at_each_look_and_directories_at_every_fifth_minute() {
    let asked_in_an_hour = |volumes: Value| {
        let counted = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
        let out = counted.clone();
        run(20, move |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let manager = StandIn::<contract::VolumeManager>::on(&bench.wiring);
            manager.answer(|_: &MakePodDirs| Ok(()));
            manager.answer(|_: &MountVolumes| Ok(Arc::default()));
            bench.tell(&pod(json!({}), json!({ "volumes": volumes })), UpdateKind::Create).await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            out.set((manager.asked::<MakePodDirs>().len(), manager.asked::<MountVolumes>().len()));
        });
        counted.get()
    };
    let content = json!([{ "name": "a", "configMap": { "name": "a" } }, { "name": "b", "emptyDir": {} }]);
    let (looks, asked) = asked_in_an_hour(content);
    assert!(looks >= 40 && asked == looks, "{looks} looks, {asked} of them at volumes");
    for directories in
        [json!([]), json!([{ "name": "a", "emptyDir": {} }, { "name": "b", "hostPath": { "path": "/b" } }])]
    {
        let (looks, asked) = asked_in_an_hour(directories);
        assert!(looks >= 40 && (9..=12).contains(&asked), "{looks} looks, {asked} of them at volumes");
    }
}

#[test]
fn a_pod_without_a_cgroup_is_told_of_that_whatever_its_volumes_are() {
    run(16, move |kernel| async move {
        let bench = Bench::start(&kernel, nothing());
        bench.set(|w| {
            w.cgroup_fails = Some(contract::cgroup::CgroupError { message: "no room".to_owned() });
            w.volumes_fail = Some(VolumeError::new("unmounted volumes=[s]"));
        });
        bench.tell(&pod(json!({}), json!({})), UpdateKind::Create).await;
        assert_eq!(bench.events("FailedCreatePodContainer"), ["unable to ensure pod container exists: no room"]);
        assert_eq!((bench.events("FailedMount").len(), bench.see(|w| w.created.len())), (0, 0));
    });
}

/// Each try has been told of by VolumeManager.
#[test]
fn volumes_that_only_took_too_long_make_no_event_of_their_own() {
    for late in [true, false] {
        run(13, move |kernel| async move {
            let bench = Bench::start(&kernel, nothing());
            let message = "unmounted volumes=[s]".to_owned();
            bench.set(|w| w.volumes_fail = Some(VolumeError { late, ..VolumeError::new(message) }));
            bench.tell(&pod(json!({}), json!({})), UpdateKind::Create).await;
            let told = ["Unable to attach or mount volumes: unmounted volumes=[s]"];
            assert_eq!(bench.events("FailedMount"), if late { &[][..] } else { &told[..] });
        });
    }
}

#[test]
fn variables_come_from_files_that_earlier_containers_wrote() {
    let asks = |path: &str| {
        let from = json!({ "fileKeyRef": { "volumeName": "v", "path": path, "key": "K" } });
        json!({ "env": [{ "name": "A", "valueFrom": from }] })
    };
    run(14, move |kernel| async move {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("v")).unwrap();
        std::fs::write(dir.path().join("v/env"), "# made by init\nK='from a file'\n").unwrap();
        std::fs::write(dir.path().join("host"), "K='of the host'\n").unwrap();
        std::os::unix::fs::symlink("../host", dir.path().join("v/link")).unwrap();
        let place = MountedVolume { host_path: dir.path().join("v"), read_only: false, selinux_relabel: false };
        let volumes = MountedVolumes { volumes: [("v".to_owned(), place)].into(), ..MountedVolumes::default() };
        for (path, want) in [
            ("env", Ok("from a file")),
            ("none", Err("environment variable key \"K\" not found in file \"none\" of volume \"v\"")),
            ("link", Err("couldn't parse env file \"link\" of volume \"v\"")),
        ] {
            let bench = Bench::start(&kernel, nothing());
            bench.set(|w| w.volumes = volumes.clone());
            bench.tell(&pod(asks(path), json!({})), UpdateKind::Create).await;
            match want {
                Ok(value) => assert_eq!(bench.env()["A"], value, "{path}"),
                Err(why) => assert_eq!(bench.waiting(), ("CreateContainerConfigError".into(), why.into()), "{path}"),
            }
        }
    });
}
