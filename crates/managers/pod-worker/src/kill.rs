//! Stopping containers (pod-lifecycle 4.9).

use std::collections::BTreeSet;
use std::time::Duration;

use actor::watch;
use contract::runtime::{CallError, StopContainer, StopPodSandbox};
use futures::future::join_all;
use model::core::Container;
use model::event::EventType;
use model::pod::ContainerKind;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{ContainerId, SandboxId};
use pod_plan::KillReason;
use pod_plan::grace::{container_grace, stop_seconds};
use pod_plan::kill_order::{KillOrder, kill_order};
use tokio::time::timeout;

use crate::job::{Failure, Job};

/// One container to stop.
pub(crate) struct Victim {
    pub(crate) id: ContainerId,
    pub(crate) kind: ContainerKind,
    pub(crate) container: Container,
    pub(crate) message: String,
    pub(crate) reason: KillReason,
    pub(crate) grace_override: Option<i64>,
}

/// Names of containers that have stopped; those who wait follow it.
type Stopped = watch::Sender<BTreeSet<String>>;

impl Job {
    /// Stops every running container, in parallel under the pod's termination order, then every known sandbox.
    pub(crate) async fn kill_pod(&self, observed: &PodObservation, grace_s: Option<i64>) -> Result<(), Failure> {
        let running: Vec<&ContainerObservation> =
            observed.containers.iter().filter(|c| c.state == ContainerState::Running).collect();
        let names: BTreeSet<String> = running.iter().map(|c| c.name.clone()).collect();
        let order = kill_order(&self.pod, &names);
        let stopped: Stopped = watch::channel(BTreeSet::new()).0;
        let kills = running.iter().map(|c| self.kill_one(c, grace_s, &order, &stopped));
        let failures: Vec<String> = join_all(kills).await.into_iter().filter_map(Result::err).collect();
        if !failures.is_empty() {
            return Err(Failure::new(aggregate(failures)));
        }
        let sandboxes = observed.sandboxes.iter().map(|s| s.id.clone()).collect();
        self.stop_sandboxes(sandboxes).await
    }

    async fn kill_one(
        &self,
        c: &ContainerObservation,
        grace_override: Option<i64>,
        order: &KillOrder,
        stopped: &Stopped,
    ) -> Result<(), String> {
        let (kind, container) = model::pod::find_container(&self.pod, &c.name).unwrap_or_else(|| {
            // The specification no longer has it: no hook, no grace of its own.
            (ContainerKind::Regular, Container { name: c.name.clone(), ..Container::default() })
        });
        let victim = Victim {
            id: c.id.clone(),
            kind,
            container,
            message: format!("Stopping container {}", c.name),
            reason: KillReason::Pod,
            grace_override,
        };
        let outcome = self.kill_container(&victim, Some((order, stopped))).await;
        // Those who wait go on also when this one could not be stopped: their grace bounds the wait anyway.
        stopped.send_modify(|names| {
            names.insert(c.name.clone());
        });
        outcome.map_err(|e| container_failed(&c.name, &e))
    }

    /// Stops one container: event, preStop hook, turn, StopContainer.
    pub(crate) async fn kill_container(
        &self,
        victim: &Victim,
        order: Option<(&KillOrder, &Stopped)>,
    ) -> Result<(), CallError> {
        let Victim { id, kind, container, message, reason, grace_override } = victim;
        self.container_event(EventType::Normal, "Killing", message.clone(), (*kind, &container.name));
        let mut grace = container_grace(&self.pod, container, *reason, *grace_override);
        let hook = container.lifecycle.as_ref().and_then(|l| l.pre_stop.as_ref());
        if let Some(handler) = hook.filter(|_| grace > 0) {
            let begun = self.clock.now();
            let bound = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
            match timeout(bound, self.run_hook(handler, container, id)).await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => {
                    tracing::warn!(uid = %self.uid, container = container.name, error = e, "preStop hook failed");
                    let about = (*kind, container.name.as_str());
                    self.container_event(EventType::Warning, "FailedPreStopHook", "PreStopHook failed", about);
                }
                Err(_) => {
                    tracing::warn!(uid = %self.uid, container = container.name, "preStop hook outlived the grace")
                }
            }
            grace -= whole_seconds(self.clock.now() - begun);
        }
        if let Some((order, stopped)) = order.filter(|_| grace > 0) {
            let begun = self.clock.now();
            self.wait_turn(&container.name, order, stopped, grace).await;
            grace -= whole_seconds(self.clock.now() - begun);
        }
        self.effects.hit("before StopContainer").await;
        let outcome = self.stop_container(id, stop_seconds(grace)).await;
        self.effects.hit("after StopContainer").await;
        outcome
    }

    async fn wait_turn(&self, name: &str, order: &KillOrder, stopped: &Stopped, grace: i64) {
        let prerequisites = order.prerequisites(name);
        if prerequisites.is_empty() {
            return;
        }
        let mut seen = stopped.subscribe();
        let all = seen.wait_for(|names| prerequisites.iter().all(|p| names.contains(p)));
        // Out of time is an answer too: the container is then stopped with the least grace.
        let _in_time = timeout(Duration::from_secs(u64::try_from(grace).unwrap_or(0)), all).await.is_ok();
    }

    /// Stops a container; when the pod's grace is cut meanwhile, a second call with the shorter one overtakes the first.
    async fn stop_container(&self, id: &ContainerId, grace_s: i64) -> Result<(), CallError> {
        let stop = |grace_s: i64| {
            let ask = StopContainer { uid: self.uid.clone(), container: id.clone(), grace_s };
            self.call(ask)
        };
        let mut signal = self.signal.clone();
        let shorter = async {
            loop {
                if signal.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                let now = signal.borrow_and_update().grace_s.map(stop_seconds);
                if let Some(seconds) = now.filter(|s| *s < grace_s) {
                    return seconds;
                }
            }
        };
        let first = stop(grace_s);
        tokio::pin!(first, shorter);
        tokio::select! {
            biased;
            outcome = &mut first => outcome,
            seconds = &mut shorter => tokio::select! {
                biased;
                outcome = &mut first => outcome,
                outcome = stop(seconds) => outcome,
            },
        }
    }

    /// Stops sandboxes one after the other; all are tried.
    pub(crate) async fn stop_sandboxes(&self, sandboxes: Vec<SandboxId>) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for sandbox in sandboxes {
            self.effects.hit("before StopPodSandbox").await;
            let stop = StopPodSandbox { uid: self.uid.clone(), sandbox: sandbox.clone() };
            if let Err(e) = self.call(stop).await {
                failures.push(format!(
                    "failed to \"KillPodSandbox\" for {:?} with KillPodSandboxError: {:?}",
                    self.uid.as_str(),
                    e.go_text()
                ));
            }
        }
        if failures.is_empty() {
            return Ok(());
        }
        Err(Failure::new(aggregate(failures)))
    }
}

/// Why a container was not stopped, in a kubelet's words.
pub(crate) fn container_failed(name: &str, e: &CallError) -> String {
    format!("failed to \"KillContainer\" for {name:?} with KillContainerError: {:?}", e.go_text())
}

/// Several failures in brackets, one alone without.
fn aggregate(mut failures: Vec<String>) -> String {
    failures.dedup();
    if failures.len() == 1 { failures.remove(0) } else { format!("[{}]", failures.join(", ")) }
}

fn whole_seconds(d: Duration) -> i64 {
    i64::try_from(d.as_secs()).unwrap_or(i64::MAX)
}
