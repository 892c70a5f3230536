//! One pod that crashes everybody who works for it, beside pods that have done nothing.

use std::time::Duration;

use fakes::runtime::{ExecReply, Program};
use sim::{LIMIT, SimNode};
use tokio::time::{Instant, sleep};

use crate::{pod, run, secs, simple};

const HEALTHY: usize = 20;

fn healthy(name: &str) -> String {
    let probe = "livenessProbe: {exec: {command: [alive]}, periodSeconds: 5}";
    pod(name, &format!("\n  containers:\n  - {{name: app, image: 'app:1', {probe}}}"))
}

fn name(n: usize) -> String {
    format!("h{n}")
}

/// How long it took, in the worst case of the hour.
#[derive(Debug, Default, PartialEq, PartialOrd)]
struct Times {
    start: Duration,
    restart: Duration,
    go: Duration,
    /// The longest pause between two probes of one pod.
    probe: Duration,
}

async fn took(node: &SimNode, what: &str, so: impl Fn(&SimNode) -> bool) -> Duration {
    let began = Instant::now();
    node.until(what, LIMIT, so).await;
    began.elapsed()
}

/// An hour in which healthy pods start, are probed, end and are restarted, and go.
async fn hour(node: &SimNode) -> Times {
    node.world.runtime.on_exec(|_| ExecReply::default());
    let mut times = Times::default();
    for round in 0..HEALTHY {
        let p = name(round);
        node.put(&format!("{p}.yaml"), &healthy(&p));
        times.start = times.start.max(took(node, "a start", |n| n.is_ready(&p)).await);
        sleep(secs(60)).await;
    }
    node.world.runtime.forget_calls();
    sleep(secs(600)).await;
    times.probe = longest_pause(node);
    for round in 0..HEALTHY {
        let p = name(round);
        let id = node.running_id(&p, "app").expect("runs");
        node.world.runtime.exit(&id, 1);
        times.restart = times
            .restart
            .max(took(node, "a restart", |n| n.is_ready(&p) && n.running_id(&p, "app") != Some(id.clone())).await);
        sleep(secs(30)).await;
    }
    for round in 0..HEALTHY {
        let p = name(round);
        node.remove(&format!("{p}.yaml"));
        times.go = times.go.max(took(node, "an end", |n| n.is_gone(&p)).await);
        sleep(secs(30)).await;
    }
    times
}

fn longest_pause(node: &SimNode) -> Duration {
    let calls = node.world.runtime.calls();
    let of = |n: usize| {
        let id = node.running_id(&name(n), "app").expect("runs");
        let at: Vec<i64> =
            calls.iter().filter(|c| c.rpc == "ExecSync" && c.subject.contains(&name(n))).map(|c| c.at.0).collect();
        assert!(at.len() > 100, "{} probes of {id}", at.len());
        at.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    };
    let worst = (0..HEALTHY).map(of).max().unwrap_or(0);
    Duration::from_nanos(u64::try_from(worst).unwrap())
}

fn undisturbed() -> Times {
    let mut times = Times::default();
    run(async |node| {
        node.put("bystander.yaml", &simple("bystander", ""));
        node.until("it is ready", LIMIT, |n| n.is_ready("bystander")).await;
        times = hour(&node).await;
    });
    times
}

/// `rules` with `UID` for the poison pod's.
fn beside(rules: &str) -> Times {
    let mut times = Times::default();
    run(async |node| {
        // Always something to do for everybody: it ends, is restarted, is probed.
        node.world.runtime.program("bad", &[Program::exits(secs(40), 1)]);
        let probe = "livenessProbe: {exec: {command: [alive]}, periodSeconds: 5}";
        node.put(
            "poison.yaml",
            &pod("poison", &format!("\n  containers:\n  - {{name: bad, image: 'app:1', {probe}}}")),
        );
        node.until("it is ready", LIMIT, |n| n.is_ready("poison")).await;
        let uid = node.uid("poison").unwrap();
        let generation = |actor: &str| node.kernel.directory().get(actor).unwrap().generation;
        node.fault(&rules.replace("UID", uid.as_str()));
        node.kernel.directory().kill(&format!("pod-worker/{uid}"));
        times = hour(&node).await;
        assert!(node.kernel.health().is_ok());
        let struck = node.kernel.faults().log().len();
        assert!(struck > 10, "{struck} crashes");
        assert_eq!(generation("image-manager"), 0, "the group was not restarted");
        let others = node.kernel.directory().actors();
        let others = others.iter().filter(|a| a.name.starts_with("pod-worker/") && !a.name.ends_with(uid.as_str()));
        for worker in others {
            assert_eq!(worker.generation, 0, "{}", worker.name);
        }
    });
    times
}

#[test]
fn pods_beside_a_worker_that_always_crashes_start_probe_restart_and_go_in_the_usual_time() {
    assert_eq!(beside("pod-worker/UID: panic@started"), undisturbed());
}

#[test]
fn pods_beside_one_that_crashes_every_manager_lose_seconds_at_most() {
    let (usual, beside) = (undisturbed(), beside("*: panic@for:UID"));
    let slack = secs(3);
    let fine = beside.start <= usual.start + slack
        && beside.restart <= usual.restart + slack
        && beside.go <= usual.go + slack
        && beside.probe <= usual.probe + slack;
    assert!(fine, "{beside:?} beside the poison, {usual:?} without");
}

#[test]
fn what_is_set_aside_is_told_on_its_pod_and_tried_again() {
    run(async |node| {
        node.put("poison.yaml", &simple("poison", ""));
        node.until("it is ready", LIMIT, |n| n.is_ready("poison")).await;
        let uid = node.uid("poison").unwrap();
        node.fault(&format!("status-manager: panic@for:{uid}"));
        let id = node.running_id("poison", "app").unwrap();
        node.world.runtime.exit(&id, 1);
        node.until("the pod is told", LIMIT, |n| n.has_event("poison", "SetAside")).await;
        let aside = node.kernel.directory().get("status-manager").unwrap().aside;
        assert_eq!(aside.iter().map(|a| a.subject.as_str()).collect::<Vec<_>>(), [uid.as_str()]);
        node.kernel.faults().clear();
        node.until("it counts again", secs(700), |n| {
            n.container_status("poison", "app").is_some_and(|c| c.restart_count == 1) && n.is_ready("poison")
        })
        .await;
    });
}
