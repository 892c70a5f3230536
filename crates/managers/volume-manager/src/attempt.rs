//! One try on all volumes of a pod.
//!
//! What can be set up at once is set up while the rest waits for an answer of somebody else: a token, a certificate, a driver.

use std::sync::Arc;

use model::core::{Pod, Volume};
use model::{PodUid, Timestamp, pod};

use crate::board;
use crate::class;
use crate::deps::Tools;
use crate::desired::{DesiredPod, MountRequest, ObjectVersions};
use crate::failed::Failed;
use crate::fetch;
use crate::persistent::{self, Expected};
use crate::placed::Outcomes;
use crate::projected::Content;
use crate::set_up::{self, Outcome};
use crate::spec::{self, Kind};
use crate::task::TaskContext;

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
        self.outcome.troubles()
    }
}

/// One try: fetches, then writes in the pod's turn. `None` when the request was cancelled. `expected`: what was looked up before.
pub(crate) async fn attempt(
    tools: &Tools,
    uid: &PodUid,
    request: &MountRequest,
    task: &TaskContext,
    expected: &Expected,
) -> Option<Attempt> {
    let _turn = request.turn.lock().await;
    let desired = tools.deps.desired.get(uid)?;
    let pod = desired.pod.clone();
    let needs = fetch::needs(&pod);
    // Before the fetch: what changes meanwhile is seen to be newer.
    let versions = fetch::versions(&tools.versions, fetch::refs(&pod, &needs));
    let (first, rest) = parts(tools, &desired);
    let place = |volumes, content, before| place(tools, &pod, request, task, (volumes, content, before));
    let content = |fetched, persistent| {
        let now = Timestamp(task.clock.unix_nanos());
        Content { fetched, persistent, now, random: task.random }
    };
    let at_once = async {
        let objects = fetch::objects(&tools.crew, &pod, &needs).await;
        let placed = match first {
            Some(first) => place(first, content(objects.clone(), Outcomes::new()), Outcome::default()).await?,
            None => Outcome::default(),
        };
        Some((objects, placed))
    };
    let persistent = persistent::mount_all(tools, &pod, request, task, expected);
    let answers = async { futures::join!(fetch::granted(&tools.crew, &pod, &needs), persistent) };
    let (at_once, (granted, persistent)) = futures::join!(at_once, answers);
    let (objects, placed) = at_once?;
    let due = granted.due();
    let outcome = place(rest, content(granted.join(objects), persistent), placed).await?;
    Some(Attempt { outcome, pod, versions, due })
}

/// Names of volumes that are set up together.
type Part = Vec<String>;

/// Volumes that are set up before others, which wait for an answer of somebody else, if there are both kinds; and the others.
fn parts(tools: &Tools, desired: &DesiredPod) -> (Option<Part>, Part) {
    let mut used = spec::used_volumes(&desired.pod);
    // Of others than this node.
    used.retain(|(_, kind)| *kind != Kind::Image);
    let waits = |(volume, kind): &(&Volume, Kind)| waits(tools, desired, volume, kind);
    // What became of persistent volumes is known at the end of a try alone, of those that are in place, too.
    let some = used.iter().any(waits);
    let (rest, first): (Vec<_>, Vec<_>) =
        used.iter().partition(|one| some && (one.1 == Kind::Persistent || waits(one)));
    let names = |list: Vec<&(&Volume, Kind)>| list.into_iter().map(|(volume, _)| volume.name.clone()).collect::<Part>();
    match (names(first), names(rest)) {
        (first, rest) if first.is_empty() || rest.is_empty() => (None, [first, rest].concat()),
        (first, rest) => (Some(first), rest),
    }
}

/// Whether a volume waits for an answer of somebody else. What is in place has it already.
fn waits(tools: &Tools, desired: &DesiredPod, volume: &Volume, kind: &Kind) -> bool {
    if *kind == Kind::Persistent {
        return tools.deps.persistent.placed(&pod::uid(&desired.pod), &volume.name).is_none();
    }
    let needs = projection::needs(volume);
    desired.mounted.is_none() && !(needs.tokens.is_empty() && needs.certificates.is_empty())
}

/// Sets these volumes up in the pod's turn, beside what became of others before. `None` when the request was cancelled.
async fn place(
    tools: &Tools,
    pod: &Arc<Pod>,
    request: &MountRequest,
    task: &TaskContext,
    (volumes, content, before): (Part, Content, Outcome),
) -> Option<Outcome> {
    let (held, request, of, uid) = (tools.clone(), request.clone(), pod.clone(), pod::uid(pod));
    let class = class::of_mount(pod, &volumes);
    let work = move || {
        // Asked again inside of the pod's turn: an unmount may have come first.
        request.is_live().then(|| {
            let out = before.join(set_up::all((&held.deps, &held.config), &of, &volumes, &content), &of);
            let troubles: Vec<Failed> = out.troubles().cloned().collect();
            let error = (!troubles.is_empty()).then(|| describe(&troubles));
            board::placed(&held, &pod::uid(&of), &out.done, error);
            out
        })
    };
    tools.deps.serial.run(&uid, &task.effects, class, work).await
}

pub(crate) fn describe(failed: &[Failed]) -> String {
    failed.iter().map(|f| f.error.as_str()).collect::<Vec<_>>().join("; ")
}
