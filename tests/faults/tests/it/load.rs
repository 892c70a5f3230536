//! Full nodes, and many calls that hang.

use fakes::runtime::{Fault, Program};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, run, secs, simple};

async fn pods(node: &SimNode, n: usize) {
    for i in 0..n {
        node.put(&format!("p{i}.yaml"), &simple(&format!("p{i}"), ""));
    }
    node.until("all are ready", LIMIT, |node| node.running_ids().len() == n && all_ready(node, n)).await;
}

fn all_ready(node: &SimNode, n: usize) -> bool {
    (0..n).all(|i| node.is_ready(&format!("p{i}")))
}

#[test]
fn a_full_node_starts_survives_a_kill_of_the_daemon_and_stops() {
    run(async |mut node| {
        pods(&node, 110).await;
        let ids = node.running_ids();
        node.world.runtime.forget_calls();
        node.restart().await;
        node.until("all are known again", secs(5), |n| all_ready(n, 110)).await;
        sleep(secs(100)).await;
        assert_eq!(node.running_ids(), ids);
        assert!(node.transcript().is_empty(), "{:?}", node.transcript());
        node.put("one-more.yaml", &simple("one-more", ""));
        node.until("it is rejected", LIMIT, |n| n.phase("one-more") == "Failed").await;
        assert_eq!(node.status("one-more").unwrap().reason.as_deref(), Some("UnexpectedAdmissionError"));
        for i in 0..110 {
            node.remove(&format!("p{i}.yaml"));
        }
        node.until("all are gone", LIMIT, |n| n.running_ids().is_empty() && n.is_gone("p0") && n.is_gone("p109")).await;
    });
}

#[test]
fn stops_that_hang_hold_up_nobody_else() {
    run(async |node| {
        pods(&node, 30).await;
        node.world.runtime.inject(Fault::hang("StopContainer").matching("p1"));
        for i in 0..30 {
            node.remove(&format!("p{i}.yaml"));
        }
        // p1 and p10 to p19 hang.
        node.until("the others are gone", secs(20), |n| n.running_ids().len() == 11).await;
        node.world.runtime.clear_faults();
        node.until("all are gone in the end", secs(400), |n| n.running_ids().is_empty()).await;
    });
}

#[test]
fn sandboxes_that_hang_hold_up_nobody_for_long() {
    run(async |node| {
        node.world.runtime.inject(Fault::hang("RunPodSandbox").matching("stuck").times(20));
        for i in 0..20 {
            node.put(&format!("stuck{i}.yaml"), &simple(&format!("stuck{i}"), ""));
        }
        sleep(secs(1)).await;
        for i in 0..10 {
            node.put(&format!("p{i}.yaml"), &simple(&format!("p{i}"), ""));
        }
        node.until("the others are ready", secs(60), |n| all_ready(n, 10)).await;
        node.until("all come up in the end", secs(900), |n| n.running_ids().len() == 30).await;
        assert!(node.world.runtime.sandboxes().iter().filter(|s| s.ready).count() == 30, "{}", node.picture());
    });
}

#[test]
fn pods_that_come_together_are_admitted_until_the_node_is_full() {
    run(async |node| {
        for i in 0..6 {
            let spec = "\n  containers:\n  - {name: app, image: 'app:1', resources: {requests: {cpu: '1'}}}";
            let file = node.world.manifests().join(format!("p{i}.yaml"));
            node.world.write(&file, &pod(&format!("p{i}"), spec));
        }
        // The next look finds all of them at once.
        node.until("four run", secs(30), |n| all_ready(n, 4)).await;
        for name in ["p4", "p5"] {
            assert_eq!(node.status(name).unwrap().reason.as_deref(), Some("UnexpectedAdmissionError"), "{name}");
        }
        sleep(secs(60)).await;
        assert_eq!(node.running_ids().len(), 4);
    });
}

#[test]
fn pods_that_run_are_admitted_again_before_those_that_do_not() {
    run(async |mut node| {
        let sized = |name: &str, image: &str| {
            let spec = format!(
                "\n  restartPolicy: Never\n  containers:\n  - {{name: app, image: '{image}', resources: {{requests: {{cpu: '1'}}}}}}"
            );
            pod(name, &spec)
        };
        node.world.runtime.program("app:2", &[Program::exits(secs(1), 0)]);
        // Four cores: the job is done when the fourth comes.
        node.put("a-job.yaml", &sized("job", "app:2"));
        for i in 0..3 {
            node.put(&format!("p{i}.yaml"), &sized(&format!("p{i}"), "app:1"));
        }
        node.until("the job is done", LIMIT, |n| n.phase("job") == "Succeeded").await;
        sleep(secs(5)).await;
        node.put("p3.yaml", &sized("p3", "app:1"));
        node.until("all are ready", LIMIT, |n| all_ready(n, 4)).await;
        let ids = node.running_ids();
        node.restart().await;
        sleep(secs(60)).await;
        assert_eq!(node.running_ids(), ids, "{}", node.picture());
        assert_eq!(node.phase("job"), "Succeeded");
    });
}

/// A pod whose UID stays the same over edits.
fn labelled(n: usize) -> String {
    simple("web", "").replace("{name: web}", &format!("{{name: web, uid: same, labels: {{n: '{n}'}}}}"))
}

#[test]
fn a_worker_that_was_flooded_has_the_newest_state_in_the_end() {
    run(async |node| {
        node.put("web.yaml", &labelled(0));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.fault("pod-worker: stall(20s)@turn:UpdatePod#1");
        for n in 1..100 {
            node.put("web.yaml", &labelled(n));
            sleep(std::time::Duration::from_millis(30)).await;
        }
        let refused = |n: &SimNode| {
            n.kernel
                .directory()
                .actors()
                .iter()
                .find(|a| a.name.starts_with("pod-worker/"))
                .map_or(0, |a| a.rejected_tells)
        };
        assert!(refused(&node) > 0, "the mailbox was never full");
        node.until("the worker knows the newest", secs(40), |n| {
            let row = n.wiring().board::<contract::pod_worker::WorkerState>().get(&"same".into()).unwrap();
            row.pod.as_ref().unwrap().metadata.labels.as_ref().unwrap()["n"] == "99"
        })
        .await;
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 1);
    });
}

#[test]
fn a_flooded_worker_does_not_miss_that_its_pod_is_gone() {
    run(async |node| {
        node.put("web.yaml", &labelled(0));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.fault("pod-worker: stall(20s)@turn:UpdatePod#1");
        for n in 1..60 {
            node.put("web.yaml", &labelled(n));
            sleep(std::time::Duration::from_millis(30)).await;
        }
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web") && n.running_ids().is_empty()).await;
    });
}
