//! Getting a pod's volumes into place: one try, and tries until it is done. Effects: they know nothing of the actor.

use std::sync::Arc;
use std::time::Duration;

use contract::volume::{MountedVolumes, VolumeError};
use metrics::actors::Phase;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp, pod};
use tokio::time::Instant;

use crate::board;
use crate::class;
use crate::deps::Tools;
use crate::desired::{MountRequest, ObjectVersions};
use crate::failed::{ATTACH, Failed, GROW, NODE_AFFINITY, Told};
use crate::fetch;
use crate::persistent;
use crate::projected::Content;
use crate::refresh::FIRST_PAUSE;
use crate::set_up::{self, Outcome};
use crate::spec;
use crate::task::{TaskContext, cancelled};

/// How long a pod waits for its volumes before its worker hears of it.
const WAIT: Duration = Duration::from_secs(123);
/// What a pod is told for which the node has no place.
const NODE_FULL: &str = "Node has reached its volume attachment limit, rejecting pod.";

/// One try on all volumes of a pod.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The pod that it was made for.
    pub pod: Arc<Pod>,
    pub outcome: Outcome,
    /// What went into it.
    pub versions: ObjectVersions,
    /// When a token is to be asked for anew.
    pub due: Option<Timestamp>,
}

impl Attempt {
    /// Volumes that are not as they should be.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &Failed> {
        self.outcome.failed.iter().chain(&self.outcome.stale)
    }
}

/// One try: fetches, then writes in the pod's turn. `None` when the request was cancelled.
pub(crate) async fn attempt(
    tools: &Tools,
    uid: &PodUid,
    request: &MountRequest,
    task: &TaskContext,
) -> Option<Attempt> {
    let _turn = request.turn.lock().await;
    let pod = tools.deps.desired.get(uid)?.pod;
    let needs = fetch::needs(&pod);
    // Before the fetch: what changes meanwhile is seen to be newer.
    let versions = fetch::versions(&tools.versions, fetch::refs(&pod, &needs));
    let persistent = persistent::mount_all(tools, &pod, request, task);
    let ((fetched, due), persistent) = futures::join!(fetch::all(&tools.crew, &pod, &needs), persistent);
    let content = Content { fetched, persistent, now: Timestamp(task.clock.unix_nanos()), random: task.random };
    let (held, request, of) = (tools.clone(), request.clone(), pod.clone());
    let out = tools.deps.serial.run(uid, &task.effects, class::of_mount(&pod), move || {
        // Asked again inside of the pod's turn: an unmount may have come first.
        request.is_live().then(|| {
            let out = set_up::all(&held.deps, &held.config, &of, &content);
            let troubles: Vec<Failed> = out.failed.iter().chain(&out.stale).cloned().collect();
            board::post(&held, &pod::uid(&of), (!troubles.is_empty()).then(|| describe(&troubles)));
            out
        })
    });
    out.await.map(|outcome| Attempt { pod, outcome, versions, due })
}

/// As [`attempt`]. A driver that does not answer is not waited for beyond the end of the wait: what it was asked for is asked for
/// again with the next request.
async fn attempt_before(
    tools: &Tools,
    pod: &Pod,
    request: &MountRequest,
    task: &TaskContext,
    end: Instant,
) -> Result<Option<Attempt>, VolumeError> {
    let uid = pod::uid(pod);
    if !spec::has_persistent(pod) {
        return Ok(attempt(tools, &uid, request, task).await);
    }
    // Not dropped before it is told what it was at.
    let mut tried = std::pin::pin!(attempt(tools, &uid, request, task));
    tokio::select! {
        biased;
        out = &mut tried => Ok(out),
        () = task.clock.sleep(end.saturating_duration_since(task.clock.now())) => Err(too_late(tools, pod, task)),
    }
}

/// Answer of a MountVolumes.
pub(crate) type Answer = Result<Arc<MountedVolumes>, VolumeError>;

/// Tries until all volumes are in place, one cannot be had, time is up, or the request is cancelled.
pub(crate) async fn mount(
    tools: Tools,
    pod: Arc<Pod>,
    request: MountRequest,
    mut task: TaskContext,
) -> (Answer, Option<Attempt>) {
    let began = task.clock.now();
    let mut pause = FIRST_PAUSE;
    loop {
        task.effects.hit("mount").await;
        let out = match attempt_before(&tools, &pod, &request, &task, began + WAIT).await {
            Ok(out) => out,
            Err(e) => return (Err(e), None),
        };
        task.effects.hit("mounted").await;
        task.random = task.random.wrapping_add(1);
        let Some(attempt) = out else { return (Err(cancelled()), None) };
        let failed = &attempt.outcome.failed;
        if failed.is_empty() {
            Phase::Volumes.took(task.clock.now().saturating_duration_since(began));
            return (Ok(Arc::new(attempt.outcome.done.clone())), Some(attempt));
        }
        let hopeless: Vec<Failed> = failed.iter().filter(|f| f.hopeless).cloned().collect();
        if !hopeless.is_empty() {
            return (Err(not_mounted(failed, &hopeless, &describe(&hopeless))), None);
        }
        failed.iter().for_each(|f| emit_failed_mount(&tools, &pod, f));
        if task.clock.now().saturating_duration_since(began) + pause > WAIT {
            let mut error = not_mounted(failed, &[], &describe(failed));
            if persistent::is_node_full(&tools, &pod, failed, &task).await {
                error.message = format!("{NODE_FULL} {}", error.message);
                error.refused = true;
            }
            return (Err(error), None);
        }
        tokio::select! {
            () = task.clock.sleep(pause) => pause *= 2,
            // What was missing may have come.
            () = objects_changed(&tools, &attempt.versions) => {}
            () = node_changed(&tools), if failed.iter().any(Failed::is_unattached) => {}
        }
    }
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
    // No try has told of this.
    VolumeError::new(message)
}

fn describe(failed: &[Failed]) -> String {
    failed.iter().map(|f| f.error.as_str()).collect::<Vec<_>>().join("; ")
}

fn not_mounted(all: &[Failed], unprocessed: &[Failed], cause: &str) -> VolumeError {
    let names = |list: &[Failed]| list.iter().map(|f| f.volume.as_str()).collect::<Vec<_>>().join(" ");
    let message = format!(
        "unmounted volumes=[{}], unattached volumes=[{}], failed to process volumes=[{}]: {cause}",
        names(all),
        names(&all.iter().filter(|f| f.is_unattached()).cloned().collect::<Vec<_>>()),
        names(unprocessed)
    );
    // Who waits for a controller was told nothing so far.
    let late = unprocessed.is_empty() && !all.iter().any(Failed::is_unattached);
    VolumeError { late, ..VolumeError::new(message) }
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
