//! Follows the supervisors of pods, and finds everything again when this server starts.
//!
//! A supervisor that answers says what its containers do. One that does not is gone, with whatever it held: its containers are
//! killed by their cgroups, and how they ended is what it had written, or else that this happened.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use pod_supervisor::wire::{Answer, Request};
use pod_supervisor::{ExitRecord, Held};
use ports::host::CgroupFs;
use tracing::{info, warn};

use crate::error::Done;
use crate::records::{self, PodStage};
use crate::runtime::{Container, Pod, Runtime, now};
use crate::supervisor::{Line, SupervisorError};
use crate::{container, sandbox};

const LOST: &str = "SupervisorLost";
const LOST_MESSAGE: &str = "the pod's supervisor ended, and its containers were killed with it";
/// 128 and SIGKILL.
const KILLED: i32 = 137;
const DELETE_TIME: Duration = Duration::from_secs(30);

/// Reads what is on the disk, and asks each supervisor. Beginnings that a crash cut short are taken down.
pub(crate) async fn everything(rt: &Arc<Runtime>) -> Done<()> {
    let shared = Arc::clone(rt);
    let found = rt.blocking.run(move || records::read_all(&shared.options)).await?;
    for mut record in found.sandboxes {
        // The record says so a moment later than whoever asked was told.
        if record.stage == PodStage::Starting
            && let Some(network) = records::read_ready(&rt.options, &record.id)?
        {
            (record.stage, record.network) = (PodStage::Ready, network);
        }
        rt.add_pod(record)?;
    }
    for record in found.containers {
        rt.add_container(record)?;
    }
    for (pod, container) in found.broken {
        warn!(pod, container, "a beginning without a record goes");
        let shared = Arc::clone(rt);
        let erased = move || match container {
            Some(container) => container::erase(&shared, &pod, &container),
            None => sandbox::erase_files(&shared, &pod),
        };
        rt.blocking.run(erased).await?;
    }
    for pod in rt.pods() {
        take_up(rt, &pod).await;
    }
    info!(pods = rt.pods().len(), containers = rt.containers().len(), "recovered");
    Ok(())
}

async fn take_up(rt: &Arc<Runtime>, pod: &Arc<Pod>) {
    match pod.record().stage {
        PodStage::Ready => match follow(rt, pod).await {
            Ok(line) => {
                spawn(rt, pod, line);
            }
            Err(e) => lost(rt, pod, &e).await,
        },
        // Nobody was told of it.
        PodStage::Starting => {
            for stopped in [sandbox::stop(rt, &pod.id).await, sandbox::remove(rt, &pod.id).await] {
                if let Err(e) = stopped {
                    warn!(pod = pod.id, "a sandbox that was being made is not gone yet: {e}");
                }
            }
        }
        PodStage::NotReady => settle(rt, pod).await,
    }
}

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

fn spawn(rt: &Arc<Runtime>, pod: &Arc<Pod>, line: Line) {
    let (rt, pod) = (Arc::clone(rt), Arc::clone(pod));
    tokio::spawn(async move { until_its_end(&rt, &pod, line).await });
}

/// Connects, and takes in what the supervisor knows.
async fn follow(rt: &Arc<Runtime>, pod: &Arc<Pod>) -> Result<Line, SupervisorError> {
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
            container::ended(rt, &container, exit, "", "").await;
        }
    }
    // One that was started and that the supervisor does not hold any more ended: its record is on the disk.
    settle(rt, pod).await;
}

/// Ends that are on the disk and not in the records of containers.
async fn settle(rt: &Arc<Runtime>, pod: &Arc<Pod>) {
    for container in rt.containers_of(&pod.id) {
        if container.record().exit.is_none()
            && let Some(exit) = on_disk(rt, &container).await
        {
            container::ended(rt, &container, exit, "", "").await;
        }
    }
}

async fn on_disk(rt: &Arc<Runtime>, container: &Arc<Container>) -> Option<ExitRecord> {
    let (shared, pod, id) = (Arc::clone(rt), container.pod.clone(), container.id.clone());
    match rt.blocking.run(move || records::read_exit(&shared.options, &pod, &id)).await {
        Ok(exit) => exit,
        Err(e) => {
            warn!(container = container.id, "how it ended cannot be read: {e}");
            None
        }
    }
}

async fn until_its_end(rt: &Arc<Runtime>, pod: &Arc<Pod>, mut line: Line) {
    loop {
        match line.answer().await {
            Ok(Answer::Event { id, exit }) => {
                if let Some(container) = rt.find_container(&id) {
                    container::ended(rt, &container, exit, "", "").await;
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
async fn lost(rt: &Arc<Runtime>, pod: &Arc<Pod>, e: &SupervisorError) {
    warn!(pod = pod.id, "the supervisor is lost, its containers are ended: {e}");
    pod.change(|r| r.stage = PodStage::NotReady);
    if let Err(e) = rt.write_pod(pod).await {
        warn!(pod = pod.id, "{e}");
    }
    for container in rt.containers_of(&pod.id) {
        if container.record().state() != v1::ContainerState::ContainerCreated {
            end(rt, &container).await;
        }
    }
    // Process 1 of a shared PID namespace.
    if let Some(cgroup) = sandbox::cgroup(&pod.record()) {
        empty(rt, &pod.id, cgroup).await;
    }
    rt.happened(&pod.id, &pod.id, v1::ContainerEventType::ContainerStoppedEvent);
}

async fn empty(rt: &Arc<Runtime>, whose: &str, cgroup: String) {
    let shared = Arc::clone(rt);
    if let Err(e) = rt.blocking.run(move || Ok(shared.cgroups.remove(&cgroup)?)).await {
        warn!(id = whose, "its cgroup is not empty: {e}");
    }
}

/// Ends a container whose supervisor is gone.
pub(crate) async fn end(rt: &Arc<Runtime>, container: &Arc<Container>) {
    delete(rt, &container.id).await;
    let pod = rt.find_pod(&container.pod).map(|p| p.record());
    if let Some(cgroup) = pod.and_then(|pod| container::cgroup(rt, &pod, &container.id)) {
        empty(rt, &container.id, cgroup).await;
    }
    match on_disk(rt, container).await {
        Some(exit) => container::ended(rt, container, exit, "", "").await,
        None => {
            let started_at = container.record().started_at;
            let exit = ExitRecord { exit_code: KILLED, started_at, finished_at: now(), oom: false };
            container::ended(rt, container, exit, LOST, LOST_MESSAGE).await;
        }
    }
}

/// `runc delete --force`: what the supervisor would have done. A container that the OCI runtime does not know is fine.
async fn delete(rt: &Arc<Runtime>, id: &str) {
    let mut call = tokio::process::Command::new(&rt.options.oci_runtime);
    call.arg("--root").arg(rt.options.oci_root()).args(["delete", "--force", id]);
    call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(DELETE_TIME, call.status()).await {
        Ok(Ok(_)) => {}
        Ok(Err(e)) => warn!(container = id, "the OCI runtime cannot be called: {e}"),
        Err(_) => warn!(container = id, "the OCI runtime did not end in {DELETE_TIME:?}"),
    }
}
