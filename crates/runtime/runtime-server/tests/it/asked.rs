//! What pods may ask for beside the usual: an OCI runtime of another name, images as volumes, users of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cri_api::v1;
use tonic::Code;

use crate::bed::Bed;
use crate::on_runc::{Client, container, create, exec, exited, remove_pod, run_pod, running, stop_pod};

async fn runtime_status(client: &mut Client) -> v1::StatusResponse {
    client.status(v1::StatusRequest { verbose: true }).await.expect("status").into_inner()
}

#[tokio::test]
async fn a_pod_gets_the_oci_runtime_that_it_asks_for() {
    let mut bed = Bed::with_noting_runc();
    let mut client = bed.client().await;
    let status = runtime_status(&mut client).await;
    assert_eq!(status.runtime_handlers.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["", "other", "strange"]);
    let mut ask = async |name: &str, handler: &str| {
        let config = Some(bed.pod(name));
        client.run_pod_sandbox(v1::RunPodSandboxRequest { config, runtime_handler: handler.into() }).await
    };
    let refused = ask("p", "none").await.expect_err("there is none of that name");
    assert!(refused.message().contains("\"none\""), "{refused}");
    // One that may be anything: nothing of its containers is done without it.
    let pod = ask("p", "strange").await.expect("sandbox").into_inner().pod_sandbox_id;
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    assert_eq!(exec(&mut client, &id, "echo in", 10).await.expect("exec").stdout, b"in\n");
    let state = bed.dir.path().join("run/oci-strange").join(&id);
    assert!(state.exists(), "its state is kept apart");
    // What a supervisor leaves is taken away by the runtime that made it.
    bed.kill();
    rustix::process::kill_process(bed.supervisor_of(&pod), rustix::process::Signal::KILL).expect("killed");
    bed.start();
    let mut client = bed.client().await;
    assert_eq!(exited(&mut client, &id).await.reason, "SupervisorLost");
    assert!(!state.exists(), "nothing of it is left");
    let said = bed.calls();
    for verb in [" run --detach", " exec --detach", " delete --force"] {
        assert!(said.contains(verb), "{verb}: {said}");
    }
    remove_pod(&mut client, &pod).await.expect("removed");
}

#[tokio::test]
async fn the_oci_runtime_starts_all_where_the_file_says_so() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let own = running(&mut client, &pod, container("own", "exec sleep 1000")).await;
    bed.kill();
    std::fs::write(bed.dir.path().join("runtime.toml"), "oci-runtime-only = true\n").expect("configuration");
    bed.start();
    let mut client = bed.client().await;
    let theirs = running(&mut client, &pod, container("theirs", "exec sleep 1000")).await;
    let known = |id: &str| bed.dir.path().join("run/oci").join(id).exists();
    assert_eq!([known(&own), known(&theirs)], [false, true]);
    // What was started before stays as it is: the OCI runtime could do nothing in it.
    for id in [&own, &theirs] {
        assert_eq!(exec(&mut client, id, "echo in", 10).await.expect("a command").stdout, b"in\n");
    }
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[tokio::test]
async fn each_container_has_a_copy_of_its_image_where_the_file_says_so() {
    let mut bed = Bed::without_server();
    std::fs::write(bed.dir.path().join("runtime.toml"), "snapshotter = \"native\"\n").expect("configuration");
    bed.start();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let main = v1::ContainerConfig {
        mounts: vec![volume("/all", "", true)],
        ..container("main", "echo new > /etc/passwd; exec sleep 1000")
    };
    let id = running(&mut client, &pod, main).await;
    bed.kill();
    bed.start();
    let mut client = bed.client().await;
    let script = "cat /etc/passwd; head -c 4 /all/etc/passwd; echo; touch /all/x || echo refused; \
                  while read -r _ at kind _; do [ $kind != overlay ] || echo $at; done < /proc/mounts";
    let out = exec(&mut client, &id, script, 10).await.expect("exec");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "new\nroot\nrefused\n");
    let upper = bed.dir.path().join("lib/pods").join(&pod).join("containers").join(&id).join("upper");
    assert_eq!(fs::read_to_string(upper.join("etc/passwd")).expect("the copy"), "new\n");
    assert!(!fs::read_to_string(bed.dir.path().join("images/box/rootfs/etc/passwd")).expect("image").contains("new"));
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

/// The image `box`, or a part of it, as a volume.
fn volume(to: &str, part: &str, readonly: bool) -> v1::Mount {
    v1::Mount {
        container_path: to.into(),
        image: Some(v1::ImageSpec { image: "box".into(), ..Default::default() }),
        image_sub_path: part.into(),
        readonly,
        ..Default::default()
    }
}

#[tokio::test]
async fn images_are_volumes_to_be_read() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let with = |name: &str, mounts: Vec<v1::Mount>| v1::ContainerConfig {
        mounts,
        ..container(name, "cat /part/passwd; ls /all/bin/busybox; touch /all/x; exec sleep 1000")
    };
    for (mount, why) in [
        (volume("/all", "", false), "read-only"),
        (volume("/all", "none", true), "no such path"),
        (volume("/all", "../..", true), "no `..`"),
    ] {
        let refused = create(&mut client, &pod, with("bad", vec![mount])).await.expect_err(why);
        assert!(refused.code() == Code::InvalidArgument && refused.message().contains(why), "{refused}");
    }
    let missing = v1::Mount {
        image: Some(v1::ImageSpec { image: "none".into(), ..Default::default() }),
        ..volume("/all", "", true)
    };
    let refused = create(&mut client, &pod, with("bad", vec![missing])).await.expect_err("no such image");
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    let good = with("main", vec![volume("/all", "", true), volume("/part", "etc", true)]);
    let id = running(&mut client, &pod, good).await;
    let out = exec(&mut client, &id, "cat /part/passwd; ls /all/bin/busybox; touch /all/x", 10).await.expect("exec");
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(stdout.starts_with("root:x:0:0") && stdout.ends_with("/all/bin/busybox\n"), "{stdout}");
    assert!(stderr.contains("Read-only file system"), "{stderr}");
    let status = crate::on_runc::status(&mut client, &id).await;
    let refs: Vec<_> = status.mounts.iter().map(|m| m.image.as_ref().map(|i| i.image_ref.as_str())).collect();
    assert_eq!(refs, [Some("directory:box"); 2]);
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[tokio::test]
async fn a_pod_has_users_of_its_own_or_is_told_why_not() {
    let bed = Bed::new();
    fs::set_permissions(bed.dir.path(), fs::Permissions::from_mode(0o711)).expect("mode");
    let mut client = bed.client().await;
    let range = v1::IdMapping { container_id: 0, host_id: 700_000, length: 65_536 };
    let users = v1::UserNamespace { mode: v1::NamespaceMode::Pod.into(), uids: vec![range], gids: vec![range] };
    let mut config = bed.pod("p");
    let context = config.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("context");
    context.namespace_options.as_mut().expect("options").userns_options = Some(users.clone());
    let able = runtime_status(&mut client).await.runtime_handlers[0].features.is_some_and(|f| f.user_namespaces);
    let made = run_pod(&mut client, config).await;
    if !able {
        let refused = made.expect_err("this OCI runtime cannot");
        assert!(refused.code() == Code::Unimplemented && refused.message().contains("runc 1.2"), "{refused}");
        return;
    }
    let pod = made.expect("sandbox");
    let mut inside = container(
        "main",
        "cat /proc/self/uid_map; id -u; touch /new && ls -ln /new /bin/busybox; echo again > /proc/self/fd/1",
    );
    let context = inside.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("context");
    context.namespace_options.as_mut().expect("options").userns_options = Some(users);
    let id = running(&mut client, &pod, inside).await;
    assert_eq!(exited(&mut client, &id).await.exit_code, 0);
    let lines = bed.lines("p", "main").join("\n");
    assert!(lines.contains("700000") && lines.contains("stdout F 0\n"), "{lines}");
    assert!(lines.contains("stdout F again"), "a stream that is opened anew: {lines}");
    assert_eq!(lines.matches(" 0        0 ").count(), 2, "old and new files are root's: {lines}");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

/// A file of a vendor that was written after the server started.
#[tokio::test]
async fn a_device_of_a_vendors_file_is_in_the_container() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    std::fs::create_dir(bed.dir.path().join("cdi")).expect("folder");
    let file = serde_json::json!({
        "cdiVersion": "0.6.0", "kind": "vendor.example/loop", "containerEdits": {"env": ["VENDOR=yes"]},
        "devices": [{"name": "one", "containerEdits": {
            "deviceNodes": [{"path": "/dev/vendor0", "hostPath": "/dev/loop-control", "permissions": "r"}],
            "mounts": [{"hostPath": bed.dir.path(), "containerPath": "/vendor", "options": ["bind", "ro"]}],
        }}],
    });
    std::fs::write(bed.dir.path().join("cdi/vendor.json"), file.to_string()).expect("file");
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let with = |device: &str| {
        let mut config = container("main", "exec sleep 1000");
        config.cdi_devices.push(v1::CdiDevice { name: format!("vendor.example/loop={device}") });
        config
    };
    let unknown = create(&mut client, &pod, with("two")).await.expect_err("unknown");
    assert!(unknown.message().contains("unresolvable CDI devices vendor.example/loop=two"), "{unknown}");
    let id = running(&mut client, &pod, with("one")).await;
    let script = "echo $VENDOR; ls /vendor/cdi; (: </dev/vendor0) && echo read; (: >/dev/vendor0)";
    let said = exec(&mut client, &id, script, 10).await.expect("exec");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "yes\nvendor.json\nread\n");
    assert_ne!(said.exit_code, 0, "it may only be read");
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
}
