//! Finds everything again when this server starts.

use std::sync::Arc;

use tracing::{info, warn};

use crate::error::Done;
use crate::records::{self, PodStage};
use crate::runtime::{Pod, Runtime};
use crate::{container, follow, sandbox};

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
        PodStage::Ready => match follow::follow(rt, pod).await {
            Ok(line) => {
                follow::spawn(rt, pod, line);
            }
            Err(e) => follow::lost(rt, pod, &e).await,
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
