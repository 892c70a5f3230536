//! Getting a pod's volumes into place: tries until it is done. Effects: they know nothing of the actor.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use contract::volume::{MountedVolumes, VolumeError};
use metrics::actors::Phase;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod;
use tokio::time::Instant;

use crate::attempt::{Attempt, attempt, describe};
use crate::deps::Tools;
use crate::desired::{MountRequest, ObjectVersions};
use crate::failed::{ATTACH, Failed, GROW, NODE_AFFINITY, Told};
use crate::fetch;
use crate::persistent::{self, Expected};
use crate::refresh::FIRST_PAUSE;
use crate::spec;
use crate::task::{TaskContext, cancelled};

/// How long a pod waits for its volumes before its worker hears of it.
const WAIT: Duration = Duration::from_secs(123);
/// How long a pod that has all its volumes waits for drivers that are only told of them again.
const REPUBLISH_WAIT: Duration = Duration::from_secs(2);
/// What a pod is told for which the node has no place.
const NODE_FULL: &str = "Node has reached its volume attachment limit, rejecting pod.";

/// A try that is not over yet.
pub(crate) type Late = Pin<Box<dyn Future<Output = Option<Attempt>>>>;

/// As [`attempt`]. Drivers and disks may take longer than anybody waits: then the answer is the rest of the try.
async fn attempt_before(
    tools: &Tools,
    pod: &Pod,
    request: &MountRequest,
    (task, expected): (&TaskContext, &Expected),
    end: Instant,
) -> Result<Option<Attempt>, Late> {
    let uid = pod::uid(pod);
    if !spec::has_persistent(pod) {
        return Ok(attempt(tools, &uid, request, task, expected).await);
    }
    let (held, of, on, expected) = (tools.clone(), request.clone(), task.clone(), expected.clone());
    let mut tried: Late = Box::pin(async move { attempt(&held, &uid, &of, &on, &expected).await });
    tokio::select! {
        biased;
        out = &mut tried => Ok(out),
        () = task.clock.sleep(end.saturating_duration_since(task.clock.now())) => Err(tried),
    }
}

/// Answer of a MountVolumes.
pub(crate) type Answer = Result<Arc<MountedVolumes>, VolumeError>;

/// How a MountVolumes ended.
pub(crate) struct Ended {
    pub(crate) answer: Answer,
    /// The try that brought all into place.
    pub(crate) attempt: Option<Attempt>,
    /// A try that goes on.
    pub(crate) late: Option<Late>,
}

impl From<VolumeError> for Ended {
    fn from(e: VolumeError) -> Self {
        Self { answer: Err(e), attempt: None, late: None }
    }
}

/// Tries until all volumes are in place, one cannot be had, time is up, or the request is cancelled. `placed`: all are, and some
/// driver is to be told of them again.
pub(crate) async fn mount(
    tools: Tools,
    pod: Arc<Pod>,
    request: MountRequest,
    placed: Option<Arc<MountedVolumes>>,
    mut task: TaskContext,
    mut expected: Expected,
) -> Ended {
    let wait = if placed.is_some() { REPUBLISH_WAIT } else { WAIT };
    let began = task.clock.now();
    let mut pause = FIRST_PAUSE;
    loop {
        task.effects.hit("mount").await;
        let out = match attempt_before(&tools, &pod, &request, (&task, &expected), began + wait).await {
            Ok(out) => out,
            Err(late) => {
                let answer = placed.ok_or_else(|| too_late(&tools, &pod, &task));
                return Ended { answer, attempt: None, late: Some(late) };
            }
        };
        task.effects.hit("mounted").await;
        task.random = task.random.wrapping_add(1);
        expected = Expected::default();
        let Some(attempt) = out else { return cancelled().into() };
        let failed = &attempt.outcome.failed;
        if failed.is_empty() {
            Phase::Volumes.took(task.clock.now().saturating_duration_since(began));
            let answer = Ok(Arc::new(attempt.outcome.done.clone()));
            return Ended { answer, attempt: Some(attempt), late: None };
        }
        let hopeless: Vec<Failed> = failed.iter().filter(|f| f.hopeless).cloned().collect();
        if !hopeless.is_empty() {
            return not_mounted(failed, &hopeless, &describe(&hopeless)).into();
        }
        failed.iter().for_each(|f| emit_failed_mount(&tools, &pod, f));
        let next = until_next(failed, pause);
        if task.clock.now().saturating_duration_since(began) + next > WAIT {
            let mut error = not_mounted(failed, &[], &describe(failed));
            if persistent::is_node_full(&tools, &pod, failed, &task).await {
                error.message = format!("{NODE_FULL} {}", error.message);
                error.refused = true;
            }
            return error.into();
        }
        tokio::select! {
            () = task.clock.sleep(next) => if next >= pause { pause *= 2 },
            // What was missing may have come.
            () = objects_changed(&tools, &attempt.versions) => {}
            () = node_changed(&tools), if failed.iter().any(Failed::is_unattached) => {}
        }
    }
}

/// How long until the next try: as long as a volume itself says, and `pause` for what has no back-off of its own.
pub(crate) fn until_next<'a>(failed: impl IntoIterator<Item = &'a Failed>, pause: Duration) -> Duration {
    failed.into_iter().map(|f| f.wait.unwrap_or(pause)).min().unwrap_or(pause)
}

/// Waits until an object is known in another version than these.
async fn objects_changed(tools: &Tools, used: &ObjectVersions) {
    let board = &tools.versions;
    let mut changes = board.changes();
    while fetch::versions(board, used.keys().cloned()) == *used {
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Waits until the Node says something else: that a volume is attached.
async fn node_changed(tools: &Tools) {
    let mut node = tools.node.subscribe();
    node.borrow_and_update();
    if node.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The wait ends while a driver is still at work.
fn too_late(tools: &Tools, pod: &Pod, task: &TaskContext) -> VolumeError {
    let names = spec::used_volumes(pod).into_iter().filter(|(_, kind)| *kind == spec::Kind::Persistent);
    let names = names.map(|(v, _)| v.name.as_str()).collect::<Vec<_>>().join(" ");
    let cause = persistent::describe(tools, &pod::uid(pod), task);
    let cause = cause.unwrap_or_else(|| "timed out waiting for the condition".to_owned());
    let message = format!("unmounted volumes=[{names}], unattached volumes=[], failed to process volumes=[]: {cause}");
    // The try tells of itself when it fails.
    VolumeError { late: true, ..VolumeError::new(message) }
}

fn not_mounted(all: &[Failed], unprocessed: &[Failed], cause: &str) -> VolumeError {
    let names = |list: &[Failed]| list.iter().map(|f| f.volume.as_str()).collect::<Vec<_>>().join(" ");
    let message = format!(
        "unmounted volumes=[{}], unattached volumes=[{}], failed to process volumes=[{}]: {cause}",
        names(all),
        names(&all.iter().filter(|f| f.is_unattached()).cloned().collect::<Vec<_>>()),
        names(unprocessed)
    );
    // Of what is not attached the controller tells, of all else each try did.
    VolumeError { late: unprocessed.is_empty(), ..VolumeError::new(message) }
}

/// Tells users of a volume that is not in place.
pub(crate) fn emit_failed_mount(tools: &Tools, pod: &Pod, failed: &Failed) {
    let Told::Event { of_device, step, name } = &failed.told else { return };
    let object = EventObject::Pod {
        namespace: pod::namespace(pod).to_owned(),
        name: pod::name(pod).to_owned(),
        uid: pod::uid(pod),
        field_path: String::new(),
    };
    let (step, reason) = match (of_device, *step) {
        (_, ATTACH) => (format!("{ATTACH} failed"), "FailedAttachVolume"),
        (false, GROW) => (format!("MountVolume.{GROW}"), "FailedMount"),
        (false, step) => (format!("MountVolume.{step} failed"), "FailedMount"),
        (true, GROW) => ("MapVolume.MarkVolumeAsMounted failed while expanding volume".to_owned(), "FailedMapVolume"),
        (true, NODE_AFFINITY) => (format!("MapVolume.{NODE_AFFINITY} failed"), "FailedMount"),
        (true, step) => (format!("MapVolume.{step} failed"), "FailedMapVolume"),
    };
    let message = format!("{step} for volume \"{name}\" : {}", failed.error);
    tools.crew.emit(NodeEvent { kind: EventType::Warning, reason: reason.into(), message, object });
}
