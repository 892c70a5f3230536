//! A machine that goes down under its pods.

use contract::node::NodeView;
use contract::pod_worker::WorkerPhase;
use contract::shutdown::Shutdown;
use fakes::runtime::{Mutation, OnTerm, Program};
use node_config::NodeShutdown;
use sim::{LIMIT, SimNode, World};
use tokio::time::sleep;

use crate::{secs, simple};

/// 20 s for usual pods, 10 s for critical ones.
fn run(test: impl AsyncFnOnce(SimNode)) {
    sim::log_to_stderr();
    actor::testing::run(1, |kernel| async move {
        let mut world = World::in_cluster(&kernel);
        world.settings.config.shutdown =
            NodeShutdown { grace_period: secs(30), critical: secs(10), ..NodeShutdown::default() };
        let mut node = SimNode::down(world, &kernel);
        node.world.logind.grant(secs(5), secs(30));
        node.boot();
        node.world.runtime.add_images(&["app:1", "tool:1"]);
        node.until("shutdowns are held back", LIMIT, |n| n.world.logind.held() == 1).await;
        test(node).await;
    });
}

const CRITICAL: &str = "\n  priority: 2000001000\n  priorityClassName: system-node-critical";

fn is_ready(node: &SimNode) -> bool {
    node.wiring().value::<NodeView>().get().ready.as_ref().is_some_and(|(ready, _)| *ready)
}

fn stop_timeouts(node: &SimNode) -> Vec<i64> {
    let stop = |m: Mutation| if let Mutation::StopContainer(r) = m { Some(r.timeout) } else { None };
    node.world.runtime.mutations().into_iter().filter_map(stop).collect()
}

#[test]
fn usual_pods_end_first_and_critical_ones_after_them() {
    run(async |mut node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Ignore)]);
        node.put("web.yaml", &simple("web", "\n  terminationGracePeriodSeconds: 600"));
        node.put("net.yaml", &simple("net", &format!("{CRITICAL}\n  terminationGracePeriodSeconds: 7")));
        node.until("both are ready", LIMIT, |n| n.is_ready("web") && n.is_ready("net")).await;
        node.until("the node is", LIMIT, is_ready).await;
        node.world.logind.say(true);
        node.until("the node is not", secs(2), |n| !is_ready(n)).await;
        let why = node.wiring().value::<NodeView>().get().ready.clone();
        assert_eq!(why, Some((false, "node is shutting down".to_owned())));
        // The daemon is killed over it, and another one comes.
        sleep(secs(5)).await;
        assert_eq!(stop_timeouts(&node), [20]);
        node.restart().await;
        node.until("the usual one is down", LIMIT, |n| n.worker_phase("web") == Some(WorkerPhase::Finished)).await;
        let status = node.status("web").unwrap();
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("Terminated")));
        let text = "Pod was terminated in response to imminent node shutdown.";
        assert_eq!(status.message.as_deref(), Some(text));
        assert!(node.condition("web", "DisruptionTarget"));
        node.put("late.yaml", &simple("late", ""));
        node.until("the late one is refused", LIMIT, |n| n.phase("late") == "Failed").await;
        assert_eq!(node.status("late").unwrap().reason.as_deref(), Some("NodeShutdown"));
        node.until("the critical one is down", secs(20), |n| n.worker_phase("net") == Some(WorkerPhase::Finished))
            .await;
        assert_eq!(stop_timeouts(&node).last(), Some(&7));
        node.until("the machine may go", LIMIT, |n| n.wiring().value::<Shutdown>().get().released).await;
        assert_eq!(node.world.logind.held(), 0);
    });
}

#[test]
fn a_shutdown_that_is_cancelled_leaves_the_node_ready() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("the pod is ready", LIMIT, |n| n.is_ready("web")).await;
        node.until("the node is", LIMIT, is_ready).await;
        node.world.logind.say(true);
        node.until("the machine may go", LIMIT, |n| n.world.logind.held() == 0).await;
        assert!(!is_ready(&node));
        node.world.logind.say(false);
        node.until("the node is ready again", secs(5), is_ready).await;
        node.until("the next one is held back", LIMIT, |n| n.world.logind.held() == 1).await;
        node.put("next.yaml", &simple("next", ""));
        node.until("pods are taken", LIMIT, |n| n.is_ready("next")).await;
        assert_eq!(node.phase("web"), "Failed");
    });
}
