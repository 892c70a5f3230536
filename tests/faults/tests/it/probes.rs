//! Probes as they work on pods.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fakes::runtime::{ExecReply, Mutation};
use model::probe::ProbeOutcome;
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, run, secs};

/// Commands in containers succeed while the switch is on.
fn switch(node: &SimNode) -> Arc<AtomicBool> {
    let good = Arc::new(AtomicBool::new(true));
    let answer = good.clone();
    node.world
        .runtime
        .on_exec(move |_| ExecReply { exit_code: i32::from(!answer.load(Ordering::Relaxed)), ..ExecReply::default() });
    good
}

#[test]
fn a_failing_liveness_probe_restarts_the_container_with_the_probes_own_grace() {
    run(async |node| {
        let good = switch(&node);
        let spec = "
  containers:
  - name: app
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, failureThreshold: 2, terminationGracePeriodSeconds: 4}
  - {name: other, image: 'app:2'}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let other = node.running_id("web", "other");
        sleep(secs(60)).await;
        assert_eq!(node.instances("web", "app").len(), 1);
        good.store(false, Ordering::Relaxed);
        node.until("it is restarted", secs(30), |n| n.instances("web", "app").len() == 2).await;
        good.store(true, Ordering::Relaxed);
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        assert_eq!(node.running_id("web", "other"), other);
        let stop = node.world.runtime.mutations().into_iter().find_map(|m| match m {
            Mutation::StopContainer(r) => Some(r.timeout),
            _ => None,
        });
        assert_eq!(stop, Some(4));
        assert!(node.has_event("web", "Unhealthy"));
        let killing = "Killing: Container app failed liveness probe, will be restarted";
        assert!(node.events("web").iter().any(|e| e == killing), "{:?}", node.events("web"));
    });
}

#[test]
fn a_readiness_probe_decides_over_ready_and_restarts_nothing() {
    run(async |node| {
        let good = switch(&node);
        let spec = "
  containers:
  - {name: app, image: 'app:1', readinessProbe: {exec: {command: [ready]}, periodSeconds: 2, failureThreshold: 1}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        good.store(false, Ordering::Relaxed);
        node.until("not ready", secs(10), |n| n.phase("web") == "Running" && !n.condition("web", "Ready")).await;
        good.store(true, Ordering::Relaxed);
        node.until("ready again", secs(10), |n| n.is_ready("web")).await;
        assert_eq!(node.instances("web", "app").len(), 1);
    });
}

#[test]
fn a_startup_probe_that_never_succeeds_restarts_the_container() {
    run(async |node| {
        switch(&node).store(false, Ordering::Relaxed);
        let spec = "
  containers:
  - {name: app, image: 'app:1', startupProbe: {exec: {command: [up]}, periodSeconds: 1, failureThreshold: 3}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("it is restarted", secs(30), |n| n.instances("web", "app").len() >= 2).await;
        assert!(!node.is_ready("web"));
    });
}

#[test]
fn a_probe_over_the_network_works_as_well() {
    run(async |node| {
        node.world.net.answer(8080, ProbeOutcome::Success, "ok");
        let spec = "
  containers:
  - {name: app, image: 'app:1', livenessProbe: {httpGet: {port: 8080}, periodSeconds: 1, failureThreshold: 3}}";
        node.put("web.yaml", &pod("web", spec));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        sleep(secs(20)).await;
        assert_eq!(node.instances("web", "app").len(), 1);
        node.world.net.answer(8080, ProbeOutcome::Failure, "HTTP probe failed with statuscode: 500");
        node.until("it is restarted", secs(10), |n| n.instances("web", "app").len() == 2).await;
    });
}
