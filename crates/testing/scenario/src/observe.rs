//! Writes down what is to be seen of a node from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::board::BoardReader;
use contract::pod_manager::DesiredPod;
use contract::status::StatusEntry;
use fakes::api::{Event, FieldSelector, Target};
use fakes::runtime::{Happening, What};
use fakes::{FakeApi, FakeRuntime, MemFs};
use model::{PodUid, pod};
use ports::host::{HostFs, Mounter};
use serde_json::Value;
use sim::{DISK, SimNode};
use tokio::time::Instant;

use crate::coverage::{self, Covered};
use crate::history::{Fact, History, Of, Told, ToldContainer};

/// The history of a node, as it grows. A clone is the same one.
#[derive(Clone)]
pub(crate) struct Observer {
    history: Arc<Mutex<History>>,
    began: Instant,
    pub(crate) covered: Covered,
}

/// Folders and files of pods that containers were started with.
#[derive(Default)]
struct Mounts {
    /// By container: what it has, and whether something is mounted there.
    of: BTreeMap<String, (Of, Vec<(PathBuf, bool)>)>,
    /// All of these were there when the disk had lost so much; `None`: that is not known.
    seen_at: Option<u64>,
}

impl Observer {
    pub(crate) fn new() -> Self {
        Self { history: Arc::default(), began: Instant::now(), covered: Covered::default() }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn note(&self, fact: Fact) {
        let now = self.now();
        let mut history = self.history();
        if let Fact::Wanted(pod, shape) = &fact {
            history.shapes.insert(pod.clone(), (**shape).clone());
        }
        history.facts.push((now, fact));
    }

    /// Follows runtime and API server. Ends with [`blind`].
    pub(crate) fn watch(&self, node: &SimNode) {
        let mounts: Arc<Mutex<Mounts>> = Arc::default();
        let (own, cgroups, files) = (self.clone(), node.world.cgroups.clone(), node.world.files.clone());
        let (runtime, seen) = (node.world.runtime.clone(), mounts.clone());
        node.world.runtime.witness(move |happening| {
            let of = of(happening);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            own.note(match &happening.what {
                What::Made => {
                    Fact::Made(of, parent(&runtime, &happening.sandbox).is_none_or(|p| cgroups.values(&p).is_some()))
                }
                What::Started => {
                    seen.of.insert(of.id.clone(), (of.clone(), mounted(&runtime, &files, &of.id)));
                    seen.seen_at = None;
                    Fact::Started(of)
                }
                What::StopAsked(grace) => Fact::StopAsked(of, *grace),
                What::Ended(code, cause) => {
                    seen.of.remove(&of.id);
                    Fact::Ended(of, *code, *cause)
                }
                What::Removed => Fact::Removed(of),
            });
        });
        tokio::task::spawn_local(look_at_volumes(self.clone(), mounts, node.world.files.clone()));
        tokio::task::spawn_local(follow_api(self.clone(), node.api().clone()));
        tokio::task::spawn_local(follow_events(self.clone(), node.api().clone()));
    }

    /// Follows boards of this life of the daemon.
    pub(crate) fn follow_boards(&self, node: &SimNode) {
        self.covered.follow(node);
        tokio::task::spawn_local(follow_desired(self.clone(), node.wiring().board::<DesiredPod>()));
        let (own, board) = (self.clone(), node.wiring().board::<StatusEntry>());
        let mut changes = board.changes();
        tokio::task::spawn_local(async move {
            let (mut seen, mut newest) = (None, BTreeMap::new());
            while changes.changed().await.is_ok() {
                let changed = coverage::changed(&board, &mut seen);
                for (uid, row) in changed.into_iter().filter_map(|uid| Some((uid.clone(), board.get(&uid)?))) {
                    if newest.insert(uid.clone(), row.version) != Some(row.version) {
                        own.note(Fact::Version(uid.to_string(), row.version));
                        own.covered.status(&row);
                        if row.is_terminal() && row.status.reason.is_some() {
                            own.note(Fact::Refused(row.name.clone()));
                        }
                    }
                }
            }
        });
    }
}

/// Decisions about pods. A board holds what the daemon thinks; when it came to know a pod nobody else can say.
async fn follow_desired(own: Observer, board: BoardReader<PodUid, DesiredPod>) {
    let (mut changes, mut seen, mut told) = (board.changes(), None, BTreeSet::new());
    while changes.changed().await.is_ok() {
        let changed = coverage::changed(&board, &mut seen);
        for uid in changed {
            let Some(row) = board.get(&uid) else {
                told.remove(&uid);
                continue;
            };
            own.covered.desired(&row);
            if row.rejected.is_none() && !row.undecided && told.insert(uid.clone()) {
                own.note(Fact::Admitted(uid.to_string(), pod::name(&row.pod).to_owned()));
            }
        }
    }
}

/// Nobody looks at the runtime any more: it holds who does, and who does holds it.
pub(crate) fn blind(node: &SimNode) {
    node.world.runtime.witness(|_| {});
}

fn of(happening: &Happening) -> Of {
    let (id, name, attempt) = happening.container.clone().unwrap_or_default();
    let (uid, pod, sandbox) = (happening.uid.clone(), happening.pod.clone(), happening.sandbox.clone());
    Of { uid, pod, sandbox, name, id, attempt }
}

/// The cgroup that a sandbox was asked for with.
fn parent(runtime: &FakeRuntime, sandbox: &str) -> Option<String> {
    runtime.peek(|sandboxes, _| Some(sandboxes.get(sandbox)?.config.linux.as_ref()?.cgroup_parent.clone()))
}

fn mounted(runtime: &FakeRuntime, files: &MemFs, id: &str) -> Vec<(PathBuf, bool)> {
    let pods = Path::new(DISK).join("root/pods");
    let paths: Vec<PathBuf> = runtime.peek(|_, containers| {
        let mounts = containers.get(id).map(|c| c.config.mounts.as_slice()).unwrap_or_default();
        mounts.iter().map(|m| PathBuf::from(&m.host_path)).filter(|path| path.starts_with(&pods)).collect()
    });
    let with = |path: PathBuf| {
        let is_mount = files.is_mount_point(&path).unwrap_or_default();
        (path, is_mount)
    };
    paths.into_iter().map(with).collect()
}

/// Between two looks at volumes.
const LOOKS: std::time::Duration = std::time::Duration::from_secs(10);

async fn look_at_volumes(own: Observer, mounts: Arc<Mutex<Mounts>>, files: MemFs) {
    loop {
        tokio::time::sleep(LOOKS).await;
        let (mut mounts, losses) = (mounts.lock().unwrap_or_else(PoisonError::into_inner), files.losses());
        if mounts.seen_at == Some(losses) {
            continue;
        }
        let mut all_said = true;
        for (of, paths) in mounts.of.values_mut() {
            paths.retain(|(path, was_mount)| {
                let there = is_there(&files, path, *was_mount);
                all_said &= there.is_some();
                if there == Some(false) {
                    own.note(Fact::VolumeLost(of.clone(), path.display().to_string()));
                }
                there != Some(false)
            });
        }
        mounts.seen_at = all_said.then_some(losses);
    }
}

/// `None`: a disk that cannot be read says nothing.
fn is_there(files: &MemFs, path: &Path, as_mount: bool) -> Option<bool> {
    let is_there = files.stat_link(path).ok()?.is_some();
    Some(is_there && (!as_mount || files.is_mount_point(path).ok()?))
}

async fn follow_api(own: Observer, api: FakeApi) {
    let target = Target::parse("/api/v1/pods").expect("a path of the API");
    let all = FieldSelector::default();
    let (mut changes, mut version) = (api.moves(), 1);
    let mut seen = Seen { own, last: BTreeMap::new() };
    while changes.changed().await.is_ok() {
        // Without a log since then everything is looked at: it was emptied, or the server was restored.
        let (found, listed, now) = api.peek(|store| {
            let found = store.changes(&target, &all, version).ok().filter(|_| version <= store.version());
            let listed = if found.is_none() { store.list(&target, &all) } else { Vec::new() };
            (found, listed, store.version())
        });
        version = now;
        match found {
            Some(found) => found.iter().for_each(|change| seen.change(told(&change.object), change.event)),
            None => seen.replace(listed.iter().map(|object| told(object)).collect()),
        }
    }
}

/// Writes of events of pods.
async fn follow_events(own: Observer, api: FakeApi) {
    let target = Target::parse("/api/v1/events").expect("a path of the API");
    let (mut changes, mut version) = (api.moves(), 1);
    while changes.changed().await.is_ok() {
        let all = FieldSelector::default();
        let (found, now) = api.peek(|store| (store.changes(&target, &all, version), store.version()));
        version = now;
        let found = found.unwrap_or_default().into_iter().filter(|change| change.event != Event::Deleted);
        for object in found.map(|change| change.object).filter(|o| o["involvedObject"]["kind"] == "Pod") {
            own.note(Fact::Event(text(&object["involvedObject"]["name"]), text(&object["reason"])));
        }
    }
}

/// Statuses that were seen last, by UID.
struct Seen {
    own: Observer,
    last: BTreeMap<String, Told>,
}

impl Seen {
    fn change(&mut self, told: Told, event: Event) {
        if event == Event::Deleted {
            self.last.remove(&told.uid);
            self.own.note(Fact::Gone(told.pod, told.uid));
        } else if self.last.get(&told.uid) != Some(&told) {
            self.last.insert(told.uid.clone(), told.clone());
            self.own.note(Fact::Status(told));
        }
    }

    fn replace(&mut self, all: Vec<Told>) {
        let is_there = |uid: &String| all.iter().any(|told| told.uid == *uid);
        let gone: Vec<Told> = self.last.values().filter(|told| !is_there(&told.uid)).cloned().collect();
        gone.into_iter().for_each(|told| self.change(told, Event::Deleted));
        all.into_iter().for_each(|told| self.change(told, Event::Modified));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn told(pod: &Value) -> Told {
    let status = &pod["status"];
    let lists = ["initContainerStatuses", "containerStatuses"].map(|field| status[field].as_array());
    let conditions = status["conditions"].as_array().into_iter().flatten();
    Told {
        pod: text(&pod["metadata"]["name"]),
        uid: text(&pod["metadata"]["uid"]),
        mirror: pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string(),
        phase: text(&status["phase"]),
        reason: text(&status["reason"]),
        ready: conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True"),
        deleting: pod["metadata"]["deletionTimestamp"].is_string(),
        containers: lists.into_iter().flatten().flatten().map(container).collect(),
    }
}

fn container(status: &Value) -> ToldContainer {
    let bare = |id: &Value| id.as_str().map(|id| id.split_once("://").map_or(id, |(_, id)| id).to_owned());
    let ended = |state: &Value| {
        let code = state["terminated"]["exitCode"].as_i64()?;
        Some((bare(&state["terminated"]["containerID"]).unwrap_or_default(), i32::try_from(code).unwrap_or(-1)))
    };
    ToldContainer {
        name: text(&status["name"]),
        running: status["state"]["running"].is_object().then(|| bare(&status["containerID"])).flatten(),
        ended: ended(&status["state"]),
        last: ended(&status["lastState"]),
        restarts: i32::try_from(status["restartCount"].as_i64().unwrap_or_default()).unwrap_or(i32::MAX),
        ready: status["ready"] == true,
    }
}
