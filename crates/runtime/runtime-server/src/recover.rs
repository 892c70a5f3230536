//! Finds everything again when this server starts.

use std::sync::Arc;

use cri_api::v1;
use futures::StreamExt;
use futures::stream;
use tracing::{info, warn};

use crate::error::Done;
use crate::records::{self, Broken, ContainerRecord, Found, PodStage};
use crate::runtime::{Pod, Runtime};
use crate::supervisor::SupervisorError;
use crate::{broken, container, follow, sandbox};

/// Pods that are taken up at a time.
const AT_A_TIME: usize = 16;

/// Reads what is on the disk, and asks each supervisor. Beginnings that a crash cut short are taken down. What is wrong with one pod
/// keeps no other one from being served.
pub(crate) async fn everything(rt: &Arc<Runtime>) -> Done<()> {
    let shared = Arc::clone(rt);
    let found = rt.blocking.run(move || records::read_all(&shared.options)).await?;
    let broken = take_in(rt, found);
    stream::iter(broken).for_each_concurrent(AT_A_TIME, |one| broken::end(rt, one)).await;
    let pods = rt.pods();
    stream::iter(&pods).for_each_concurrent(AT_A_TIME, |pod| take_up(rt, pod)).await;
    info!(pods = rt.pods().len(), containers = rt.containers().len(), "recovered");
    Ok(())
}

/// Answers what cannot be served.
fn take_in(rt: &Runtime, found: Found) -> Vec<Broken> {
    let mut broken = found.broken;
    let mut sandboxes = found.sandboxes;
    for record in sandboxes.iter_mut().filter(|r| r.stage == PodStage::Starting) {
        // The record says so a moment later than whoever asked was told.
        match records::read_ready(&rt.options, &record.id) {
            Ok(Some(network)) => (record.stage, record.network) = (PodStage::Ready, network),
            Ok(None) => {}
            Err(e) => warn!(pod = record.id, "whether it was ready cannot be read: {e}"),
        }
    }
    // Of two with one name, the one that was told of stays.
    sandboxes.sort_by_key(|r| r.stage != PodStage::Ready);
    for record in sandboxes {
        let pod = record.id.clone();
        if let Err(e) = rt.add_pod(record) {
            broken.push(Broken { pod, container: None, why: e.to_string() });
        }
    }
    for record in found.containers.into_iter().filter(|c| rt.find_pod(&c.pod).is_some()) {
        let (pod, id) = (record.pod.clone(), record.id.clone());
        if is_half_made(rt, &record) {
            let why = "its making was cut short, and nobody was told of it".to_owned();
            broken.push(Broken { pod, container: Some(id), why });
            continue;
        }
        if let Err(e) = rt.add_container(record) {
            broken.push(Broken { pod, container: Some(id), why: e.to_string() });
        }
    }
    broken
}

/// Whether this process died over the making of a container, in this boot: it could never be started. After a boot there is no
/// bundle of any, and what ran may not have been noted.
fn is_half_made(rt: &Runtime, record: &ContainerRecord) -> bool {
    let made = || rt.options.bundle(&record.pod, &record.id).join(container::CONFIG).exists();
    record.state() == v1::ContainerState::ContainerCreated && rt.options.pod_run(&record.pod).exists() && !made()
}

async fn take_up(rt: &Arc<Runtime>, pod: &Arc<Pod>) {
    match pod.record().stage {
        PodStage::Ready => match follow::follow(rt, pod).await {
            Ok(line) => follow::spawn(rt, pod, Some(line)),
            Err(e @ SupervisorError::Gone) => follow::lost(rt, pod, &e).await,
            Err(e) => {
                warn!(pod = pod.id, "the supervisor is there and does not answer; it is asked again: {e}");
                follow::spawn(rt, pod, None);
            }
        },
        // Nobody was told of it.
        PodStage::Starting => {
            for stopped in [sandbox::stop(rt, &pod.id).await, sandbox::remove(rt, &pod.id).await] {
                if let Err(e) = stopped {
                    warn!(pod = pod.id, "a sandbox that was being made is not gone yet: {e}");
                }
            }
        }
        PodStage::NotReady => follow::settle(rt, pod).await,
    }
}
