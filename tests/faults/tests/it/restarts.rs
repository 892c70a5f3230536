//! Crashes, restart policies, back-off, running to the end.

use contract::pod_worker::WorkerPhase;
use fakes::runtime::Program;
use ports::journal::Journal as _;
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, run, secs, simple, times};

fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|w| w[1] - w[0]).collect()
}

/// Waits between starts of a container that runs for a second, as pod-lifecycle 6.1 has them: 0, 10, 20, 40 and so on.
fn assert_delays(starts: &[f64], want: &[f64]) {
    let got: Vec<f64> = gaps(starts).iter().map(|g| g - 1.0).collect();
    assert!(got.len() >= want.len(), "{got:?} against {want:?}");
    for (got_s, want_s) in got.iter().zip(want) {
        assert!(*got_s >= *want_s - 0.01 && *got_s < *want_s + 1.0, "waits {got:?}, wanted {want:?}");
    }
}

#[test]
fn a_crashing_container_waits_0_10_20_40_80_160_300_300_seconds() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 3)]);
        node.put("loop.yaml", &simple("loop", ""));
        node.until("nine starts", secs(1200), |n| times(n, "StartContainer", "/app").len() >= 9).await;
        assert_delays(&times(&node, "StartContainer", "/app"), &[0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]);
        assert!(node.has_event("loop", "BackOff"));
    });
}

#[test]
fn a_waiting_container_shows_its_back_off_and_its_last_end() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 3).message("no luck")]);
        node.put("loop.yaml", &simple("loop", ""));
        node.until("in the back-off of 40 s", secs(200), |n| {
            let message = n.container_status("loop", "app").and_then(|c| c.state?.waiting?.message).unwrap_or_default();
            message.starts_with("back-off 40s restarting failed container=app pod=loop-sim_default(")
        })
        .await;
        let c = node.container_status("loop", "app").unwrap();
        assert_eq!(node.state("loop", "app"), "waiting:CrashLoopBackOff");
        let last = c.last_state.unwrap().terminated.unwrap();
        assert_eq!((last.exit_code, last.message.as_deref()), (3, Some("no luck")));
        assert_eq!(c.restart_count, 3);
        assert_eq!(node.phase("loop"), "Running");
    });
}

#[test]
fn a_good_neighbour_is_not_held_up_by_a_crashing_one() {
    run(async |node| {
        node.world.runtime.program("bad", &[Program::exits(secs(1), 1)]);
        let spec = "\n  containers:\n  - {name: bad, image: 'app:1'}\n  - {name: good, image: 'app:2'}";
        node.put("two.yaml", &pod("two", spec));
        sleep(secs(300)).await;
        assert_eq!(node.instances("two", "good").len(), 1);
        assert!(node.instances("two", "good")[0].running);
        assert!(times(&node, "StartContainer", "/bad").len() > 4);
    });
}

#[test]
fn dead_instances_do_not_pile_up() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 1)]);
        node.put("loop.yaml", &simple("loop", ""));
        node.until("six starts", secs(600), |n| times(n, "StartContainer", "/app").len() >= 6).await;
        sleep(secs(5)).await;
        assert!(node.instances("loop", "app").len() <= 2, "{}", node.picture());
    });
}

#[test]
fn a_pod_that_runs_to_its_end_succeeds_and_is_not_started_again() {
    for policy in ["Never", "OnFailure"] {
        run(async |node| {
            node.world.runtime.program("app", &[Program::exits(secs(5), 0)]);
            node.put("job.yaml", &simple("job", &format!("\n  restartPolicy: {policy}")));
            node.until("it succeeded", LIMIT, |n| n.phase("job") == "Succeeded").await;
            node.until("finished", LIMIT, |n| n.worker_phase("job") == Some(WorkerPhase::Finished)).await;
            sleep(secs(300)).await;
            assert_eq!(times(&node, "StartContainer", "/app").len(), 1, "{policy}");
            assert_eq!(node.phase("job"), "Succeeded");
            assert_eq!(node.state("job", "app"), "terminated:0");
            assert!(node.world.runtime.sandboxes().iter().all(|s| !s.ready), "its sandbox is stopped");
            assert!(!node.condition("job", "Ready"));
        });
    }
}

#[test]
fn a_pod_that_never_restarts_fails_with_its_container() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(5), 7)]);
        node.put("job.yaml", &simple("job", "\n  restartPolicy: Never"));
        node.until("it failed", LIMIT, |n| n.phase("job") == "Failed").await;
        sleep(secs(300)).await;
        assert_eq!(times(&node, "StartContainer", "/app").len(), 1);
        assert_eq!(node.state("job", "app"), "terminated:7");
    });
}

#[test]
fn on_failure_restarts_until_it_succeeds() {
    run(async |node| {
        let bad = Program::exits(secs(1), 1);
        node.world.runtime.program("app", &[bad.clone(), bad, Program::exits(secs(1), 0)]);
        node.put("job.yaml", &simple("job", "\n  restartPolicy: OnFailure"));
        node.until("it succeeded", secs(120), |n| n.phase("job") == "Succeeded").await;
        assert_eq!(node.container_status("job", "app").unwrap().restart_count, 2);
        assert_eq!(times(&node, "StartContainer", "/app").len(), 3);
    });
}

#[test]
fn always_restarts_also_after_success() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 0)]);
        node.put("loop.yaml", &simple("loop", ""));
        node.until("four starts", secs(120), |n| times(n, "StartContainer", "/app").len() >= 4).await;
        assert_delays(&times(&node, "StartContainer", "/app"), &[0.0, 10.0, 20.0]);
    });
}

#[test]
fn a_failing_init_container_is_retried_with_back_off() {
    run(async |node| {
        let bad = Program::exits(secs(1), 1);
        node.world.runtime.program("one", &[bad.clone(), bad.clone(), bad, Program::exits(secs(1), 0)]);
        let spec =
            "\n  initContainers:\n  - {name: one, image: 'tool:1'}\n  containers:\n  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", secs(120), |n| n.is_ready("web")).await;
        assert_delays(&times(&node, "StartContainer", "/one"), &[0.0, 10.0, 20.0]);
        assert_eq!(times(&node, "StartContainer", "/app").len(), 1);
    });
}

#[test]
fn a_failing_init_container_fails_a_pod_that_never_restarts() {
    run(async |node| {
        node.world.runtime.program("one", &[Program::exits(secs(1), 1)]);
        let spec = "
  restartPolicy: Never
  initContainers:
  - {name: one, image: 'tool:1'}
  - {name: two, image: 'tool:1'}
  containers:
  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("it failed", LIMIT, |n| n.phase("web") == "Failed").await;
        sleep(secs(120)).await;
        assert!(node.instances("web", "two").is_empty() && node.instances("web", "app").is_empty());
        assert_eq!(times(&node, "StartContainer", "/one").len(), 1);
    });
}

#[test]
fn a_sidecar_that_ends_is_started_again_while_the_app_runs_on() {
    run(async |node| {
        node.world.runtime.program("side", &[Program::exits(secs(20), 0), Program::forever()]);
        let spec = "
  initContainers:
  - {name: side, image: 'tool:1', restartPolicy: Always}
  containers:
  - {name: app, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let app = node.running_id("web", "app");
        node.until("the sidecar runs again", LIMIT, |n| n.instances("web", "side").len() == 2).await;
        sleep(secs(30)).await;
        assert_eq!(node.running_id("web", "app"), app);
        assert!(node.running_id("web", "side").is_some());
    });
}

#[test]
fn a_pod_with_sidecars_ends_when_its_containers_have() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(10), 0)]);
        let spec = "
  restartPolicy: Never
  initContainers:
  - {name: side, image: 'tool:1', restartPolicy: Always}
  containers:
  - {name: app, image: 'app:1'}";
        node.put("job.yaml", &pod("job", spec));
        node.until("it succeeded", LIMIT, |n| n.phase("job") == "Succeeded").await;
        assert!(node.running_ids().is_empty());
        assert_eq!(node.instances("job", "side").len(), 1);
    });
}

#[test]
fn a_container_that_cannot_start_is_replaced_after_its_back_off() {
    run(async |node| {
        let bad = Program::cannot_start("exec: no such file");
        node.world.runtime.program("app", &[bad.clone(), bad, Program::forever()]);
        node.put("web.yaml", &simple("web", ""));
        node.until("the reason is shown", LIMIT, |n| n.state("web", "app").starts_with("waiting:")).await;
        node.until("web is ready", secs(120), |n| n.is_ready("web")).await;
        assert_eq!(node.container_status("web", "app").unwrap().restart_count, 2);
    });
}

#[test]
fn what_is_remembered_of_a_pod_does_not_grow_with_its_failures() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::cannot_start("exec: no such file")]);
        node.world.runtime.program("other", &[Program::exits(secs(1), 1)]);
        let spec = "\n  containers:\n  - {name: app, image: 'app:1'}\n  - {name: other, image: 'app:1'}";
        node.put("web.yaml", &pod("web", spec));
        let line = |n: &SimNode| {
            let keys = n.world.journal.keys("worker/").unwrap();
            assert_eq!(keys.len(), 1, "{keys:?}");
            n.world.journal.load(&keys[0]).unwrap().unwrap().len()
        };
        sleep(secs(600)).await;
        let early = line(&node);
        sleep(secs(7200)).await;
        assert!(node.instances("web", "app").last().unwrap().attempt > 20);
        assert!(line(&node) < early + 200, "{early} bytes became {}", line(&node));
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        assert!(node.world.journal.keys("worker/").unwrap().is_empty());
    });
}
