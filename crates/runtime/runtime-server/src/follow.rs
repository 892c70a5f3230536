//! Follows the supervisors of pods.
//!
//! One that answers says what its containers do. One that does not is gone, with whatever it held: its containers are killed by
//! their cgroups, and how they ended is what it had written, or else that this happened.

use std::sync::Arc;

use cri_api::v1;
use pod_supervisor::Held;
use pod_supervisor::wire::{Answer, Request};
use tracing::warn;

use crate::records::PodStage;
use crate::runtime::{Pod, Runtime};
use crate::supervisor::{Line, SupervisorError};
use crate::{cgroups, ends};

/// Watches the supervisor of a pod that has just been made.
pub(crate) fn watch(rt: &Arc<Runtime>, pod: &Arc<Pod>) {
    let (rt, pod) = (Arc::clone(rt), Arc::clone(pod));
    tokio::spawn(async move {
        match follow(&rt, &pod).await {
            Ok(line) => until_its_end(&rt, &pod, line).await,
            Err(e) => surprise(&rt, &pod, &e).await,
        }
    });
}

pub(crate) fn spawn(rt: &Arc<Runtime>, pod: &Arc<Pod>, line: Line) {
    let (rt, pod) = (Arc::clone(rt), Arc::clone(pod));
    tokio::spawn(async move { until_its_end(&rt, &pod, line).await });
}

/// Connects, and takes in what the supervisor knows.
pub(crate) async fn follow(rt: &Arc<Runtime>, pod: &Arc<Pod>) -> Result<Line, SupervisorError> {
    let mut line = Line::open(&rt.socket(&pod.id), &Request::Watch, &[]).await?;
    match line.answer().await? {
        Answer::State { containers } => take_in(rt, pod, containers).await,
        other => return Err(SupervisorError::Strange(format!("{other:?}"))),
    }
    Ok(line)
}

async fn take_in(rt: &Arc<Runtime>, pod: &Arc<Pod>, held: Vec<Held>) {
    for held in held {
        let Some(container) = rt.find_container(&held.id) else { continue };
        if held.started_at != 0 {
            container.change(|r| (r.pid, r.started_at) = (held.pid, held.started_at));
        }
        if let Some(exit) = held.exit {
            ends::take_in(rt, &container, exit, "", "").await;
        }
    }
    // One that was started and that the supervisor does not hold any more ended: its record is on the disk.
    settle(rt, pod).await;
}

/// Ends that are on the disk and not in the records of containers.
pub(crate) async fn settle(rt: &Arc<Runtime>, pod: &Arc<Pod>) {
    for container in rt.containers_of(&pod.id) {
        if container.record().exit.is_none()
            && let Some(exit) = ends::on_disk(rt, &container).await
        {
            ends::take_in(rt, &container, exit, "", "").await;
        }
    }
}

async fn until_its_end(rt: &Arc<Runtime>, pod: &Arc<Pod>, mut line: Line) {
    loop {
        match line.answer().await {
            Ok(Answer::Event { id, exit }) => {
                if let Some(container) = rt.find_container(&id) {
                    ends::take_in(rt, &container, exit, "", "").await;
                }
            }
            Ok(other) => warn!(pod = pod.id, "the supervisor tells something strange: {other:?}"),
            Err(e) => return surprise(rt, pod, &e).await,
        }
    }
}

/// The connection ended. That is as it should be when the pod was stopped.
async fn surprise(rt: &Arc<Runtime>, pod: &Arc<Pod>, e: &SupervisorError) {
    if pod.record().stage == PodStage::Ready {
        lost(rt, pod, e).await;
    }
}

/// The supervisor is gone: its containers end, and the sandbox is not ready any more.
pub(crate) async fn lost(rt: &Arc<Runtime>, pod: &Arc<Pod>, e: &SupervisorError) {
    warn!(pod = pod.id, "the supervisor is lost, its containers are ended: {e}");
    pod.change(|r| r.stage = PodStage::NotReady);
    if let Err(e) = rt.write_pod(pod).await {
        warn!(pod = pod.id, "{e}");
    }
    for container in rt.containers_of(&pod.id) {
        if container.record().state() != v1::ContainerState::ContainerCreated {
            ends::make(rt, &container).await;
        }
    }
    // Process 1 of a shared PID namespace.
    if let Some(cgroup) = cgroups::of_sandbox(&pod.record()) {
        ends::empty(rt, &pod.id, cgroup).await;
    }
    rt.happened(&pod.id, &pod.id, v1::ContainerEventType::ContainerStoppedEvent);
}
