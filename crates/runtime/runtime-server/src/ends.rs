//! How containers end: told by their supervisor, found on the disk, or made to where there is no supervisor any more.

use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use pod_supervisor::ExitRecord;
use ports::host::CgroupFs;
use tracing::warn;

use crate::blocking::Class;
use crate::runtime::{Container, Runtime};
use crate::{bundle, cgroups, records};

/// Reason and message where there is no supervisor any more.
pub(crate) const LOST: (&str, &str) =
    ("SupervisorLost", "the pod's supervisor ended, and its containers were killed with it");
/// Reason and message where there is one that says nothing.
pub(crate) const MUTE: (&str, &str) =
    ("SupervisorMute", "the pod's supervisor did not answer, and the container was killed by its cgroup");
/// 128 and SIGKILL.
const KILLED: i32 = 137;
const DELETE_TIME: Duration = Duration::from_secs(30);

/// Takes in that a container has ended. Told twice is told once.
pub(crate) async fn take_in(
    rt: &Arc<Runtime>,
    container: &Arc<Container>,
    exit: ExitRecord,
    reason: &str,
    message: &str,
) {
    let mut first = false;
    container.change(|r| {
        first = r.exit.is_none();
        if first {
            // A power cut may have come before the record of the start.
            r.started_at = if r.started_at == 0 { exit.started_at } else { r.started_at };
            r.exit = Some(exit);
            (r.reason, r.message) = (reason.to_owned(), message.to_owned());
        }
    });
    if !first {
        return;
    }
    if let Err(e) = rt.write_container(container).await {
        // The supervisor's own record is on the disk: nothing is lost.
        warn!(container = container.id, "the end of a container is not in its record yet: {e}");
    }
    container.ended.send_replace(true);
    rt.happened(&container.id, &container.pod, v1::ContainerEventType::ContainerStoppedEvent);
}

/// What the supervisor has written.
pub(crate) async fn on_disk(rt: &Arc<Runtime>, container: &Arc<Container>) -> Option<ExitRecord> {
    let (shared, pod, id) = (Arc::clone(rt), container.pod.clone(), container.id.clone());
    match rt.blocking.run(Class::State, move || records::read_exit(&shared.options, &pod, &id)).await {
        Ok(exit) => exit,
        Err(e) => {
            warn!(container = container.id, "how it ended cannot be read: {e}");
            None
        }
    }
}

/// Whether there may be a process of a container: it runs, or its start was begun and nobody was told how that went.
pub(crate) fn may_run(rt: &Runtime, container: &Container) -> bool {
    match container.record().state() {
        v1::ContainerState::ContainerExited => false,
        v1::ContainerState::ContainerCreated => {
            rt.find_pod(&container.pod).is_some_and(|pod| cgroups::has_container(rt, &pod.record(), &container.id))
        }
        _ => true,
    }
}

/// Ends a container whose supervisor is gone or mute.
pub(crate) async fn make(rt: &Arc<Runtime>, container: &Arc<Container>, (reason, message): (&str, &str)) {
    delete(rt, &container.pod, &container.id).await;
    let pod = rt.find_pod(&container.pod).map(|p| p.record());
    if let Some(cgroup) = pod.and_then(|pod| cgroups::of_container(rt, &pod, &container.id)) {
        empty(rt, &container.id, cgroup).await;
    }
    match on_disk(rt, container).await {
        Some(exit) => take_in(rt, container, exit, "", "").await,
        None => {
            let started_at = container.record().started_at;
            let exit = ExitRecord { exit_code: KILLED, started_at, finished_at: pod_supervisor::now(), oom: false };
            take_in(rt, container, exit, reason, message).await;
        }
    }
}

/// Ends what a supervisor that is gone has left beside containers: process 1 of a shared PID namespace, and the OCI runtime where it is
/// at something, which could make a container yet.
pub(crate) async fn left_by_supervisor(rt: &Arc<Runtime>, pod: &str) {
    if let Some(cgroup) = rt.find_pod(pod).and_then(|p| cgroups::of_sandbox(rt, &p.record())) {
        empty(rt, pod, cgroup).await;
    }
}

/// Kills what runs in a cgroup, and removes it.
pub(crate) async fn empty(rt: &Arc<Runtime>, whose: &str, cgroup: String) {
    let shared = Arc::clone(rt);
    if let Err(e) = rt.blocking.run(Class::State, move || Ok(shared.cgroups.remove(&cgroup)?)).await {
        warn!(id = whose, "its cgroup is not empty: {e}");
    }
}

/// What the supervisor would have done: `runc delete --force`, or the end of its cgroup. A container that was not started is fine.
pub(crate) async fn delete(rt: &Arc<Runtime>, pod: &str, id: &str) {
    if rt.options.is_own_start(pod, id) {
        // Its pod may have no record that says where it is.
        let bundle = rt.options.bundle(pod, id);
        let spec = rt.blocking.run(Class::State, move || bundle::spec(&bundle)).await.ok();
        let cgroup = spec.and_then(|spec| spec.linux().as_ref()?.cgroups_path().as_ref()?.to_str().map(str::to_owned));
        if let Some(cgroup) = cgroup.filter(|path| !path.contains(':')) {
            empty(rt, id, cgroup).await;
        }
    }
    for handler in rt.handlers.that_know(id) {
        let mut call = handler.call();
        match tokio::time::timeout(DELETE_TIME, call.args(["delete", "--force", id]).status()).await {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => warn!(container = id, "the OCI runtime does not delete it: {status}"),
            Ok(Err(e)) => warn!(container = id, "the OCI runtime cannot be called: {e}"),
            Err(_) => warn!(container = id, "the OCI runtime did not end in {DELETE_TIME:?}"),
        }
    }
}
