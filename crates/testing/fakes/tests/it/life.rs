use cri_api::v1;
use fakes::FakeRuntime;
use fakes::runtime::{ExecReply, Mutation, OnTerm, Program, samples};
use ports::runtime::RuntimeCode;
use tokio::time::{Instant, sleep};

use super::{create, pod, run_sandbox, secs, start, status, stop};

#[tokio::test(start_paused = true)]
async fn a_container_goes_from_created_over_running_to_exited() {
    let p = pod().await;
    let c = &*p.client;
    let s = status(c, &p.app).await.unwrap();
    assert_eq!((s.state(), s.started_at), (v1::ContainerState::ContainerCreated, 0));
    start(c, &p.app).await.unwrap();
    let s = status(c, &p.app).await.unwrap();
    assert_eq!(s.state(), v1::ContainerState::ContainerRunning);
    assert!(s.started_at > s.created_at);
    assert!(p.fake.exit(&p.app, 3));
    let s = status(c, &p.app).await.unwrap();
    assert_eq!((s.state(), s.exit_code, s.reason.as_str()), (v1::ContainerState::ContainerExited, 3, "Error"));
    assert!(!p.fake.exit(&p.app, 4), "a dead container cannot exit again");
    assert_eq!(start(c, &p.app).await.unwrap_err().code, RuntimeCode::Unknown);
}

#[tokio::test(start_paused = true)]
async fn programs_follow_the_attempt() {
    let p = pod().await;
    let c = &*p.client;
    p.fake.program("app", &[Program::exits(secs(5), 1), Program::exits(secs(50), 0)]);
    start(c, &p.app).await.unwrap();
    sleep(secs(6)).await;
    assert_eq!(status(c, &p.app).await.unwrap().exit_code, 1);
    let second = create(c, &p.sandbox, "app", 1).await.unwrap();
    start(c, &second).await.unwrap();
    sleep(secs(6)).await;
    assert_eq!(status(c, &second).await.unwrap().state(), v1::ContainerState::ContainerRunning);
    sleep(secs(50)).await;
    assert_eq!(status(c, &second).await.unwrap().reason, "Completed");
    assert_eq!(p.fake.container("web", "app").unwrap().id, second, "the newest one");
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_leaves_an_exited_container() {
    let p = pod().await;
    p.fake.program("app", &[Program::cannot_start("exec: \"nope\": not found")]);
    let e = start(&*p.client, &p.app).await.unwrap_err();
    assert!(e.message.contains("not found"));
    let s = status(&*p.client, &p.app).await.unwrap();
    assert_eq!((s.exit_code, s.reason.as_str()), (128, "StartError"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_process_and_kills_it_after_the_grace() {
    let rows = [
        ("obeys at once", OnTerm::Exit(secs(0), 143), 30, 0, 143),
        ("takes a while", OnTerm::Exit(secs(3), 0), 30, 3, 0),
        ("too slow", OnTerm::Exit(secs(31), 0), 30, 30, 137),
        ("deaf", OnTerm::Ignore, 2, 2, 137),
        ("no grace", OnTerm::Exit(secs(0), 0), 0, 0, 137),
    ];
    for (name, on_term, grace, takes, code) in rows {
        let p = pod().await;
        p.fake.program("app", &[Program::forever().on_term(on_term)]);
        start(&*p.client, &p.app).await.unwrap();
        let before = Instant::now();
        stop(&*p.client, &p.app, grace).await.unwrap();
        assert_eq!(before.elapsed().as_secs(), takes, "{name}");
        assert_eq!(status(&*p.client, &p.app).await.unwrap().exit_code, code, "{name}");
        stop(&*p.client, &p.app, grace).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_stops_with_its_containers_and_is_removed_only_then() {
    let p = pod().await;
    let c = &*p.client;
    start(c, &p.app).await.unwrap();
    let id = || p.sandbox.clone();
    let of = || v1::PodSandboxStatusRequest { pod_sandbox_id: id(), verbose: false };
    let before = c.pod_sandbox_status(of()).await.unwrap().status.unwrap();
    assert!(!before.network.unwrap().ip.is_empty());
    let remove = || v1::RemovePodSandboxRequest { pod_sandbox_id: id() };
    assert!(c.remove_pod_sandbox(remove()).await.unwrap_err().message.contains("not fully stopped"));
    c.stop_pod_sandbox(v1::StopPodSandboxRequest { pod_sandbox_id: id() }).await.unwrap();
    assert_eq!(status(c, &p.app).await.unwrap().exit_code, 137);
    let after = c.pod_sandbox_status(of()).await.unwrap().status.unwrap();
    assert_eq!((after.state(), after.network.unwrap().ip.as_str()), (v1::PodSandboxState::SandboxNotready, ""));
    c.remove_pod_sandbox(remove()).await.unwrap();
    c.remove_pod_sandbox(remove()).await.unwrap();
    assert!(c.pod_sandbox_status(of()).await.unwrap_err().is_not_found());
    assert!(status(c, &p.app).await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn names_are_reserved_and_sandboxes_must_run() {
    let p = pod().await;
    let c = &*p.client;
    assert!(run_sandbox(c, "web", 0).await.unwrap_err().message.contains("is reserved for"));
    assert!(create(c, &p.sandbox, "app", 0).await.unwrap_err().message.contains("is reserved for"));
    p.fake.kill_sandbox(&p.sandbox);
    assert!(create(c, &p.sandbox, "other", 0).await.unwrap_err().message.contains("no running task"));
    run_sandbox(c, "web", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_network_only_host_network_pods_start() {
    let fake = FakeRuntime::default();
    fake.set_network_ready(false);
    let client = fake.client();
    assert!(run_sandbox(&*client, "web", 0).await.unwrap_err().message.contains("cni plugin not initialized"));
    let mut config = samples::sandbox("host", 0);
    let namespaces = v1::NamespaceOption { network: v1::NamespaceMode::Node.into(), ..Default::default() };
    let security = v1::LinuxSandboxSecurityContext { namespace_options: Some(namespaces), ..Default::default() };
    config.linux = Some(v1::LinuxPodSandboxConfig { security_context: Some(security), ..Default::default() });
    let request = v1::RunPodSandboxRequest { config: Some(config), runtime_handler: String::new() };
    client.run_pod_sandbox(request).await.unwrap();
    let conditions = client.status(false).await.unwrap().status.unwrap().conditions;
    assert_eq!(conditions.iter().map(|c| c.status).collect::<Vec<_>>(), [true, false]);
}

#[tokio::test(start_paused = true)]
async fn commands_run_only_in_running_containers_and_end_with_their_timeout() {
    let p = pod().await;
    let request = |timeout| v1::ExecSyncRequest { container_id: p.app.clone(), cmd: vec!["check".to_owned()], timeout };
    assert!(p.client.exec_sync(request(1)).await.is_err());
    start(&*p.client, &p.app).await.unwrap();
    p.fake.on_exec(|call| {
        assert_eq!((call.pod.as_str(), call.container.as_str()), ("web", "app"));
        ExecReply { exit_code: 7, takes: secs(5), ..ExecReply::default() }
    });
    assert_eq!(p.client.exec_sync(request(10)).await.unwrap().exit_code, 7);
    let before = Instant::now();
    assert_eq!(p.client.exec_sync(request(1)).await.unwrap_err().code, RuntimeCode::DeadlineExceeded);
    assert_eq!(before.elapsed(), secs(1));
}

#[tokio::test(start_paused = true)]
async fn lists_filter_by_state_sandbox_and_label() {
    let p = pod().await;
    let c = &*p.client;
    run_sandbox(c, "db", 0).await.unwrap();
    p.fake.kill_sandbox(&p.sandbox);
    let by = |f: v1::PodSandboxFilter| c.list_pod_sandbox(v1::ListPodSandboxRequest { filter: Some(f) });
    let ready = v1::PodSandboxStateValue { state: v1::PodSandboxState::SandboxReady.into() };
    let ready = by(v1::PodSandboxFilter { state: Some(ready), ..Default::default() }).await.unwrap().items;
    assert_eq!(ready.iter().map(|s| s.metadata.as_ref().unwrap().name.as_str()).collect::<Vec<_>>(), ["db"]);
    let label = [("io.kubernetes.pod.uid".to_owned(), "uid-web".to_owned())].into();
    let web = by(v1::PodSandboxFilter { label_selector: label, ..Default::default() }).await.unwrap().items;
    assert_eq!(web.len(), 1);
    let none = v1::ContainerFilter { pod_sandbox_id: "other".to_owned(), ..Default::default() };
    let none = c.list_containers(v1::ListContainersRequest { filter: Some(none) }).await.unwrap();
    assert_eq!(none.containers, []);
}

#[tokio::test(start_paused = true)]
async fn requests_that_change_something_are_kept_in_order() {
    let p = pod().await;
    start(&*p.client, &p.app).await.unwrap();
    status(&*p.client, &p.app).await.unwrap();
    stop(&*p.client, &p.app, 2).await.unwrap();
    let mutations = p.fake.mutations();
    let names: Vec<_> = mutations.iter().map(Mutation::rpc).collect();
    assert_eq!(names, ["RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer"]);
    let Mutation::StopContainer(stop) = &mutations[3] else { panic!("{:?}", mutations[3]) };
    assert_eq!((stop.container_id.as_str(), stop.timeout), (p.app.as_str(), 2));
    let calls = p.fake.calls();
    assert!(calls.iter().all(|c| c.answered.is_some()));
    assert_eq!(calls.last().unwrap().subject, "ns/web/app");
}

#[tokio::test(start_paused = true)]
async fn two_runs_give_the_same_log() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let p = pod().await;
        p.fake.program("app", &[Program::exits(secs(1), 2)]);
        start(&*p.client, &p.app).await.unwrap();
        sleep(secs(2)).await;
        runs.push((p.fake.sandboxes(), p.fake.containers(), p.fake.mutations()));
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn messages_and_logs_land_where_they_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let fake = FakeRuntime::default();
    fake.add_images(&["app:1"]);
    fake.program("app:1", &[Program::exits(secs(1), 1).message("bye").output(&["line one"])]);
    let client = fake.client();
    let sandbox = run_sandbox(&*client, "web", 0).await.unwrap();
    let mut config = samples::container("web", "app", "app:1", 0);
    let host_path = dir.path().join("message").to_str().unwrap().to_owned();
    config.mounts.push(v1::Mount {
        container_path: "/dev/termination-log".to_owned(),
        host_path: host_path.clone(),
        ..Default::default()
    });
    let request = v1::CreateContainerRequest { pod_sandbox_id: sandbox, config: Some(config), sandbox_config: None };
    let id = client.create_container(request).await.unwrap().container_id;
    start(&*client, &id).await.unwrap();
    sleep(secs(2)).await;
    assert_eq!(std::fs::read_to_string(host_path).unwrap(), "bye");
}
