//! The daemon is killed and started again.

use contract::pod_worker::WorkerPhase;
use fakes::runtime::samples;
use fakes::runtime::{OnTerm, Program, Pull};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, run, secs, simple, times};

async fn ten_pods(node: &SimNode) -> Vec<String> {
    for i in 0..10 {
        node.put(&format!("p{i}.yaml"), &simple(&format!("p{i}"), ""));
    }
    node.until("all are ready", LIMIT, |n| (0..10).all(|i| n.is_ready(&format!("p{i}")))).await;
    node.running_ids()
}

#[test]
fn a_killed_daemon_finds_its_pods_and_touches_nothing() {
    run(async |mut node| {
        let ids = ten_pods(&node).await;
        sleep(secs(30)).await;
        node.world.runtime.forget_calls();
        node.restart().await;
        node.until("all are known as ready", secs(2), |n| (0..10).all(|i| n.is_ready(&format!("p{i}")))).await;
        sleep(secs(300)).await;
        assert_eq!(node.running_ids(), ids);
        let touched: Vec<String> = node.transcript();
        assert!(touched.is_empty(), "{touched:?}");
        assert!(node.restarts().values().all(|n| *n == 0));
    });
}

#[test]
fn readiness_never_flips_over_a_restart_of_the_daemon() {
    run(async |mut node| {
        let spec = "
  containers:
  - {name: app, image: 'app:1', readinessProbe: {exec: {command: [ready]}, periodSeconds: 10, initialDelaySeconds: 20}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        sleep(secs(30)).await;
        node.restart().await;
        node.until("there is a status", secs(2), |n| n.phase("web") == "Running").await;
        for _ in 0..400 {
            assert!(node.is_ready("web"), "{}", node.picture());
            sleep(std::time::Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn the_start_time_of_a_pod_survives() {
    run(async |mut node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        sleep(secs(60)).await;
        let before = node.status("web").unwrap().start_time.clone().unwrap();
        node.restart().await;
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.status("web").unwrap().start_time.clone().unwrap(), before);
    });
}

#[test]
fn crash_back_off_and_restart_counts_go_on() {
    run(async |mut node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 1)]);
        node.put("loop.yaml", &simple("loop", ""));
        node.until("five starts", secs(200), |n| times(n, "StartContainer", "/app").len() == 5).await;
        sleep(secs(10)).await;
        node.restart().await;
        node.until("the back-off is known", secs(5), |n| n.state("loop", "app") == "waiting:CrashLoopBackOff").await;
        assert_eq!(node.container_status("loop", "app").unwrap().restart_count, 4);
        node.until("the sixth start", secs(200), |n| times(n, "StartContainer", "/app").len() == 6).await;
        let at = times(&node, "StartContainer", "/app");
        let wait = at[5] - at[4] - 1.0;
        assert!((80.0..81.0).contains(&wait), "waited {wait}");
        assert_eq!(node.instances("loop", "app").last().unwrap().attempt, 5);
    });
}

#[test]
fn a_pod_that_was_removed_meanwhile_is_stopped() {
    run(async |mut node| {
        let ids = ten_pods(&node).await;
        let doomed = node.running_id("p3", "app").unwrap();
        node.kill().await;
        node.remove("p3.yaml");
        sleep(secs(5)).await;
        node.boot();
        node.until("p3 is gone", LIMIT, |n| n.is_gone("p3")).await;
        let left: Vec<String> = ids.into_iter().filter(|id| *id != doomed).collect();
        assert_eq!(node.running_ids(), left);
        sleep(secs(120)).await;
        assert_eq!(node.running_ids(), left);
    });
}

#[test]
fn a_pod_that_was_edited_meanwhile_is_replaced() {
    run(async |mut node| {
        ten_pods(&node).await;
        node.kill().await;
        node.put("p3.yaml", &simple("p3", "\n  terminationGracePeriodSeconds: 9"));
        node.boot();
        node.until("the new p3 is ready", LIMIT, |n| n.is_ready("p3") && n.running_ids().len() == 10).await;
        assert_eq!(node.workers("p3").len(), 1);
    });
}

#[test]
fn a_container_that_ended_meanwhile_is_restarted_once() {
    run(async |mut node| {
        ten_pods(&node).await;
        let id = node.running_id("p3", "app").unwrap();
        node.kill().await;
        node.world.runtime.exit(&id, 2);
        sleep(secs(5)).await;
        node.boot();
        node.until("p3 runs again", LIMIT, |n| n.is_ready("p3") && n.instances("p3", "app").len() == 2).await;
        assert_eq!(node.container_status("p3", "app").unwrap().restart_count, 1);
        let last = node.container_status("p3", "app").unwrap().last_state.unwrap().terminated.unwrap();
        assert_eq!(last.exit_code, 2);
    });
}

#[test]
fn a_daemon_killed_at_any_moment_of_a_start_makes_nothing_twice() {
    for wait_ms in [0, 5, 15, 30, 100, 900, 1100, 1900, 2100, 2900, 3100] {
        run(async |mut node| {
            for rpc in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
                node.world.runtime.inject(fakes::runtime::Fault::new(rpc, fakes::runtime::FaultKind::Late(secs(1))));
            }
            node.put("web.yaml", &simple("web", ""));
            sleep(std::time::Duration::from_millis(wait_ms)).await;
            node.restart().await;
            node.until("web is ready", secs(120), |n| n.is_ready("web")).await;
            node.world.runtime.clear_faults();
            sleep(secs(120)).await;
            assert!(node.is_ready("web"), "after {wait_ms} ms: {}", node.picture());
            assert_eq!(node.running_ids().len(), 1, "after {wait_ms} ms: {}", node.picture());
            let ready = node.world.runtime.sandboxes().iter().filter(|s| s.ready).count();
            assert_eq!(ready, 1, "after {wait_ms} ms: {}", node.picture());
        });
    }
}

#[test]
fn a_daemon_killed_while_it_stops_a_pod_goes_on_stopping_it() {
    run(async |mut node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(10), 0))]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("stopping", secs(5), |n| n.count("StopContainer").is_empty() && n.steps("web").len() == 4).await;
        node.restart().await;
        node.until("web is gone", LIMIT, |n| n.is_gone("web") && n.running_ids().is_empty()).await;
    });
}

#[test]
fn a_finished_pod_is_not_run_again_by_the_next_daemon() {
    run(async |mut node| {
        node.world.runtime.program("app", &[Program::exits(secs(2), 0)]);
        for policy in ["Never", "OnFailure"] {
            node.put(
                &format!("{policy}.yaml"),
                &simple(&policy.to_lowercase(), &format!("\n  restartPolicy: {policy}")),
            );
        }
        node.until("both succeeded", LIMIT, |n| n.phase("never") == "Succeeded" && n.phase("onfailure") == "Succeeded")
            .await;
        node.until("finished", LIMIT, |n| n.worker_phase("never") == Some(WorkerPhase::Finished)).await;
        sleep(secs(100)).await;
        node.restart().await;
        sleep(secs(200)).await;
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 2, "{}", node.picture());
        assert_eq!((node.phase("never"), node.phase("onfailure")), ("Succeeded".to_owned(), "Succeeded".to_owned()));
    });
}

#[test]
fn a_pod_of_nobody_is_stopped_and_nothing_desired_is_touched() {
    run(async |mut node| {
        let ids = ten_pods(&node).await;
        node.kill().await;
        let stranger = node.world.runtime.client();
        let config = samples::sandbox("stranger", 0);
        let made = stranger
            .run_pod_sandbox(cri_api::v1::RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() })
            .await
            .unwrap();
        let container = stranger
            .create_container(cri_api::v1::CreateContainerRequest {
                pod_sandbox_id: made.pod_sandbox_id,
                config: Some(samples::container("stranger", "c", "app:1", 0)),
                sandbox_config: Some(config),
            })
            .await
            .unwrap();
        let container_id = container.container_id;
        stranger.start_container(cri_api::v1::StartContainerRequest { container_id }).await.unwrap();
        assert_eq!(node.running_ids().len(), 11);
        node.boot();
        node.until("only ours run", LIMIT, |n| n.running_ids() == ids).await;
        node.until("its remains are collected", secs(200), |n| n.world.runtime.sandboxes().len() == 10).await;
        sleep(secs(60)).await;
        assert_eq!(node.running_ids(), ids);
    });
}

#[test]
fn nothing_is_stopped_while_the_folder_cannot_be_read_after_a_restart() {
    run(async |mut node| {
        let ids = ten_pods(&node).await;
        node.kill().await;
        // The first reading of the folder hangs: no source has spoken yet.
        node.fault("folder-source: stall(100s)@list#1");
        node.boot();
        sleep(secs(90)).await;
        assert_eq!(node.running_ids(), ids, "{}", node.picture());
        node.until("all are ready", secs(120), |n| (0..10).all(|i| n.is_ready(&format!("p{i}")))).await;
        assert_eq!(node.running_ids(), ids);
    });
}

#[test]
fn a_pull_that_the_dead_daemon_began_is_begun_again() {
    run(async |mut node| {
        node.world.runtime.registry("new:1", Pull::Succeeds(secs(20)));
        node.put("web.yaml", &pod("web", "\n  containers:\n  - {name: app, image: 'new:1'}"));
        node.until("the pull runs", secs(5), |n| n.world.runtime.count("PullImage") == 1).await;
        sleep(secs(5)).await;
        node.restart().await;
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
    });
}

#[test]
fn ten_kills_in_a_row_cost_no_container() {
    run(async |mut node| {
        let ids = ten_pods(&node).await;
        for i in 0..10 {
            sleep(std::time::Duration::from_millis(37 * i)).await;
            node.restart().await;
        }
        node.until("all are ready", LIMIT, |n| (0..10).all(|i| n.is_ready(&format!("p{i}")))).await;
        sleep(secs(60)).await;
        assert_eq!(node.running_ids(), ids);
    });
}

/// Everything that ran has ended, sandboxes and cgroups are gone, files are still there.
async fn reboot(node: &mut SimNode) {
    node.kill().await;
    for c in node.world.runtime.containers() {
        node.world.runtime.exit(&c.id, 255);
    }
    for s in node.world.runtime.sandboxes() {
        node.world.runtime.kill_sandbox(&s.id);
    }
    node.world.cgroups = std::sync::Arc::default();
    sleep(secs(30)).await;
    node.boot();
}

#[test]
fn after_a_reboot_pods_start_again_in_new_sandboxes_with_their_init_containers() {
    run(async |mut node| {
        node.world.runtime.program("one", &[Program::exits(secs(1), 0)]);
        let spec = "
  initContainers:
  - {name: one, image: 'tool:1'}
  - {name: side, image: 'tool:1', restartPolicy: Always}
  containers:
  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        reboot(&mut node).await;
        node.until("web is ready again", secs(120), |n| n.is_ready("web") && n.running_ids().len() == 2).await;
        let starts = node.count("StartContainer");
        assert!(["one", "side", "app"].iter().all(|c| starts[&format!("default/web-sim/{c}")] == 2), "{starts:?}");
        assert_eq!(node.container_status("web", "app").unwrap().restart_count, 1);
        assert_eq!(node.world.runtime.sandboxes().iter().filter(|s| s.ready).count(), 1);
    });
}

#[test]
fn after_a_reboot_a_pod_that_never_restarts_has_failed_and_a_finished_one_stays_finished() {
    run(async |mut node| {
        node.world.runtime.program("quick", &[Program::exits(secs(1), 0)]);
        node.put("once.yaml", &simple("once", "\n  restartPolicy: Never"));
        let job = "\n  restartPolicy: Never\n  containers:\n  - {name: quick, image: 'app:1'}";
        node.put("job.yaml", &pod("job", job));
        node.until("as they should be", LIMIT, |n| n.is_ready("once") && n.phase("job") == "Succeeded").await;
        reboot(&mut node).await;
        node.until("it failed", LIMIT, |n| n.phase("once") == "Failed").await;
        sleep(secs(200)).await;
        assert_eq!(node.phase("job"), "Succeeded");
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 2);
    });
}

#[test]
fn a_pod_that_is_being_replaced_when_the_daemon_dies_is_replaced_in_the_end() {
    run(async |mut node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(20), 0))]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.put("web.yaml", &simple("web", "\n  terminationGracePeriodSeconds: 25"));
        sleep(secs(5)).await;
        node.restart().await;
        node.until("only the new one runs", LIMIT, |n| n.is_ready("web") && n.running_ids().len() == 1).await;
        sleep(secs(100)).await;
        assert_eq!(node.running_ids().len(), 1);
        assert_eq!(node.workers("web").len(), 1);
    });
}

#[test]
fn a_starting_daemon_does_not_take_the_network_for_broken() {
    run(async |mut node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert!(!node.has_event("web", "NetworkNotReady"));
        node.kill().await;
        // The runtime takes its time to say how it is.
        node.world.runtime.inject(fakes::runtime::Fault::delay("Status", secs(2)).times(1));
        node.put("late.yaml", &simple("late", ""));
        node.boot();
        node.until("late is ready", LIMIT, |n| n.is_ready("late") && n.is_ready("web")).await;
        assert!(!node.has_event("web", "NetworkNotReady") && !node.has_event("late", "NetworkNotReady"));
    });
}
