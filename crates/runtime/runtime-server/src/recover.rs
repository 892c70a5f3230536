//! Finds everything again when this server starts.
//!
//! Nothing here waits for a network: a pod that has to be taken down is, once calls are taken. The network may be given by an agent
//! that is a pod itself, and could never start otherwise.

use std::sync::Arc;
use std::time::Duration;

use cri_api::v1;
use futures::StreamExt;
use futures::stream;
use tracing::{info, warn};

use crate::blocking::Class;
use crate::error::Done;
use crate::records::{self, Broken, ContainerRecord, Found, PodStage};
use crate::runtime::{Pod, Runtime};
use crate::supervisor::SupervisorError;
use crate::{broken, bundle, follow, joining, sandbox};

/// Pods that are taken up, or down, at a time.
const AT_A_TIME: usize = 16;
/// The pause before the rest of a pod that nobody can ask for is tried again; it doubles from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// What has to go, and may take its time.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Beginnings that a crash cut short. They are sandboxes that are not ready.
    halves: Vec<Arc<Pod>>,
    /// Pods that cannot be served. Nobody knows them.
    broken: Vec<Broken>,
}

/// Reads what is on the disk, and asks each supervisor; answers what is left to do. What is wrong with one pod keeps no other one from
/// being served.
pub(crate) async fn everything(rt: &Arc<Runtime>) -> Done<Rest> {
    let shared = Arc::clone(rt);
    let found = rt.blocking.run(Class::State, move || records::read_all(&shared.options)).await?;
    let (rest, containers) = take_in(rt, found);
    // Before anybody may remove their pods. One that is not gone is told, and tried again when the server starts anew.
    let end = |one| async move {
        let _gone = broken::end(rt, one).await;
    };
    stream::iter(&containers).for_each_concurrent(AT_A_TIME, end).await;
    let pods = rt.pods();
    stream::iter(&pods).for_each_concurrent(AT_A_TIME, |pod| take_up(rt, pod)).await;
    info!(pods = rt.pods().len(), containers = rt.containers().len(), "recovered");
    Ok(rest)
}

/// Takes down what is left. A sandbox that does not go stays known as one that is not ready: its kubelet stops and removes it. What
/// nobody knows of is tried until it is gone.
pub(crate) async fn take_down(rt: Arc<Runtime>, Rest { halves, broken }: Rest) {
    let removed = stream::iter(halves).for_each_concurrent(AT_A_TIME, |pod| remove(Arc::clone(&rt), pod));
    let ended = stream::iter(broken).for_each_concurrent(AT_A_TIME, |one| end_broken(Arc::clone(&rt), one));
    futures::join!(removed, ended);
}

async fn remove(rt: Arc<Runtime>, pod: Arc<Pod>) {
    if let Err(e) = sandbox::remove(&rt, &pod.id).await {
        warn!(pod = pod.id, "a sandbox over whose making the server died is not gone yet: {e}");
    }
}

async fn end_broken(rt: Arc<Runtime>, one: Broken) {
    let mut pause = PAUSES.0;
    while !broken::end(&rt, &one).await {
        tokio::time::sleep(pause).await;
        pause = PAUSES.1.min(pause * 2);
    }
}

/// Answers what has to be taken down, and containers that cannot be served of pods that can.
fn take_in(rt: &Runtime, found: Found) -> (Rest, Vec<Broken>) {
    let (mut rest, mut broken) = (Rest::default(), Vec::new());
    for one in found.broken {
        if one.container.is_some() { broken.push(one) } else { rest.broken.push(one) }
    }
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
        let (id, half) = (record.id.clone(), record.stage == PodStage::Starting);
        match rt.add_pod(record) {
            Ok(pod) if half => {
                // Not on the disk, where the next server finds that it was never ready.
                pod.change(|r| r.stage = PodStage::NotReady);
                rest.halves.push(pod);
            }
            Ok(_) => {}
            Err(e) => rest.broken.push(Broken { pod: id, container: None, why: e.to_string() }),
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
    (rest, broken)
}

/// Whether this process died over the making of a container, in this boot: it could never be started. After a boot there is no
/// bundle of any, and what ran may not have been noted.
fn is_half_made(rt: &Runtime, record: &ContainerRecord) -> bool {
    let made = || rt.options.bundle(&record.pod, &record.id).join(bundle::CONFIG).exists();
    record.state() == v1::ContainerState::ContainerCreated && rt.options.pod_run(&record.pod).exists() && !made()
}

async fn take_up(rt: &Arc<Runtime>, pod: &Arc<Pod>) {
    match pod.record().stage {
        PodStage::Ready => match follow::follow(rt, pod).await {
            Ok(line) => {
                joining::again(rt, pod, line.peer()).await;
                follow::spawn(rt, pod, Some(line));
            }
            Err(e @ SupervisorError::Gone) => follow::lost(rt, pod, &e).await,
            Err(e) => {
                warn!(pod = pod.id, "the supervisor is there and does not answer; it is asked again: {e}");
                follow::spawn(rt, pod, None);
            }
        },
        PodStage::Starting | PodStage::NotReady => follow::settle(rt, pod).await,
    }
}
