//! How a pod starts.

use contract::node::NodeView;
use fakes::runtime::{ExecReply, Fault, Mutation, Program};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{follow, pod, run, secs, simple};

#[test]
fn a_pod_of_a_file_is_started_in_the_order_of_the_book() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.steps("web"), ["RunPodSandbox", "CreateContainer app", "StartContainer app"]);
        let events: Vec<String> = node.events("web");
        for reason in ["Pulled", "Created", "Started"] {
            assert!(node.has_event("web", reason), "{reason} in {events:?}");
        }
    });
}

#[test]
fn the_runtime_is_told_whose_sandbox_and_container_it_makes() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let uid = node.uid("web").unwrap();
        for m in node.world.runtime.mutations() {
            let (labels, attempt) = match m {
                Mutation::RunPodSandbox(r) => {
                    let c = r.config.unwrap();
                    (c.labels, c.metadata.unwrap().attempt)
                }
                Mutation::CreateContainer(r) => {
                    let c = r.config.unwrap();
                    assert_eq!(c.labels["io.kubernetes.container.name"], "app");
                    assert_eq!(c.log_path, "app/0.log");
                    assert_eq!(c.annotations["io.kubernetes.container.restartCount"], "0");
                    (c.labels, c.metadata.unwrap().attempt)
                }
                _ => continue,
            };
            assert_eq!(labels["io.kubernetes.pod.name"], "web-sim");
            assert_eq!(labels["io.kubernetes.pod.namespace"], "default");
            assert_eq!(labels["io.kubernetes.pod.uid"], uid.as_str());
            assert_eq!(attempt, 0);
        }
    });
}

#[test]
fn each_step_of_a_start_is_seen_in_the_status() {
    run(async |node| {
        for rpc in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
            node.world.runtime.inject(Fault::delay(rpc, secs(1)));
        }
        node.world.runtime.program("one", &[Program::exits(secs(3), 0)]);
        let seen = follow(&node, "web");
        let spec = "
  initContainers:
  - {name: one, image: 'tool:1'}
  containers:
  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(
            *seen.borrow(),
            [
                "Pending one=PodInitializing app=PodInitializing",
                "Pending one=running app=PodInitializing",
                "Pending one=ended 0 app=PodInitializing",
                "Running one=ended 0 app=running",
            ]
        );
    });
}

#[test]
fn the_sandbox_is_shown_as_ready_before_the_image_is_there() {
    run(async |node| {
        node.world.runtime.registry("slow:1", fakes::runtime::Pull::Succeeds(secs(30)));
        node.put("web.yaml", &pod("web", "\n  containers:\n  - {name: app, image: 'slow:1'}"));
        node.until("the sandbox is ready", secs(2), |n| n.condition("web", "PodReadyToStartContainers")).await;
        assert_eq!(node.state("web", "app"), "waiting:ContainerCreating");
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
    });
}

#[test]
fn init_containers_run_one_after_the_other_and_before_the_others() {
    run(async |node| {
        node.world.runtime.program("one", &[Program::exits(secs(2), 0)]);
        node.world.runtime.program("two", &[Program::exits(secs(3), 0)]);
        let spec = "
  initContainers:
  - {name: one, image: 'tool:1'}
  - {name: two, image: 'tool:1'}
  containers:
  - {name: app, image: 'app:1'}
  - {name: other, image: 'app:2'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(
            node.steps("web"),
            [
                "RunPodSandbox",
                "CreateContainer one",
                "StartContainer one",
                "CreateContainer two",
                "StartContainer two",
                "CreateContainer app",
                "StartContainer app",
                "CreateContainer other",
                "StartContainer other"
            ]
        );
        let calls = node.world.runtime.calls();
        let at = |rpc: &str, end: &str| calls.iter().find(|c| c.rpc == rpc && c.subject.ends_with(end)).unwrap().at.0;
        assert!(at("CreateContainer", "/two") - at("StartContainer", "/one") >= 2_000_000_000);
        assert!(at("CreateContainer", "/app") - at("StartContainer", "/two") >= 3_000_000_000);
    });
}

#[test]
fn a_sidecar_is_started_first_and_the_rest_waits_until_its_startup_probe_succeeds() {
    run(async |node| {
        let runtime = node.world.runtime.clone();
        let since = runtime.now();
        let clock = runtime.clone();
        node.world.runtime.on_exec(move |_| {
            let up = clock.now().nanos_since(since) > 5_000_000_000;
            ExecReply { exit_code: i32::from(!up), ..ExecReply::default() }
        });
        let spec = "
  initContainers:
  - name: side
    image: tool:1
    restartPolicy: Always
    startupProbe: {exec: {command: [up]}, periodSeconds: 1, failureThreshold: 30}
  containers:
  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("the sidecar runs", secs(2), |n| n.state("web", "side") == "running").await;
        sleep(secs(3)).await;
        assert!(node.instances("web", "app").is_empty(), "{}", node.picture());
        assert_eq!(node.state("web", "app"), "waiting:PodInitializing");
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.instances("web", "side").len(), 1);
    });
}

#[test]
fn a_post_start_hook_holds_up_the_next_container() {
    run(async |node| {
        node.world.runtime.on_exec(|_| ExecReply { takes: secs(4), ..ExecReply::default() });
        let spec = "
  containers:
  - {name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [hello]}}}}
  - {name: other, image: 'app:2'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(
            node.steps("web"),
            [
                "RunPodSandbox",
                "CreateContainer app",
                "StartContainer app",
                "ExecSync app",
                "CreateContainer other",
                "StartContainer other"
            ]
        );
        let calls = node.world.runtime.calls();
        let at = |rpc: &str, end: &str| calls.iter().find(|c| c.rpc == rpc && c.subject.ends_with(end)).unwrap().at.0;
        assert!(at("CreateContainer", "/other") - at("ExecSync", "/app") >= 4_000_000_000);
    });
}

#[test]
fn a_container_whose_post_start_hook_fails_is_killed_and_started_again() {
    run(async |node| {
        let runs = std::sync::atomic::AtomicUsize::new(0);
        node.world.runtime.on_exec(move |_| {
            let first = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            ExecReply { exit_code: i32::from(first), stderr: b"secret".to_vec(), ..ExecReply::default() }
        });
        let spec = "
  terminationGracePeriodSeconds: 7
  containers:
  - {name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [hello]}}}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("app was started twice", LIMIT, |n| n.instances("web", "app").len() == 2 && n.is_ready("web")).await;
        let events = node.events("web");
        assert!(node.has_event("web", "FailedPostStartHook"), "{events:?}");
        assert!(!events.iter().any(|e| e.contains("secret")), "the hook's output is in an event: {events:?}");
        let stops: Vec<i64> = node
            .world
            .runtime
            .mutations()
            .into_iter()
            .filter_map(|m| if let Mutation::StopContainer(r) = m { Some(r.timeout) } else { None })
            .collect();
        assert_eq!(stops, [7]);
    });
}

#[test]
fn twenty_pods_start_together() {
    run(async |node| {
        for i in 0..20 {
            node.put(&format!("p{i}.yaml"), &simple(&format!("p{i}"), ""));
        }
        node.until("all are ready", LIMIT, |n| (0..20).all(|i| n.is_ready(&format!("p{i}")))).await;
        assert!(node.count("StartContainer").values().all(|n| *n == 1));
        assert_eq!(node.count("StartContainer").len(), 20);
    });
}

#[test]
fn all_pods_together_may_have_the_processes_that_the_node_does_not_reserve() {
    let written = |reserve: bool, enforce: bool| {
        let limit = std::rc::Rc::new(std::cell::Cell::new(None));
        let told = limit.clone();
        actor::testing::run(1, |kernel| async move {
            let mut world = sim::World::new(&kernel);
            if reserve {
                let pids = |n| ("pid".to_owned(), model::quantity::Quantity::from_units(n));
                world.settings.config.allocatable.system_reserved = [pids(1000)].into();
                world.settings.config.allocatable.kube_reserved = [pids(500)].into();
            }
            if !enforce {
                world.settings.config.allocatable.enforce.clear();
            }
            let mut node = SimNode::down(world, &kernel);
            node.boot();
            let kubepods = |n: &SimNode| n.world.cgroups.values("/kubepods").and_then(|v| v.pids_max);
            node.until("kubepods is limited", LIMIT, |n| kubepods(n).is_some()).await;
            told.set(kubepods(&node));
        });
        limit.take()
    };
    assert_eq!(written(false, true), Some(32_768), "pid_max of the machine");
    assert_eq!(written(true, true), Some(31_268));
    assert_eq!(written(true, false), Some(32_768), "nothing is enforced");
}

#[test]
fn a_journal_that_hangs_makes_the_node_not_ready_after_its_limit_with_its_cause() {
    run(async |node| {
        let ready = |n: &SimNode| n.wiring().value::<NodeView>().get().ready.clone();
        node.until("the node is ready", LIMIT, |n| ready(n) == Some((true, String::new()))).await;
        node.put("a.yaml", &simple("a", ""));
        node.until("a is ready", LIMIT, |n| n.is_ready("a")).await;
        node.world.journal.set_hangs(true);
        node.put("b.yaml", &simple("b", ""));
        tokio::time::sleep(secs(50)).await;
        assert_eq!(ready(&node), Some((true, String::new())), "a minute is borne");
        tokio::time::sleep(secs(30)).await;
        let (is_ready, why) = ready(&node).unwrap();
        assert!(!is_ready && why.contains("blocking work of the class journal does not come back"), "{is_ready} {why}");
        node.world.journal.set_hangs(false);
        node.put("c.yaml", &simple("c", ""));
        node.until("the node is ready again", LIMIT, |n| ready(n) == Some((true, String::new()))).await;
        node.until("c is ready", LIMIT, |n| n.is_ready("c")).await;
    });
}

/// Edge 2 of node-and-resources 11: the API server gives a mirror pod a UID of its own, which is nobody's cgroup.
#[test]
fn the_cgroup_of_a_static_pod_has_the_uid_of_its_manifest() {
    actor::testing::run(1, |kernel| async move {
        let node = SimNode::start_in_cluster(&kernel);
        node.world.runtime.add_images(&["app:1"]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is told ready", LIMIT, |n| n.is_ready("web") && n.api_copy("web").is_some()).await;
        let (own, mirror) = (node.uid("web").unwrap(), node.api_copy("web").unwrap());
        let hash = mirror.metadata.annotations.unwrap().remove(model::pod::CONFIG_HASH).unwrap();
        assert_eq!(own.as_str(), hash);
        assert_ne!(mirror.metadata.uid.as_deref(), Some(own.as_str()));
        let mut paths = node.world.cgroups.paths();
        paths.retain(|path| path.contains("/pod"));
        assert_eq!(paths, [format!("/kubepods/besteffort/pod{own}")]);
    });
}
