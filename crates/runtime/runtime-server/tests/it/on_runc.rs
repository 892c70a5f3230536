//! Pods from beginning to end.

use std::time::{Duration, Instant};

use cri_api::v1;
use cri_api::v1::security_profile::ProfileType;
use runtime_server::cri::runtime_service_client::RuntimeServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::bed::{Bed, until};

pub(crate) type Client = RuntimeServiceClient<Channel>;

pub(crate) async fn run_pod(client: &mut Client, config: v1::PodSandboxConfig) -> Result<String, Status> {
    let request = v1::RunPodSandboxRequest { config: Some(config), runtime_handler: String::new() };
    Ok(client.run_pod_sandbox(request).await?.into_inner().pod_sandbox_id)
}

pub(crate) fn profile(kind: ProfileType) -> v1::SecurityProfile {
    v1::SecurityProfile { profile_type: kind.into(), localhost_ref: String::new() }
}

/// One that may trace, which `runc` therefore starts.
pub(crate) fn tracing(name: &str, script: &str) -> v1::ContainerConfig {
    let mut config = container(name, script);
    let context = config.linux.as_mut().and_then(|l| l.security_context.as_mut()).expect("a context");
    let add_capabilities = vec!["SYS_PTRACE".to_owned()];
    context.capabilities = Some(v1::Capability { add_capabilities, ..Default::default() });
    config
}

/// One that its supervisor starts itself.
pub(crate) fn container(name: &str, script: &str) -> v1::ContainerConfig {
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata { name: name.into(), attempt: 0 }),
        image: Some(v1::ImageSpec { image: "box".into(), ..Default::default() }),
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        log_path: name.into(),
        linux: Some(v1::LinuxContainerConfig {
            resources: Some(v1::LinuxContainerResources { memory_limit_in_bytes: 64 << 20, ..Default::default() }),
            security_context: Some(v1::LinuxContainerSecurityContext {
                namespace_options: Some(v1::NamespaceOption {
                    network: v1::NamespaceMode::Node.into(),
                    pid: v1::NamespaceMode::Container.into(),
                    ..Default::default()
                }),
                seccomp: Some(profile(ProfileType::Unconfined)),
                ..Default::default()
            }),
        }),
        ..Default::default()
    }
}

pub(crate) async fn create(client: &mut Client, pod: &str, config: v1::ContainerConfig) -> Result<String, Status> {
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: pod.into(),
        config: Some(config),
        sandbox_config: Some(v1::PodSandboxConfig::default()),
    };
    Ok(client.create_container(request).await?.into_inner().container_id)
}

pub(crate) async fn start(client: &mut Client, id: &str) -> Result<(), Status> {
    client.start_container(v1::StartContainerRequest { container_id: id.into() }).await.map(drop)
}

pub(crate) async fn running(client: &mut Client, pod: &str, config: v1::ContainerConfig) -> String {
    let id = create(client, pod, config).await.expect("created");
    start(client, &id).await.expect("started");
    id
}

pub(crate) async fn status(client: &mut Client, id: &str) -> v1::ContainerStatus {
    let request = v1::ContainerStatusRequest { container_id: id.into(), verbose: false };
    client.container_status(request).await.expect("status").into_inner().status.expect("status")
}

pub(crate) async fn exited(client: &mut Client, id: &str) -> v1::ContainerStatus {
    let ended = || {
        let mut client = client.clone();
        async move {
            let s = status(&mut client, id).await;
            (s.state() == v1::ContainerState::ContainerExited).then_some(s)
        }
    };
    until("the container ends", ended).await
}

pub(crate) async fn exec(
    client: &mut Client,
    id: &str,
    script: &str,
    timeout: i64,
) -> Result<v1::ExecSyncResponse, Status> {
    let cmd = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let request = v1::ExecSyncRequest { container_id: id.into(), cmd, timeout };
    Ok(client.exec_sync(request).await?.into_inner())
}

pub(crate) async fn stop_pod(client: &mut Client, id: &str) -> Result<(), Status> {
    client.stop_pod_sandbox(v1::StopPodSandboxRequest { pod_sandbox_id: id.into() }).await.map(drop)
}

pub(crate) async fn remove_pod(client: &mut Client, id: &str) -> Result<(), Status> {
    client.remove_pod_sandbox(v1::RemovePodSandboxRequest { pod_sandbox_id: id.into() }).await.map(drop)
}

pub(crate) async fn sandbox(client: &mut Client, id: &str) -> v1::PodSandboxStatus {
    let request = v1::PodSandboxStatusRequest { pod_sandbox_id: id.into(), verbose: false };
    client.pod_sandbox_status(request).await.expect("status").into_inner().status.expect("status")
}

#[tokio::test]
async fn a_pod_from_beginning_to_end_over_two_deaths_of_the_server() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    assert_eq!(sandbox(&mut client, &pod).await.state(), v1::PodSandboxState::SandboxReady);
    let id = create(&mut client, &pod, container("main", "echo out; echo err >&2; exec sleep 1000"))
        .await
        .expect("container");
    assert_eq!(status(&mut client, &id).await.state(), v1::ContainerState::ContainerCreated);
    bed.kill();
    bed.start();
    let mut client = bed.client().await;
    start(&mut client, &id).await.expect("started after a death");
    until("two lines", || async { (bed.lines("p", "main").len() == 2).then_some(()) }).await;
    let first = exec(&mut client, &id, "cat; echo from exec; exit 3", 10).await.expect("exec");
    assert_eq!((first.exit_code, first.stdout.as_slice()), (3, &b"from exec\n"[..]));

    // Something ends while nobody serves: it is known afterwards, with its code.
    let short =
        running(&mut client, &pod, container("short", "while [ ! -e /tmp/go ]; do sleep 0.01; done; echo bye; exit 9"))
            .await;
    bed.kill();
    let go = bed.dir.path().join("run").join(&pod).join("c").join(&short).join("rootfs/tmp/go");
    std::fs::write(go, "").expect("go");
    until("it ends", || async { (bed.lines("p", "short") == ["stdout F bye"]).then_some(()) }).await;
    bed.start();
    let mut client = bed.client().await;
    let ended = exited(&mut client, &short).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (9, "Error"));
    let main = status(&mut client, &id).await;
    assert_eq!(main.state(), v1::ContainerState::ContainerRunning);
    assert!(main.started_at >= main.created_at);
    let again = exec(&mut client, &id, "echo still here", 10).await.expect("exec");
    assert_eq!(again.stdout, b"still here\n");

    let stop = v1::StopContainerRequest { container_id: id.clone(), timeout: 0 };
    client.stop_container(stop).await.expect("stopped");
    assert_eq!(status(&mut client, &id).await.exit_code, 137);
    for _ in 0..2 {
        stop_pod(&mut client, &pod).await.expect("stopped");
    }
    assert_eq!(sandbox(&mut client, &pod).await.state(), v1::PodSandboxState::SandboxNotready);
    for _ in 0..2 {
        remove_pod(&mut client, &pod).await.expect("removed");
    }
    assert_eq!(bed.remains(), Vec::<String>::new());
    let unknown = client.container_status(v1::ContainerStatusRequest { container_id: id, verbose: false }).await;
    assert_eq!(unknown.expect_err("gone").code(), Code::NotFound);
}

#[tokio::test]
async fn containers_of_a_supervisor_that_is_killed_end_with_a_clear_status() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    for server_is_there in [true, false] {
        let name = format!("p-{server_is_there}");
        let pod = run_pod(&mut client, bed.pod(&name)).await.expect("sandbox");
        let other = run_pod(&mut client, bed.pod(&format!("{name}-other"))).await.expect("sandbox");
        let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
        let spared = running(&mut client, &other, container("main", "exec sleep 1000")).await;
        let supervisors = bed.supervisors();
        let mine = supervisors.into_iter().find(|pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&format!("/run/{pod}"))
        });
        if !server_is_there {
            bed.kill();
        }
        let mine = mine.and_then(rustix::process::Pid::from_raw).expect("a supervisor");
        rustix::process::kill_process(mine, rustix::process::Signal::KILL).expect("kill");
        if !server_is_there {
            bed.start();
            client = bed.client().await;
        }
        let ended = exited(&mut client, &id).await;
        assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "SupervisorLost"));
        assert_eq!(sandbox(&mut client, &pod).await.state(), v1::PodSandboxState::SandboxNotready);
        assert_eq!(status(&mut client, &spared).await.state(), v1::ContainerState::ContainerRunning);
        for pod in [pod, other] {
            stop_pod(&mut client, &pod).await.expect("stopped");
            remove_pod(&mut client, &pod).await.expect("removed");
        }
        assert_eq!(bed.remains(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_leaves_nothing() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    // A pod with a network of its own, where none is configured: every step before is undone.
    let mut config = bed.pod("p");
    config.linux.get_or_insert_default().security_context = None;
    let refused = run_pod(&mut client, config).await.expect_err("refused");
    assert!(refused.message().contains("no network is configured"), "{refused}");
    assert_eq!(bed.remains(), Vec::<String>::new());
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let reserved = run_pod(&mut client, bed.pod("p")).await.expect_err("reserved");
    assert_eq!(reserved.code(), Code::AlreadyExists);
    // No such image, no such user, no such program.
    let mut none = container("a", "true");
    none.image = Some(v1::ImageSpec { image: "none".into(), ..Default::default() });
    assert_eq!(create(&mut client, &pod, none).await.expect_err("image").code(), Code::NotFound);
    let mut user = container("b", "true");
    user.linux.get_or_insert_default().security_context.get_or_insert_default().run_as_username = "nobody".into();
    let refused = create(&mut client, &pod, user).await.expect_err("user");
    assert!(refused.message().contains("nobody"), "{refused}");
    let mut program = container("c", "");
    program.command = vec!["/bin/none".into()];
    let id = create(&mut client, &pod, program).await.expect("created");
    let refused = start(&mut client, &id).await.expect_err("program");
    assert!(refused.message().contains("/bin/none"), "{refused}");
    let ended = status(&mut client, &id).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (128, "StartError"));
    assert!(ended.message.contains("/bin/none"));
    // Removing ends what runs.
    running(&mut client, &pod, container("d", "exec sleep 1000")).await;
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[tokio::test]
async fn commands_are_limited_in_time_and_output_and_run_as_the_containers_user() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let mut config = container("main", "exec sleep 1000");
    let security = config.linux.get_or_insert_default().security_context.get_or_insert_default();
    security.run_as_username = "web".into();
    let id = running(&mut client, &pod, config).await;
    let who = exec(&mut client, &id, "id -u; id -g; id -G", 10).await.expect("exec");
    assert_eq!(String::from_utf8_lossy(&who.stdout), "1000\n1001\n1001 50\n");
    let user = status(&mut client, &id).await.user.and_then(|u| u.linux).expect("user");
    assert_eq!((user.uid, user.gid, user.supplemental_groups), (1000, 1001, vec![50, 1001]));
    let before = Instant::now();
    let late = exec(&mut client, &id, "exec sleep 999", 1).await.expect_err("late");
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert!(before.elapsed() < Duration::from_secs(20));
    // Nothing of it is left.
    let after = status(&mut client, &id).await;
    assert_eq!(after.state(), v1::ContainerState::ContainerRunning, "{after:?}");
    let procs = format!("/sys/fs/cgroup/memory{}/{id}/cgroup.procs", bed.cgroup);
    let left = || async {
        let processes = std::fs::read_to_string(&procs).expect("cgroup");
        (processes.lines().count() == 1).then_some(())
    };
    until("it is killed", left).await;
    // Much output, a background process that holds the stream.
    let much = exec(&mut client, &id, "yes | head -c 20000000; sleep 100 & exit 5", 30).await.expect("exec");
    assert_eq!((much.stdout.len(), much.exit_code), (16 << 20, 5));
}

#[tokio::test]
async fn lists_statistics_limits_and_events() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let mut events = client.get_container_events(v1::GetEventsRequest {}).await.expect("events").into_inner();
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let id = running(&mut client, &pod, container("main", "trap 'exit 4' TERM; echo up; while :; do sleep 0.01; done"))
        .await;
    until("the trap is set", || async { (bed.lines("p", "main") == ["stdout F up"]).then_some(()) }).await;
    let all = v1::ListContainersRequest { filter: None };
    let list = client.list_containers(all).await.expect("list").into_inner().containers;
    assert_eq!((list.len(), list[0].state()), (1, v1::ContainerState::ContainerRunning));
    let filter =
        v1::PodSandboxFilter { label_selector: [("app".to_owned(), "q".to_owned())].into(), ..Default::default() };
    let none = client.list_pod_sandbox(v1::ListPodSandboxRequest { filter: Some(filter) }).await.expect("list");
    assert!(none.into_inner().items.is_empty());
    let stats = client.container_stats(v1::ContainerStatsRequest { container_id: id.clone() }).await.expect("stats");
    let stats = stats.into_inner().stats.expect("stats");
    assert!(stats.memory.and_then(|m| m.working_set_bytes).is_some_and(|b| b.value > 0));
    assert!(stats.writable_layer.and_then(|w| w.inodes_used).is_some());
    let linux = v1::LinuxContainerResources { memory_limit_in_bytes: 96 << 20, ..Default::default() };
    let update =
        v1::UpdateContainerResourcesRequest { container_id: id.clone(), linux: Some(linux), ..Default::default() };
    client.update_container_resources(update).await.expect("updated");
    let limit = std::fs::read_to_string(format!("/sys/fs/cgroup/memory{}/{id}/memory.limit_in_bytes", bed.cgroup));
    assert_eq!(limit.expect("limit").trim(), (96 << 20).to_string());
    let told = status(&mut client, &id).await.resources.and_then(|r| r.linux).expect("resources");
    assert_eq!(told.memory_limit_in_bytes, 96 << 20);
    let stop = v1::StopContainerRequest { container_id: id.clone(), timeout: 30 };
    client.stop_container(stop).await.expect("stopped");
    assert_eq!(status(&mut client, &id).await.exit_code, 4);
    client.remove_container(v1::RemoveContainerRequest { container_id: id.clone() }).await.expect("removed");
    use v1::ContainerEventType::{ContainerCreatedEvent as Created, ContainerDeletedEvent as Deleted};
    use v1::ContainerEventType::{ContainerStartedEvent as Started, ContainerStoppedEvent as Stopped};
    let mut seen = Vec::new();
    while seen.len() < 6 {
        let event = events.message().await.expect("event").expect("more");
        seen.push((event.container_id == id, event.container_event_type()));
    }
    let want = [(false, Created), (false, Started), (true, Created), (true, Started), (true, Stopped), (true, Deleted)];
    assert_eq!(seen, want);
}

#[tokio::test]
async fn a_sandbox_that_is_being_made_is_shown_to_nobody() {
    let bed = Bed::new();
    let (mut client, mut maker) = (bed.client().await, bed.client().await);
    let configs: Vec<_> = (0..5).map(|n| bed.pod(&format!("p{n}"))).collect();
    let making = tokio::spawn(async move {
        for config in configs {
            run_pod(&mut maker, config).await.expect("sandbox");
        }
    });
    while !making.is_finished() {
        let list = client.list_pod_sandbox(v1::ListPodSandboxRequest { filter: None }).await.expect("list");
        let list = list.into_inner().items;
        assert!(list.iter().all(|s| s.state() == v1::PodSandboxState::SandboxReady), "{list:?}");
    }
    making.await.expect("made");
}

#[tokio::test]
async fn what_the_runtime_says_of_itself_and_of_images() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let status = client.status(v1::StatusRequest { verbose: false }).await.expect("status").into_inner();
    let conditions = status.status.expect("status").conditions;
    let ready: Vec<_> = conditions.iter().map(|c| (c.r#type.as_str(), c.status)).collect();
    assert_eq!(ready, [("RuntimeReady", true), ("NetworkReady", false)]);
    let config = client.runtime_config(v1::RuntimeConfigRequest {}).await.expect("config").into_inner();
    assert_eq!(config.linux.expect("linux").cgroup_driver(), v1::CgroupDriver::Cgroupfs);
    let checkpoint = v1::CheckpointContainerRequest::default();
    assert_eq!(client.checkpoint_container(checkpoint).await.expect_err("no").code(), Code::Unimplemented);
    let mut images = bed.images().await;
    let list = images.list_images(v1::ListImagesRequest { filter: None }).await.expect("list").into_inner().images;
    assert_eq!(list.iter().map(|i| i.repo_tags.clone()).collect::<Vec<_>>(), [["box:latest"]]);
    let spec = v1::ImageSpec { image: "none".into(), ..Default::default() };
    let none = images.image_status(v1::ImageStatusRequest { image: Some(spec), verbose: false }).await;
    assert!(none.expect("answer").into_inner().image.is_none());
}

#[tokio::test]
async fn a_pod_has_a_network_of_its_own_and_gives_it_back() {
    let bed = Bed::with_bridge();
    let mut client = bed.client().await;
    let ready = || {
        let mut client = client.clone();
        async move {
            let status = client.status(v1::StatusRequest { verbose: false }).await.ok()?.into_inner().status?;
            status.conditions.iter().all(|c| c.status).then_some(())
        }
    };
    until("the network is ready", ready).await;
    let mut config = bed.pod("p");
    config.hostname = "web-0".into();
    let linux = config.linux.get_or_insert_default();
    linux.sysctls.insert("net.ipv4.ip_unprivileged_port_start".into(), "80".into());
    let options = linux.security_context.get_or_insert_default().namespace_options.get_or_insert_default();
    options.network = v1::NamespaceMode::Pod.into();
    options.pid = v1::NamespaceMode::Pod.into();
    let pod = run_pod(&mut client, config).await.expect("sandbox");
    let network = sandbox(&mut client, &pod).await.network.expect("network");
    assert_eq!(network.ip, "10.98.0.2");
    let mut main = container("main", "nc -ll -p 8080 -e /bin/cat");
    let security = main.linux.get_or_insert_default().security_context.get_or_insert_default();
    let options = security.namespace_options.get_or_insert_default();
    (options.network, options.pid) = (v1::NamespaceMode::Pod.into(), v1::NamespaceMode::Pod.into());
    let id = running(&mut client, &pod, main).await;
    let seen =
        exec(&mut client, &id, "hostname; cat /etc/hostname; ip -o -4 addr show eth0; cat /proc/1/comm", 10).await;
    let seen = String::from_utf8_lossy(&seen.expect("exec").stdout).into_owned();
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[..2] == ["web-0", "web-0"] && lines[2].contains("10.98.0.2/24"), "{seen}");
    assert_eq!(lines[3], "bosun-pod", "processes are shared");
    let listens = || {
        let (mut client, id) = (client.clone(), id.clone());
        async move {
            let sockets = exec(&mut client, &id, "cat /proc/net/tcp /proc/net/tcp6", 10).await.ok()?;
            String::from_utf8_lossy(&sockets.stdout).contains(":1F90 ").then_some(())
        }
    };
    until("port 8080 is open", listens).await;
    crate::streams::a_port_is_forwarded(&bed, &mut client, &pod).await;
    stop_pod(&mut client, &pod).await.expect("stopped");
    assert!(!bed.dir.path().join("ipam/net/10.98.0.2").exists(), "the address is free");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}
