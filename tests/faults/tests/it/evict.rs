//! Pods that are stopped by order, or by their own deadline.

use contract::pod_manager::DesiredPod;
use contract::pod_worker::{KillRequest, UpdateKind, UpdatePod, WorkerPhase};
use fakes::runtime::{Mutation, OnTerm, Program};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{run, secs, simple};

async fn kill(node: &SimNode, grace_s: Option<i64>, evicted: bool) {
    let reason = Some(("Evicted".to_owned(), "The node was low on resource: memory. ".to_owned()));
    let request = KillRequest { grace_s, evicted, reason, ..KillRequest::default() };
    let uid = node.uid("web").unwrap();
    let pod = node.wiring().board::<DesiredPod>().get(&uid).map(|row| row.pod.clone());
    let update = UpdatePod { uid, pod, kind: UpdateKind::Kill(request), pending: None, is_behind: false };
    node.wiring().ask(update).await.unwrap();
}

fn stop_timeouts(node: &SimNode) -> Vec<i64> {
    let stop = |m: Mutation| if let Mutation::StopContainer(r) = m { Some(r.timeout) } else { None };
    node.world.runtime.mutations().into_iter().filter_map(stop).collect()
}

#[test]
fn an_evicted_pod_fails_with_the_reason_and_stays_down_while_its_manifest_stays() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        kill(&node, Some(1), true).await;
        node.until("finished", LIMIT, |n| n.worker_phase("web") == Some(WorkerPhase::Finished)).await;
        let status = node.status("web").unwrap();
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("Evicted")));
        assert_eq!(stop_timeouts(&node), [2]);
        sleep(secs(200)).await;
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 1);
        assert!(node.running_ids().is_empty());
        node.put("web.yaml", &simple("web", "\n  terminationGracePeriodSeconds: 3"));
        node.until("the changed one runs", LIMIT, |n| n.is_ready("web")).await;
    });
}

#[test]
fn a_shorter_grace_overtakes_a_longer_one() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Ignore)]);
        node.put("web.yaml", &simple("web", "\n  terminationGracePeriodSeconds: 600"));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        kill(&node, None, false).await;
        sleep(secs(20)).await;
        assert_eq!(stop_timeouts(&node), [600]);
        kill(&node, Some(5), false).await;
        node.until("it is down", secs(8), |n| n.running_ids().is_empty()).await;
        assert_eq!(stop_timeouts(&node), [600, 5]);
        kill(&node, Some(100), false).await;
        sleep(secs(20)).await;
        assert_eq!(stop_timeouts(&node), [600, 5], "a longer grace changes nothing");
    });
}

#[test]
fn a_pod_past_its_deadline_fails() {
    run(async |node| {
        node.put("web.yaml", &simple("web", "\n  activeDeadlineSeconds: 40"));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        sleep(secs(37)).await;
        assert!(node.is_ready("web"), "{}", node.picture());
        node.until("it failed", secs(10), |n| n.phase("web") == "Failed").await;
        assert_eq!(node.status("web").unwrap().reason.as_deref(), Some("DeadlineExceeded"));
        node.until("it is down", LIMIT, |n| n.running_ids().is_empty()).await;
        sleep(secs(120)).await;
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 1);
    });
}
