//! Follows the supervisors of pods.
//!
//! One that answers says what its containers do. One whose socket nobody listens on is gone, with whatever it held: its containers are
//! killed by their cgroups, and how they ended is what it had written, or else that this happened. One that is there and does not
//! answer, or cannot be asked now, is left alone and asked again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cri_api::v1;
use pod_supervisor::Held;
use pod_supervisor::wire::{Answer, Request};
use tracing::warn;

use crate::records::PodStage;
use crate::runtime::{Pod, Runtime};
use crate::supervisor::{Line, SupervisorError};
use crate::{ends, starts};

/// How long a supervisor may take to say what it holds.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// Pauses before one that does not answer is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Watches the supervisor of a pod from now on; `None`: it has to be asked first.
pub(crate) fn spawn(rt: &Arc<Runtime>, pod: &Arc<Pod>, line: Option<Line>) {
    let (rt, pod) = (Arc::clone(rt), Arc::clone(pod));
    tokio::spawn(async move { keep(&rt, &pod, line).await });
}

/// Follows until the pod is stopped or its supervisor is gone. A line that is there is followed to its end in any case: whoever stops the pod, maybe
/// before this began, waits for what is told there.
async fn keep(rt: &Arc<Runtime>, pod: &Arc<Pod>, mut line: Option<Line>) {
    let mut pause = Duration::ZERO;
    while line.is_some() || pod.record().stage == PodStage::Ready {
        let failed = match line.take() {
            Some(line) => {
                let since = Instant::now();
                let failed = until_its_end(rt, pod, line).await;
                if since.elapsed() > LONGEST_PAUSE {
                    pause = Duration::ZERO;
                }
                failed
            }
            None => match follow(rt, pod).await {
                Ok(answered) => {
                    line = Some(answered);
                    continue;
                }
                Err(SupervisorError::Gone) if pod.record().stage != PodStage::Ready => return,
                Err(e @ SupervisorError::Gone) => return lost(rt, pod, &e).await,
                Err(e) => e,
            },
        };
        if !pause.is_zero() {
            warn!(pod = pod.id, "the supervisor is asked again in {pause:?}: {failed}");
            tokio::time::sleep(pause).await;
        }
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

/// Connects, and takes in what the supervisor knows.
pub(crate) async fn follow(rt: &Arc<Runtime>, pod: &Arc<Pod>) -> Result<Line, SupervisorError> {
    let socket = rt.socket(&pod.id);
    let asked = async {
        let mut line = Line::open(&socket, &Request::Watch, &[]).await?;
        let answer = line.answer().await?;
        Ok::<_, SupervisorError>((line, answer))
    };
    let (line, answer) = tokio::time::timeout(FIRST_ANSWER, asked).await.map_err(|_| SupervisorError::Late)??;
    match answer {
        Answer::State { containers } => take_in(rt, pod, containers).await,
        other => return Err(SupervisorError::Strange(format!("{other:?}"))),
    }
    Ok(line)
}

async fn take_in(rt: &Arc<Runtime>, pod: &Arc<Pod>, held: Vec<Held>) {
    for held in held {
        let Some(container) = rt.find_container(&held.id) else { continue };
        if held.started_at != 0 {
            starts::take_in(rt, &container, held.pid, held.started_at);
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

/// Takes in what the supervisor tells; answers why it tells no more.
async fn until_its_end(rt: &Arc<Runtime>, pod: &Arc<Pod>, mut line: Line) -> SupervisorError {
    loop {
        match line.answer().await {
            Ok(Answer::Began { id, pid, started_at }) => {
                if let Some(container) = rt.find_container(&id) {
                    starts::take_in(rt, &container, pid, started_at);
                }
            }
            Ok(Answer::Event { id, exit }) => {
                if let Some(container) = rt.find_container(&id) {
                    ends::take_in(rt, &container, exit, "", "").await;
                }
            }
            Ok(other) => warn!(pod = pod.id, "the supervisor tells something strange: {other:?}"),
            Err(e) => return e,
        }
    }
}

/// The supervisor is gone: its containers end, and the sandbox is not ready any more.
pub(crate) async fn lost(rt: &Arc<Runtime>, pod: &Arc<Pod>, e: &SupervisorError) {
    warn!(pod = pod.id, "the supervisor is lost, its containers are ended: {e}");
    pod.change(|r| r.stage = PodStage::NotReady);
    if let Err(e) = rt.write_pod(pod).await {
        warn!(pod = pod.id, "{e}");
    }
    ends::left_by_supervisor(rt, &pod.id).await;
    for container in rt.containers_of(&pod.id) {
        if ends::may_run(rt, &container) {
            ends::make(rt, &container, ends::LOST).await;
        }
    }
    rt.happened(&pod.id, &pod.id, v1::ContainerEventType::ContainerStoppedEvent);
}
