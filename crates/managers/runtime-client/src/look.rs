//! One look at one pod: the reads, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Effects};
use cri_api::v1;
use futures::future::{join_all, try_join};
use model::runtime::ContainerState;
use model::{PodUid, SandboxId};
use ports::host::HostFs;
use ports::runtime::{ContainerRuntime, PodStatuses, RuntimeCode, RuntimeError, RuntimeResult};
use tokio::time::timeout;

use crate::message::Source;
use crate::seen::list::Listed;
use crate::seen::{Seen, map};

/// A look that takes longer has failed; the pod is looked at again later.
const LIMIT: Duration = Duration::from_secs(10);

/// What to look at.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) uid: PodUid,
    /// Everything; `Listed` when the lists are already known.
    pub(crate) whole: Option<Option<Listed>>,
    pub(crate) sandboxes: Vec<String>,
    pub(crate) containers: Vec<(String, SandboxId)>,
    /// Statuses that an event brought.
    pub(crate) carried: Vec<PodStatuses>,
    /// Termination messages of ended containers that are known already: files are read once.
    pub(crate) messages: BTreeMap<String, String>,
}

/// The way to files.
pub(crate) struct Files {
    pub(crate) fs: Arc<dyn HostFs>,
    pub(crate) effects: Effects,
}

/// Looks.
pub(crate) async fn look(runtime: Arc<dyn ContainerRuntime>, files: Files, work: Work) -> RuntimeResult<Seen> {
    let text = "the runtime did not tell about the pod within 10 s";
    let late = |_| RuntimeError::new(RuntimeCode::DeadlineExceeded, text);
    timeout(LIMIT, look_now(&*runtime, &files, work)).await.map_err(late)?
}

async fn look_now(runtime: &dyn ContainerRuntime, files: &Files, work: Work) -> RuntimeResult<Seen> {
    let mut seen = Seen { whole: work.whole.is_some(), ..Seen::default() };
    let (mut sandboxes, mut containers) = (work.sandboxes, work.containers);
    match work.whole {
        None => {}
        Some(Some(listed)) => {
            sandboxes.extend(listed.sandboxes.into_keys());
            containers.extend(listed.containers.into_iter().map(|(id, (_, sandbox))| (id, sandbox)));
        }
        Some(None) => {
            let (s, c) = list(runtime, &work.uid).await?;
            sandboxes.extend(s);
            containers.extend(c);
        }
    }
    for (sandbox, ids) in work.carried.iter().map(|c| (&c.sandbox, &c.containers)) {
        sandboxes.retain(|id| *id != sandbox.id);
        containers.retain(|(id, _)| !ids.iter().any(|c| c.id == *id));
    }
    sandboxes.sort();
    sandboxes.dedup();
    containers.sort();
    containers.dedup();
    let (s, c) = try_join(sandbox_statuses(runtime, sandboxes), container_statuses(runtime, containers)).await?;
    let mut statuses: Vec<(v1::ContainerStatus, SandboxId)> = Vec::new();
    for (id, status) in s {
        match status {
            Some(status) => take_sandbox(&mut seen, status),
            None => drop(seen.gone.insert(id)),
        }
    }
    for (id, sandbox, status) in c {
        match status {
            Some(status) => statuses.push((status, sandbox)),
            None => drop(seen.gone.insert(id)),
        }
    }
    for carried in work.carried {
        let sandbox = SandboxId::from(carried.sandbox.id.as_str());
        take_sandbox(&mut seen, carried.sandbox);
        statuses.extend(carried.containers.into_iter().map(|c| (c, sandbox.clone())));
    }
    for (status, sandbox) in statuses {
        if seen.names.is_none() {
            seen.names = map::names(&status.labels);
        }
        let message = message(files, &status, &work.messages).await;
        seen.containers.push(map::container(status, sandbox, message));
    }
    Ok(seen)
}

fn take_sandbox(seen: &mut Seen, status: v1::PodSandboxStatus) {
    if seen.names.is_none() {
        let meta = status.metadata.as_ref().map(|m| (m.namespace.clone(), m.name.clone()));
        seen.names = map::names(&status.labels).or(meta);
    }
    seen.sandboxes.push(map::sandbox(status));
}

type Ids = (Vec<String>, Vec<(String, SandboxId)>);

async fn list(runtime: &dyn ContainerRuntime, uid: &PodUid) -> RuntimeResult<Ids> {
    let label_selector = BTreeMap::from([(map::UID_LABEL.to_owned(), uid.to_string())]);
    let filter = v1::PodSandboxFilter { label_selector: label_selector.clone(), ..Default::default() };
    let sandboxes = runtime.list_pod_sandbox(v1::ListPodSandboxRequest { filter: Some(filter) });
    let filter = v1::ContainerFilter { label_selector, ..Default::default() };
    let containers = runtime.list_containers(v1::ListContainersRequest { filter: Some(filter) });
    let (sandboxes, containers) = try_join(sandboxes, containers).await?;
    let containers = containers.containers.into_iter().map(|c| (c.id, c.pod_sandbox_id.into()));
    Ok((sandboxes.items.into_iter().map(|s| s.id).collect(), containers.collect()))
}

async fn sandbox_statuses(
    runtime: &dyn ContainerRuntime,
    ids: Vec<String>,
) -> RuntimeResult<Vec<(String, Option<v1::PodSandboxStatus>)>> {
    let all = ids.into_iter().map(|id| async move {
        let request = v1::PodSandboxStatusRequest { pod_sandbox_id: id.clone(), verbose: false };
        match runtime.pod_sandbox_status(request).await {
            Ok(answer) => Ok((id, answer.status)),
            Err(e) if e.is_not_found() => Ok((id, None)),
            Err(e) => Err(e),
        }
    });
    join_all(all).await.into_iter().collect()
}

async fn container_statuses(
    runtime: &dyn ContainerRuntime,
    ids: Vec<(String, SandboxId)>,
) -> RuntimeResult<Vec<(String, SandboxId, Option<v1::ContainerStatus>)>> {
    let all = ids.into_iter().map(|(id, sandbox)| async move {
        let request = v1::ContainerStatusRequest { container_id: id.clone(), verbose: false };
        match runtime.container_status(request).await {
            Ok(answer) => Ok((id, sandbox, answer.status)),
            Err(e) if e.is_not_found() => Ok((id, sandbox, None)),
            Err(e) => Err(e),
        }
    });
    join_all(all).await.into_iter().collect()
}

/// The termination message; the runtime's own words while a container has not ended.
async fn message(files: &Files, status: &v1::ContainerStatus, known: &BTreeMap<String, String>) -> String {
    if map::state(status.state) != ContainerState::Exited {
        return status.message.clone();
    }
    if let Some(message) = known.get(&status.id) {
        return message.clone();
    }
    let source = Source::of(status);
    if source.is_plain() {
        return status.message.clone();
    }
    // A panic in there is one message less, not a failed look.
    let fs = files.fs.clone();
    files.effects.attempt(Class::HostFiles, move || source.read(&*fs)).await.unwrap_or_default()
}
