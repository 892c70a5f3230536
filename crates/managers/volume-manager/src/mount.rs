//! Getting a pod's volumes into place: one try, and tries until it is done. Effects: they know nothing of the actor.

use std::sync::Arc;
use std::time::Duration;

use actor::{Clock, Effects};
use contract::volume::{MountedVolumes, VolumeError};
use metrics::actors::Phase;
use model::core::Pod;
use model::event::{EventObject, EventType, NodeEvent};
use model::{PodUid, Timestamp, pod};

use crate::board;
use crate::class;
use crate::deps::Tools;
use crate::desired::{MountRequest, ObjectVersions};
use crate::fetch;
use crate::projected::Content;
use crate::refresh::FIRST_PAUSE;
use crate::set_up::{self, Failed, Outcome};

/// How long a pod waits for its volumes before its worker hears of it.
const WAIT: Duration = Duration::from_secs(123);

/// Time, effects and randomness for work that runs while the actor goes on.
#[derive(Debug)]
pub(crate) struct TaskContext {
    pub clock: Clock,
    pub effects: Effects,
    pub random: u32,
}

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
    let (fetched, due) = fetch::all(&tools.crew, &pod, &needs).await;
    let content = Content { fetched, now: Timestamp(task.clock.unix_nanos()), random: task.random };
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
        let out = attempt(&tools, &pod::uid(&pod), &request, &task).await;
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
            return (Err(not_mounted(failed, &[], &describe(failed))), None);
        }
        tokio::select! {
            () = task.clock.sleep(pause) => pause *= 2,
            // What was missing may have come.
            () = objects_changed(&tools, &attempt.versions) => {}
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

fn describe(failed: &[Failed]) -> String {
    failed.iter().map(|f| f.error.as_str()).collect::<Vec<_>>().join("; ")
}

fn not_mounted(all: &[Failed], unprocessed: &[Failed], cause: &str) -> VolumeError {
    let names = |list: &[Failed]| list.iter().map(|f| f.volume.as_str()).collect::<Vec<_>>().join(" ");
    let message = format!(
        "unmounted volumes=[{}], unattached volumes=[], failed to process volumes=[{}]: {cause}",
        names(all),
        names(unprocessed)
    );
    VolumeError { message, late: unprocessed.is_empty() }
}

/// What a request hears whose pod was unmounted meanwhile.
pub(crate) fn cancelled() -> VolumeError {
    VolumeError::new("the pod no longer wants its volumes")
}

/// Tells users of a volume that is not in place.
pub(crate) fn emit_failed_mount(tools: &Tools, pod: &Pod, failed: &Failed) {
    let object = EventObject::Pod {
        namespace: pod::namespace(pod).to_owned(),
        name: pod::name(pod).to_owned(),
        uid: pod::uid(pod),
        field_path: String::new(),
    };
    let message = format!("MountVolume.SetUp failed for volume \"{}\" : {}", failed.volume, failed.error);
    tools.crew.emit(NodeEvent { kind: EventType::Warning, reason: "FailedMount".into(), message, object });
}
