//! The runtime breaks, hangs, comes back.

use fakes::runtime::{Fault, FaultKind, Program};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{run, secs, simple};

async fn ten_pods(node: &SimNode) -> Vec<String> {
    for i in 0..10 {
        node.put(&format!("p{i}.yaml"), &simple(&format!("p{i}"), ""));
    }
    node.until("all are ready", LIMIT, |n| (0..10).all(|i| n.is_ready(&format!("p{i}")))).await;
    node.running_ids()
}

#[test]
fn connections_that_are_cut_cost_no_container() {
    run(async |node| {
        let ids = ten_pods(&node).await;
        for _ in 0..5 {
            node.world.runtime.disconnect();
            sleep(secs(7)).await;
        }
        sleep(secs(120)).await;
        assert_eq!(node.running_ids(), ids);
        assert!(!node.wiring().value::<contract::runtime::RuntimeInfo>().get().stale);
    });
}

#[test]
fn a_runtime_that_is_away_costs_no_container_and_its_exits_are_seen_when_it_is_back() {
    run(async |node| {
        let ids = ten_pods(&node).await;
        node.world.runtime.down();
        sleep(secs(30)).await;
        assert!(node.wiring().value::<contract::runtime::RuntimeInfo>().get().stale);
        assert!(node.is_ready("p1"), "a status is kept while nothing can be known");
        let dead = node.running_id("p0", "app").unwrap();
        node.world.runtime.exit(&dead, 3);
        node.put("new.yaml", &simple("new", ""));
        sleep(secs(30)).await;
        node.world.runtime.up();
        node.until("the new pod is ready", LIMIT, |n| n.is_ready("new")).await;
        node.until("the dead one is restarted", LIMIT, |n| n.instances("p0", "app").len() == 2 && n.is_ready("p0"))
            .await;
        let survivors = node.running_ids();
        assert!(ids.iter().filter(|id| **id != dead).all(|id| survivors.contains(id)));
    });
}

#[test]
fn a_sandbox_that_cannot_be_made_is_tried_again() {
    run(async |node| {
        node.world.runtime.inject(Fault::error("RunPodSandbox", tonic::Code::Unknown, "no more addresses").times(2));
        node.put("web.yaml", &simple("web", ""));
        node.until("it is told", secs(5), |n| n.has_event("web", "FailedCreatePodSandBox")).await;
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.world.runtime.sandboxes().len(), 1);
    });
}

#[test]
fn a_container_that_cannot_be_created_shows_why_and_is_tried_again() {
    run(async |node| {
        node.world.runtime.inject(Fault::error("CreateContainer", tonic::Code::Unknown, "disk is full").times(2));
        node.put("web.yaml", &simple("web", ""));
        node.until("it is shown", secs(5), |n| n.state("web", "app") == "waiting:CreateContainerError").await;
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.instances("web", "app").len(), 1);
        assert_eq!(node.container_status("web", "app").unwrap().restart_count, 0);
    });
}

#[test]
fn answers_that_are_lost_make_no_second_sandbox_or_container() {
    for rpc in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
        run(async |node| {
            let lost = FaultKind::ErrorAfter(tonic::Code::Unavailable, "transport is closing".to_owned());
            node.world.runtime.inject(Fault::new(rpc, lost).times(1));
            node.put("web.yaml", &simple("web", ""));
            node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
            assert_eq!(node.world.runtime.sandboxes().len(), 1, "{rpc}: {}", node.picture());
            assert_eq!(node.instances("web", "app").len(), 1, "{rpc}: {}", node.picture());
        });
    }
}

#[test]
fn a_call_that_hangs_stalls_only_its_pod() {
    run(async |node| {
        node.world.runtime.inject(Fault::hang("RunPodSandbox").matching("stuck").times(1));
        node.put("stuck.yaml", &simple("stuck", ""));
        sleep(secs(1)).await;
        ten_pods(&node).await;
        node.until("the stuck one comes up after the deadline", secs(400), |n| n.is_ready("stuck")).await;
    });
}

#[test]
fn without_a_network_only_pods_of_the_hosts_network_start() {
    run(async |node| {
        node.world.runtime.set_network_ready(false);
        sleep(secs(6)).await;
        node.put("web.yaml", &simple("web", ""));
        node.put("host.yaml", &simple("host", "\n  hostNetwork: true"));
        node.until("host is ready", LIMIT, |n| n.is_ready("host")).await;
        sleep(secs(20)).await;
        assert_eq!(node.phase("web"), "Pending");
        assert!(node.has_event("web", "NetworkNotReady"));
        assert!(!node.count("RunPodSandbox").contains_key("default/web-sim"));
        node.world.runtime.set_network_ready(true);
        node.until("web is ready soon after", secs(10), |n| n.is_ready("web")).await;
    });
}

#[test]
fn a_sandbox_that_dies_is_replaced_and_its_containers_with_it() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let old = node.world.runtime.sandboxes()[0].id.clone();
        node.world.runtime.kill_sandbox(&old);
        node.until("another sandbox", LIMIT, |n| {
            n.world.runtime.sandboxes().iter().any(|s| s.id != old && s.ready) && n.is_ready("web")
        })
        .await;
        assert!(node.has_event("web", "SandboxChanged"));
        assert_eq!(node.running_ids().len(), 1);
        let again = node.world.runtime.sandboxes().last().unwrap().id.clone();
        node.world.runtime.kill_sandbox(&again);
        // The last dead instance of a container is kept for its logs, and its sandbox with it; older ones go.
        node.until("the oldest is collected", secs(180), |n| {
            let left = n.world.runtime.sandboxes();
            left.len() == 2 && left.iter().all(|s| s.id != old) && n.is_ready("web")
        })
        .await;
    });
}

#[test]
fn an_exit_that_no_event_tells_is_found_by_the_relist() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever(), Program::forever()]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        sleep(secs(5)).await;
        node.world.runtime.mute_events(true);
        let id = node.running_id("web", "app").unwrap();
        node.world.runtime.exit(&id, 1);
        node.until("it is restarted", secs(90), |n| n.instances("web", "app").len() == 2).await;
    });
}

#[test]
fn a_stop_that_fails_is_tried_again_until_the_pod_is_gone() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let error = Fault::error("StopContainer", tonic::Code::Unknown, "busy").times(2);
        node.world.runtime.inject(error);
        node.world.runtime.inject(Fault::error("StopPodSandbox", tonic::Code::Unknown, "busy").times(1));
        node.remove("web.yaml");
        node.until("web is gone", secs(120), |n| n.is_gone("web")).await;
        assert!(node.running_ids().is_empty());
    });
}

#[test]
fn a_daemon_that_starts_while_the_runtime_is_away_decides_nothing_until_it_is_there() {
    run(async |mut node| {
        let ids = ten_pods(&node).await;
        let doomed = node.running_id("p0", "app").unwrap();
        node.kill().await;
        node.world.runtime.down();
        node.remove("p0.yaml");
        node.put("new.yaml", &simple("new", ""));
        node.boot();
        sleep(secs(100)).await;
        assert_eq!(node.running_ids(), ids);
        node.world.runtime.up();
        node.until("nine of ten and the new one", LIMIT, |n| {
            n.running_ids().len() == 10 && n.is_ready("new") && n.is_ready("p9") && n.is_gone("p0")
        })
        .await;
        assert!(ids.iter().filter(|id| **id != doomed).all(|id| node.running_ids().contains(id)));
        assert!(node.restarts().values().all(|n| *n == 0));
    });
}
