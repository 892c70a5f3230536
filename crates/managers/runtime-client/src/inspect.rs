//! One inspection of one pod: the reads, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Effects};
use cri_api::v1;
use futures::future::{join_all, try_join};
use model::runtime::ContainerState;
use model::{PodUid, SandboxId, Timestamp};
use ports::host::HostFs;
use ports::runtime::{ContainerRuntime, PodStatuses, RuntimeCode, RuntimeError, RuntimeResult};
use tokio::time::timeout;

use crate::message::Source;
use crate::view::list::Listed;
use crate::view::{Inspected, map};

/// An inspection that takes longer has failed; the pod is inspected again later.
const LIMIT: Duration = Duration::from_secs(10);

/// How much of a pod is inspected. What is named is asked for in any case; of everything that is as a rule all that is known, as lists may lack
/// something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What is named, and nothing else.
    #[default]
    Named,
    /// Everything, by the ids of a relist that began at this count and time.
    Listed(Listed, u64, Timestamp),
    /// Everything; the inspection lists the ids itself.
    All,
}

/// What to inspect.
#[derive(Clone, Debug)]
pub(crate) struct Inspection {
    pub(crate) uid: PodUid,
    pub(crate) scope: Scope,
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

/// Reads what is to be inspected.
pub(crate) async fn inspect(
    runtime: Arc<dyn ContainerRuntime>,
    files: Files,
    inspection: Inspection,
) -> RuntimeResult<Inspected> {
    let text = "the runtime did not tell about the pod within 10 s";
    let late = |_| RuntimeError::new(RuntimeCode::DeadlineExceeded, text);
    timeout(LIMIT, read(&*runtime, &files, inspection)).await.map_err(late)?
}

async fn read(runtime: &dyn ContainerRuntime, files: &Files, inspection: Inspection) -> RuntimeResult<Inspected> {
    let mut out = Inspected { complete: inspection.scope != Scope::Named, ..Inspected::default() };
    let (sandboxes, containers) = ids(runtime, &inspection).await?;
    let (sandboxes, containers) =
        try_join(sandbox_statuses(runtime, sandboxes), container_statuses(runtime, containers)).await?;
    let mut statuses: Vec<(v1::ContainerStatus, SandboxId)> = Vec::new();
    for (id, status) in sandboxes {
        match status {
            Some(status) => add_sandbox(&mut out, status),
            None => drop(out.gone.insert(id)),
        }
    }
    for (id, sandbox, status) in containers {
        match status {
            Some(status) => statuses.push((status, sandbox)),
            None => drop(out.gone.insert(id)),
        }
    }
    for carried in inspection.carried {
        let sandbox = SandboxId::from(carried.sandbox.id.as_str());
        add_sandbox(&mut out, carried.sandbox);
        statuses.extend(carried.containers.into_iter().map(|c| (c, sandbox.clone())));
    }
    for (status, sandbox) in statuses {
        if out.names.is_none() {
            out.names = map::names(&status.labels);
        }
        let message = message(files, &status, &inspection.messages).await;
        out.containers.push(map::container(status, sandbox, message));
    }
    Ok(out)
}

/// Ids whose statuses are to be read: each once, and none that an event has brought.
async fn ids(runtime: &dyn ContainerRuntime, inspection: &Inspection) -> RuntimeResult<Ids> {
    let (mut sandboxes, mut containers) = (inspection.sandboxes.clone(), inspection.containers.clone());
    match &inspection.scope {
        Scope::Named => {}
        Scope::Listed(listed, ..) => {
            sandboxes.extend(listed.sandboxes.keys().cloned());
            containers.extend(listed.containers.iter().map(|(id, (_, sandbox))| (id.clone(), sandbox.clone())));
        }
        Scope::All => {
            let (s, c) = list(runtime, &inspection.uid).await?;
            sandboxes.extend(s);
            containers.extend(c);
        }
    }
    for carried in &inspection.carried {
        sandboxes.retain(|id| *id != carried.sandbox.id);
        containers.retain(|(id, _)| !carried.containers.iter().any(|c| c.id == *id));
    }
    sandboxes.sort();
    sandboxes.dedup();
    containers.sort();
    containers.dedup();
    Ok((sandboxes, containers))
}

fn add_sandbox(out: &mut Inspected, status: v1::PodSandboxStatus) {
    if out.names.is_none() {
        let meta = status.metadata.as_ref().map(|m| (m.namespace.clone(), m.name.clone()));
        out.names = map::names(&status.labels).or(meta);
    }
    out.sandboxes.push(map::sandbox(status));
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
    // A panic in there is one message less, not a failed inspection.
    let fs = files.fs.clone();
    files.effects.attempt(Class::HostFiles, move || source.read(&*fs)).await.unwrap_or_default()
}
