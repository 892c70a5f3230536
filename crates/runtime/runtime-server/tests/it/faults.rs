//! What goes wrong, and stays with the pod that it went wrong with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cri_api::v1;
use rustix::process::{Signal, kill_process};

use crate::bed::{Bed, until};
use crate::on_runc::{
    Client, container, create, exited, remove_pod, run_pod, running, sandbox, start, status, stop_pod, tracing,
};

async fn stop(client: &mut Client, id: &str, timeout: i64) {
    let request = v1::StopContainerRequest { container_id: id.to_owned(), timeout };
    client.stop_container(request).await.expect("stopped");
}

/// Waits until a start is on its way: its log is open, the OCI runtime has begun (or the first cgroup is made), the last cgroup is made.
async fn begun(bed: &Bed, stage: usize, pod: &str, name: &str, id: &str) {
    let cgroup = |controller: &str| PathBuf::from(format!("/sys/fs/cgroup/{controller}{}/{id}", bed.cgroup));
    let stages = [
        vec![bed.logs(pod).join(name)],
        vec![bed.dir.path().join("run/oci").join(id), cgroup("cpu")],
        vec![cgroup("pids")],
    ];
    let there = || async { stages[stage].iter().any(|path| path.exists()).then_some(()) };
    until("the start is on its way", there).await;
}

/// By the supervisor itself, and by `runc`.
const BOTH: [fn(&str, &str) -> v1::ContainerConfig; 2] = [container, tracing];

async fn gone(bed: &Bed, client: &mut Client, pods: &[&str]) {
    for pod in pods {
        stop_pod(client, pod).await.expect("stopped");
        remove_pod(client, pod).await.expect("removed");
    }
    // The OCI runtime may still forget a container that nobody waits for any more.
    until("their processes end", || async { bed.supervisors().is_empty().then_some(()) }).await;
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[tokio::test]
async fn a_record_that_cannot_be_read_ends_its_own_pod_and_nothing_else() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let spoiled = run_pod(&mut client, bed.pod("spoiled")).await.expect("sandbox");
    running(&mut client, &spoiled, container("main", "exec sleep 1000")).await;
    create(&mut client, &spoiled, container("never", "true")).await.expect("created");
    let good = run_pod(&mut client, bed.pod("good")).await.expect("sandbox");
    let mut large = container("main", "exec sleep 1000");
    large.envs = (0..16).map(|n| v1::KeyValue { key: format!("K{n}"), value: vec![b'x'; 90_000] }).collect();
    let id = running(&mut client, &good, large).await;
    let lost = running(&mut client, &good, container("lost", "exec sleep 1000")).await;
    bed.kill();
    let pods = bed.dir.path().join("lib/pods");
    fs::write(pods.join(&spoiled).join("sandbox.json"), "{\"id\": 1").expect("spoiled");
    fs::write(pods.join(&good).join("containers").join(&lost).join("container.json"), "").expect("spoiled");
    bed.start();
    let mut client = bed.client().await;
    assert_eq!(status(&mut client, &id).await.state(), v1::ContainerState::ContainerRunning);
    let all = client.list_pod_sandbox(v1::ListPodSandboxRequest { filter: None }).await.expect("list").into_inner();
    assert_eq!(all.items.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), [good.as_str()]);
    assert!(!pods.join(&good).join("containers").join(&lost).exists());
    let none = || async { bed.remains().iter().all(|r| !r.contains(&spoiled)).then_some(()) };
    until("nothing of the spoiled pod is left", none).await;
    // Its name is free again.
    let again = run_pod(&mut client, bed.pod("spoiled")).await.expect("sandbox");
    gone(&bed, &mut client, &[&good, &again]).await;
}

#[tokio::test]
async fn pods_that_have_to_be_taken_down_keep_nobody_waiting_for_a_network() {
    let mut bed = Bed::with_bridge();
    let mut client = bed.client().await;
    let on_bridge = |name: &str| {
        let mut config = bed.pod(name);
        let security = config.linux.get_or_insert_default().security_context.get_or_insert_default();
        security.namespace_options.get_or_insert_default().network = v1::NamespaceMode::Pod.into();
        config
    };
    let (half, spoiled) = (on_bridge("half"), on_bridge("spoiled"));
    let half = run_pod(&mut client, half).await.expect("sandbox");
    let spoiled = run_pod(&mut client, spoiled).await.expect("sandbox");
    let pods = bed.dir.path().join("lib/pods");
    let record = pods.join(&half).join("sandbox.json");
    let is_ready = || async { fs::read_to_string(&record).ok()?.contains("\"ready\"").then_some(()) };
    until("the record says that it is ready", is_ready).await;
    bed.kill();
    let text = fs::read_to_string(&record).expect("record").replace("\"ready\"", "\"starting\"");
    fs::write(&record, text).expect("as it was before the pod was ready");
    fs::remove_file(bed.dir.path().join("run").join(&half).join("ready.json")).expect("there");
    fs::write(pods.join(&spoiled).join("sandbox.json"), "{").expect("spoiled");
    // The agent that gives the network is a pod that is not there yet.
    let plugins = bed.dir.path().join("plugins");
    fs::create_dir(&plugins).expect("folder");
    fs::write(plugins.join("bridge"), "#!/bin/sh\nexec sleep 40\n").expect("plugin");
    fs::set_permissions(plugins.join("bridge"), fs::Permissions::from_mode(0o755)).expect("mode");
    let since = Instant::now();
    bed.start();
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    let mut client = bed.client().await;
    assert_eq!(sandbox(&mut client, &half).await.state(), v1::PodSandboxState::SandboxNotready);
    let agent = run_pod(&mut client, bed.pod("agent")).await.expect("sandbox");
    running(&mut client, &agent, container("main", "exec sleep 1000")).await;
    assert!(pods.join(&half).exists() && pods.join(&spoiled).exists(), "the network is not taken back yet");
    bed.kill();
    fs::remove_file(plugins.join("bridge")).expect("removed");
    bed.start();
    let mut client = bed.client().await;
    let gone_by_now = || async { (!pods.join(&half).exists() && !pods.join(&spoiled).exists()).then_some(()) };
    until("both are gone", gone_by_now).await;
    assert!(!bed.dir.path().join("ipam/net/10.98.0.2").exists(), "the address is free");
    gone(&bed, &mut client, &[&agent]).await;
}

#[tokio::test]
async fn a_container_over_whose_making_the_server_died_is_gone_and_its_name_free() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let mut config = container("made", "exec sleep 1000");
    let security = config.linux.get_or_insert_default().security_context.get_or_insert_default();
    security.run_as_username = "web".into();
    let made = create(&mut client, &pod, config).await.expect("created");
    let half = create(&mut client, &pod, container("half", "exec sleep 1000")).await.expect("created");
    bed.kill();
    // As it is before the last step of the making.
    let config = |id: &str| bed.dir.path().join("run").join(&pod).join("c").join(id).join("config.json");
    assert!(config(&made).exists());
    fs::remove_file(config(&half)).expect("there");
    bed.start();
    let mut client = bed.client().await;
    let all = client.list_containers(v1::ListContainersRequest { filter: None }).await.expect("list").into_inner();
    assert_eq!(all.containers.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), [made.as_str()]);
    let user = status(&mut client, &made).await.user.and_then(|u| u.linux).map(|u| (u.uid, u.gid));
    assert_eq!(user, Some((1000, 1001)), "who it is to be");
    let left: Vec<_> = bed.remains().into_iter().filter(|r| r.contains(&half)).collect();
    assert_eq!(left, Vec::<String>::new());
    start(&mut client, &made).await.expect("what was made is there");
    running(&mut client, &pod, container("half", "exec sleep 1000")).await;
    gone(&bed, &mut client, &[&pod]).await;
}

// The client has threads of its own, as it has to answer while the server's end is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_serves_a_folder_and_ends_in_time_though_somebody_listens() {
    let mut bed = Bed::new();
    let words = bed.second();
    assert!(words.contains("serves this folder and holds its lock"), "{words}");
    assert!(words.contains("lib/lock"), "{words}");
    let mut client = bed.client().await;
    let mut events = client.get_container_events(v1::GetEventsRequest {}).await.expect("events").into_inner();
    let took = bed.end();
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(matches!(events.message().await, Ok(None)), "the stream has an end");
    bed.start();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_starts_while_the_server_dies_runs_or_can_be_started() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    for (round, by_runc) in (0..6).flat_map(|round| [(round, false), (round, true)]) {
        let name = format!("c{round}-{by_runc}");
        let id =
            create(&mut client, &pod, BOTH[usize::from(by_runc)](&name, "exec sleep 1000")).await.expect("created");
        let asked = {
            let (mut client, id) = (client.clone(), id.clone());
            tokio::spawn(async move { start(&mut client, &id).await })
        };
        begun(&bed, round / 2, "p", &name, &id).await;
        bed.kill();
        let _ = asked.await.expect("no panic");
        bed.start();
        client = bed.client().await;
        match round % 2 {
            0 => {
                let runs = || {
                    let (mut client, id) = (client.clone(), id.clone());
                    async move {
                        let state = status(&mut client, &id).await.state();
                        assert_ne!(state, v1::ContainerState::ContainerExited);
                        if state == v1::ContainerState::ContainerCreated {
                            // It may be being started.
                            let _ = start(&mut client, &id).await;
                        }
                        (state == v1::ContainerState::ContainerRunning).then_some(())
                    }
                };
                until("it runs", runs).await;
                stop(&mut client, &id, 0).await;
                assert_eq!(exited(&mut client, &id).await.exit_code, 137);
            }
            _ => {
                stop(&mut client, &id, 0).await;
                let state = status(&mut client, &id).await.state();
                assert_ne!(state, v1::ContainerState::ContainerRunning);
            }
        }
    }
    gone(&bed, &mut client, &[&pod]).await;
}

/// Where a process's memory is accounted: the line of its cgroup, and the folder that hierarchy is mounted on.
fn memory_group(pid: impl std::fmt::Display) -> (String, PathBuf) {
    let all = fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("cgroups");
    let by = |mark: &str| all.lines().find_map(|line| line.split_once(mark)).map(|(_, path)| path.to_owned());
    match by(":memory:") {
        Some(path) => (path, "/sys/fs/cgroup/memory".into()),
        None => (by("0::").expect("version 2"), "/sys/fs/cgroup".into()),
    }
}

#[tokio::test]
async fn a_supervisor_that_a_dead_server_left_outside_of_its_cgroup_is_moved_by_the_next_one() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    let supervisor = bed.supervisor_of(&pod).as_raw_nonzero();
    let (there, _) = memory_group(supervisor);
    assert!(there.ends_with(&pod), "a container is started by who is in it: {there}");
    bed.kill();
    // Where it was born: as this process and the server.
    let (born, hierarchy) = memory_group(std::process::id());
    let procs = hierarchy.join(born.trim_start_matches('/')).join("cgroup.procs");
    fs::write(procs, supervisor.to_string()).expect("moved");
    assert_eq!(memory_group(supervisor).0, born);
    bed.start();
    let mut client = bed.client().await;
    assert_eq!(memory_group(supervisor).0, there);
    stop_pod(&mut client, &pod).await.expect("stopped");
    remove_pod(&mut client, &pod).await.expect("removed");
    assert_eq!(bed.remains(), Vec::<String>::new());
}

#[tokio::test]
async fn a_supervisor_that_does_not_answer_is_left_alone_until_it_does() {
    let mut bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    let other = run_pod(&mut client, bed.pod("other")).await.expect("sandbox");
    bed.kill();
    let supervisor = bed.supervisor_of(&pod);
    kill_process(supervisor, Signal::STOP).expect("stopped");
    let since = Instant::now();
    bed.start();
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    let mut client = bed.client().await;
    assert_eq!(sandbox(&mut client, &pod).await.state(), v1::PodSandboxState::SandboxReady);
    assert_eq!(status(&mut client, &id).await.state(), v1::ContainerState::ContainerRunning);
    running(&mut client, &other, container("main", "exec sleep 1000")).await;
    kill_process(supervisor, Signal::CONT).expect("goes on");
    stop(&mut client, &id, 0).await;
    let ended = exited(&mut client, &id).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "Error"));
    gone(&bed, &mut client, &[&pod, &other]).await;
}

#[tokio::test]
async fn a_container_is_killed_also_where_its_supervisor_does_not_answer() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    let pod = run_pod(&mut client, bed.pod("p")).await.expect("sandbox");
    let id = running(&mut client, &pod, container("main", "exec sleep 1000")).await;
    kill_process(bed.supervisor_of(&pod), Signal::STOP).expect("stopped");
    stop(&mut client, &id, 0).await;
    let ended = status(&mut client, &id).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "SupervisorMute"));
    gone(&bed, &mut client, &[&pod]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_starts_while_its_supervisor_dies_does_not_run_on() {
    let bed = Bed::new();
    let mut client = bed.client().await;
    for (round, by_runc) in (0..3).flat_map(|round| [(round, false), (round, true)]) {
        let name = format!("p{round}-{by_runc}");
        let pod = run_pod(&mut client, bed.pod(&name)).await.expect("sandbox");
        let id =
            create(&mut client, &pod, BOTH[usize::from(by_runc)]("main", "exec sleep 1000")).await.expect("created");
        let supervisor = bed.supervisor_of(&pod);
        let asked = {
            let (mut client, id) = (client.clone(), id.clone());
            tokio::spawn(async move { start(&mut client, &id).await })
        };
        begun(&bed, round, &name, "main", &id).await;
        kill_process(supervisor, Signal::KILL).expect("killed");
        let _ = asked.await.expect("no panic");
        let over = || {
            let (mut client, pod) = (client.clone(), pod.clone());
            async move {
                let state = sandbox(&mut client, &pod).await.state();
                (state == v1::PodSandboxState::SandboxNotready).then_some(())
            }
        };
        until("the pod is not ready", over).await;
        stop(&mut client, &id, 0).await;
        assert_ne!(status(&mut client, &id).await.state(), v1::ContainerState::ContainerRunning);
        gone(&bed, &mut client, &[&pod]).await;
    }
}
