//! How a pod ends.

use contract::cgroup::PodCgroupRow;
use contract::pod_manager::DesiredPod;
use contract::pod_worker::WorkerState;
use contract::probe::PodProbes;
use contract::runtime::Observed;
use contract::status::StatusEntry;
use contract::volume::PodVolumes;
use fakes::runtime::{ExecReply, Mutation, OnTerm, Program};
use ports::host::HostFs;
use sim::{LIMIT, SimNode};

use crate::{follow, pod, run, secs, simple};

fn stop_timeouts(node: &SimNode) -> Vec<i64> {
    let stop = |m: Mutation| if let Mutation::StopContainer(r) = m { Some(r.timeout) } else { None };
    node.world.runtime.mutations().into_iter().filter_map(stop).collect()
}

fn left_behind(node: &SimNode) -> Vec<String> {
    let folder = |path: std::path::PathBuf| {
        let entries = node.world.files.list_dir(&path).unwrap();
        entries.into_iter().map(|e| path.join(e.name).display().to_string()).collect::<Vec<_>>()
    };
    let mut left = folder(node.world.settings.root_dir.join("pods"));
    left.extend(folder(node.world.settings.config.pods.logs_dir.clone()));
    left.extend(folder(node.world.settings.container_logs_dir.clone()));
    left.extend(node.world.cgroups.paths().into_iter().filter(|p| p.contains("/pod")));
    left
}

#[test]
fn a_removed_manifest_stops_its_pod_and_leaves_nothing_behind() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().output(&["hello"])]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert!(!left_behind(&node).is_empty());
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        node.until("files and cgroups are gone", secs(180), |n| left_behind(n).is_empty()).await;
        let steps = node.steps("web");
        assert_eq!(steps[3..5], ["StopContainer app", "StopPodSandbox"], "{steps:?}");
        assert_eq!(stop_timeouts(&node), [30]);
    });
}

#[test]
fn the_pre_stop_hook_runs_first_and_its_time_is_taken_off_the_grace() {
    run(async |node| {
        node.world.runtime.on_exec(|_| ExecReply { takes: secs(4), ..ExecReply::default() });
        let spec = "
  terminationGracePeriodSeconds: 20
  containers:
  - {name: app, image: 'app:1', lifecycle: {preStop: {exec: {command: [bye]}}}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        let steps = node.steps("web");
        assert_eq!(steps[3..6], ["ExecSync app", "StopContainer app", "StopPodSandbox"], "{steps:?}");
        assert_eq!(stop_timeouts(&node), [16]);
    });
}

#[test]
fn a_pre_stop_hook_that_hangs_costs_no_more_than_the_grace() {
    run(async |node| {
        node.world.runtime.on_exec(|_| ExecReply { takes: secs(4000), ..ExecReply::default() });
        let spec = "
  terminationGracePeriodSeconds: 10
  containers:
  - {name: app, image: 'app:1', lifecycle: {preStop: {exec: {command: [bye]}}}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("app is stopped", secs(14), |n| n.running_ids().is_empty()).await;
        assert_eq!(stop_timeouts(&node), [2]);
    });
}

#[test]
fn a_process_that_ignores_the_signal_is_killed_after_the_grace() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Ignore)]);
        let seen = follow(&node, "web");
        node.put("web.yaml", &simple("web", "\n  terminationGracePeriodSeconds: 8"));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("app is stopped", secs(12), |n| n.running_ids().is_empty()).await;
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        assert_eq!(seen.borrow().last().unwrap(), "Running app=ended 137");
    });
}

#[test]
fn sidecars_stop_after_the_containers_in_reverse_order() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(3), 0))]);
        node.world.runtime.program("two", &[Program::forever().on_term(OnTerm::Exit(secs(2), 0))]);
        let spec = "
  initContainers:
  - {name: one, image: 'tool:1', restartPolicy: Always}
  - {name: two, image: 'tool:1', restartPolicy: Always}
  containers:
  - {name: app, image: 'app:1'}
  - {name: other, image: 'app:2'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let before = node.steps("web").len();
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        let mut steps = node.steps("web").split_off(before);
        steps[..2].sort();
        let want =
            ["StopContainer app", "StopContainer other", "StopContainer two", "StopContainer one", "StopPodSandbox"];
        assert_eq!(steps[..5], want, "{steps:?}");
        let at = |end: &str| {
            let calls = node.world.runtime.calls();
            calls.iter().find(|c| c.rpc == "StopContainer" && c.subject.ends_with(end)).unwrap().at.0
        };
        assert!(at("/two") - at("/app") >= 3_000_000_000, "the last sidecar waits for the slowest container");
        assert!(at("/one") - at("/two") >= 2_000_000_000, "the first sidecar waits for the second");
        assert!(stop_timeouts(&node)[2..].iter().all(|t| *t < 30), "{:?}", stop_timeouts(&node));
    });
}

#[test]
fn the_last_status_of_a_stopped_pod_tells_how_its_containers_ended() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(1), 5))]);
        let seen = follow(&node, "web");
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        // A static pod never reaches a terminal phase by being stopped (pod-lifecycle 9.3).
        assert_eq!(seen.borrow().last().unwrap(), "Running app=ended 5");
    });
}

#[test]
fn a_pod_that_is_removed_while_it_starts_is_stopped_and_gone() {
    for (what, wait_ms) in [("at once", 0), ("a little later", 20), ("while the sandbox is made", 500)] {
        run(async |node| {
            node.world.runtime.inject(fakes::runtime::Fault::delay("RunPodSandbox", secs(1)));
            node.put("web.yaml", &simple("web", ""));
            tokio::time::sleep(std::time::Duration::from_millis(wait_ms)).await;
            node.remove("web.yaml");
            node.until(what, LIMIT, |n| n.is_gone("web") && n.running_ids().is_empty()).await;
            node.until(what, secs(180), |n| left_behind(n).is_empty()).await;
        });
    }
}

#[test]
fn boards_forget_pods_that_are_gone() {
    run(async |node| {
        for i in 0..5 {
            let name = format!("p{i}");
            let probed = "\n  containers:\n  - {name: app, image: 'app:1', livenessProbe: {exec: {command: [ok]}}}";
            node.put(&format!("{name}.yaml"), &pod(&name, probed));
        }
        node.until("all are ready", LIMIT, |n| (0..5).all(|i| n.is_ready(&format!("p{i}")))).await;
        for i in 0..5 {
            node.remove(&format!("p{i}.yaml"));
        }
        node.until("all are gone", LIMIT, |n| (0..5).all(|i| n.is_gone(&format!("p{i}")))).await;
        tokio::time::sleep(secs(200)).await;
        let w = node.wiring();
        let rows = [
            w.board::<DesiredPod>().snapshot().len(),
            w.board::<WorkerState>().snapshot().len(),
            w.board::<StatusEntry>().snapshot().len(),
            w.board::<Observed>().snapshot().len(),
            w.board::<PodProbes>().snapshot().len(),
            w.board::<PodVolumes>().snapshot().len(),
            w.board::<PodCgroupRow>().snapshot().len(),
        ];
        assert_eq!(rows, [0; 7]);
        let actors = node.kernel.directory().actors();
        assert!(!actors.iter().any(|a| a.name.starts_with("pod-worker/")), "{actors:?}");
    });
}
