//! Pods and containers that cannot be served, as there is no record of them that can be understood: what runs of them is ended, and
//! what is there of them goes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use pod_supervisor::wire::{Answer, Request};
use pod_supervisor::{NAMESPACES, PLAN, PodPlan, record};
use ports::host::CgroupFs;
use tracing::warn;

use crate::blocking::Class;
use crate::error::Done;
use crate::records::{self, Broken};
use crate::runtime::Runtime;
use crate::supervisor::{self, Line, SupervisorError};
use crate::{cgroups, container, ends, sandbox};

/// How long the supervisor of such a pod may take to see its containers end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends one; answers whether it is gone. What is not is tried again when the server starts anew, at the latest.
pub(crate) async fn end(rt: &Arc<Runtime>, broken: &Broken) -> bool {
    let Broken { pod, container, why } = broken;
    warn!(pod, container, "it cannot be served and goes: {why}");
    let gone = match container {
        Some(id) => end_container(rt, pod, id).await,
        None => end_pod(rt, pod).await,
    };
    if let Err(e) = &gone {
        warn!(pod, container, "it is not gone yet: {e}");
    }
    gone.is_ok()
}

async fn end_container(rt: &Arc<Runtime>, pod: &str, id: &str) -> Done<()> {
    ends::delete(rt, pod, id).await;
    let (shared, pod, id) = (Arc::clone(rt), pod.to_owned(), id.to_owned());
    rt.blocking.run(Class::Removal, move || container::erase(&shared, &pod, &id)).await
}

async fn end_pod(rt: &Arc<Runtime>, pod: &str) -> Done<()> {
    let (shared, id) = (Arc::clone(rt), pod.to_owned());
    let ids =
        rt.blocking.run(Class::State, move || records::containers_of(&shared.options, &id)).await.unwrap_or_default();
    for id in &ids {
        ends::delete(rt, pod, id).await;
    }
    match tokio::time::timeout(PATIENCE, end_supervisor(rt, pod)).await {
        Ok(Ok(()) | Err(SupervisorError::Gone)) => {}
        Ok(Err(e)) => warn!(pod, "its supervisor is killed: {e}"),
        Err(_) => warn!(pod, "its supervisor is killed: it did not end in {PATIENCE:?}"),
    }
    let namespace = rt.options.pod_run(pod).join(NAMESPACES).join("net");
    let namespace = namespace.exists().then_some(namespace);
    rt.networks.remove(pod, &v1::PodSandboxConfig::default(), namespace.as_deref()).await?;
    let (shared, id) = (Arc::clone(rt), pod.to_owned());
    let rest = move || {
        // Without a plan there was no supervisor either.
        if let Ok(plan) = record::read_record::<PodPlan>(&shared.options.pod_run(&id).join(PLAN)) {
            for cgroup in plan.cgroup_procs.iter().filter_map(|file| cgroups::of_procs_file(&shared, file)) {
                shared.cgroups.remove(&cgroup)?;
            }
        }
        for container in &ids {
            shared.images.release(container)?;
        }
        sandbox::erase_files(&shared, &id)
    };
    rt.blocking.run(Class::Removal, rest).await
}

/// Waits for the ends of what was killed, and has the supervisor end.
async fn end_supervisor(rt: &Arc<Runtime>, pod: &str) -> Result<(), SupervisorError> {
    let socket = rt.socket(pod);
    let mut line = Line::open(&socket, &Request::Watch, &[]).await?;
    let mut running = match line.answer().await? {
        Answer::State { containers } => {
            containers.into_iter().filter(|c| c.exit.is_none()).map(|c| c.id).collect::<BTreeSet<_>>()
        }
        other => return Err(SupervisorError::Strange(format!("{other:?}"))),
    };
    while !running.is_empty() {
        if let Answer::Event { id, .. } = line.answer().await? {
            running.remove(&id);
        }
    }
    supervisor::ask(&socket, pod, &Request::End).await.map(drop)
}
