//! A folder, a watch that tests drive, and a PodManager that remembers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{ActorRef, Kernel, testing};
use contract::board::ValueReader;
use contract::config_sources::folder::FolderManifests;
use contract::config_sources::{ManifestState, Source};
use contract::pod_manager::{ChangePods, ChangesTaken, SetPods};
use contract::{PodManager, Wiring};
use fakes::{Events, FakeWatch, Folder, StandIn};
use model::core::Pod;
use model::event::NodeEvent;
use model::{PodUid, pod};
use ports::watch::Change;

use crate::folder::{Config, Deps, FolderSource};

/// A PodManager that keeps the sets it is given, and those that changes make of them.
#[derive(Clone)]
pub(super) struct Sets {
    manager: StandIn<PodManager>,
    source: Source,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    /// Number of the last set.
    number: u64,
    sets: Vec<Vec<Arc<Pod>>>,
}

impl Sets {
    pub(super) fn on(wiring: &Wiring, source: Source) -> Self {
        let sets = Self { manager: StandIn::on(wiring), source, kept: Arc::default() };
        sets.come_back();
        sets
    }

    pub(super) fn go_away(&self) {
        self.manager.leave::<SetPods>();
        self.manager.leave::<ChangePods>();
    }

    pub(super) fn come_back(&self) {
        let (kept, source) = (self.kept.clone(), self.source);
        self.manager.answer(move |set: &SetPods| {
            assert_eq!(set.source, source);
            let mut kept = kept.lock().unwrap();
            kept.number = set.number;
            kept.sets.push(set.pods.clone());
        });
        let (kept, source) = (self.kept.clone(), self.source);
        self.manager.answer(move |change: &ChangePods| {
            assert_eq!(change.source, source);
            let mut kept = kept.lock().unwrap();
            if kept.number != change.base {
                return ChangesTaken::SetNeeded;
            }
            kept.number = change.number;
            let uids: Vec<PodUid> = change.changed.iter().map(|p| pod::uid(p)).collect();
            let mut next = kept.sets.last().cloned().unwrap_or_default();
            next.retain(|p| !change.gone.contains(&pod::uid(p)) && !uids.contains(&pod::uid(p)));
            next.extend(change.changed.iter().cloned());
            next.sort_by_key(|p| (pod::namespace(p).to_owned(), pod::name(p).to_owned()));
            if !(change.changed.is_empty() && change.gone.is_empty()) {
                kept.sets.push(next);
            }
            ChangesTaken::Taken
        });
    }

    /// The set is lost, as with a PodManager that was rebuilt.
    pub(super) fn lose(&self) {
        self.kept.lock().unwrap().number = u64::MAX;
    }

    /// Pods that were named in messages so far.
    pub(super) fn named(&self) -> usize {
        let sets = self.manager.asked::<SetPods>().iter().map(|set| set.pods.len()).sum::<usize>();
        let changes = self.manager.asked::<ChangePods>();
        sets + changes.iter().map(|change| change.changed.len() + change.gone.len()).sum::<usize>()
    }

    pub(super) fn crash_at_next(&self) {
        self.manager.crash_at_next::<SetPods>();
    }

    pub(super) fn all(&self) -> Vec<Vec<Arc<Pod>>> {
        self.kept.lock().unwrap().sets.clone()
    }

    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    pub(super) fn last(&self) -> Option<Vec<Arc<Pod>>> {
        self.all().pop()
    }

    /// UID of the first pod of the last set.
    pub(super) fn uid(&self) -> String {
        self.last().expect("a set was handed over")[0].metadata.uid.clone().unwrap()
    }
}

/// Everything around one actor.
pub(super) struct Rig {
    pub(super) dir: Folder,
    pub(super) sets: Sets,
    events: Events,
    pub(super) watch: Arc<FakeWatch>,
    pub(super) view: ValueReader<FolderManifests>,
    wiring: Wiring,
    pub(super) kernel: Kernel,
}

pub(super) const PERIOD: Duration = Duration::from_secs(20);

impl Rig {
    /// Nothing runs yet.
    pub(super) fn new(kernel: Kernel) -> Rig {
        let (wiring, dir) = (Wiring::default(), Folder::new("/etc/kubernetes/manifests"));
        dir.dir("");
        Rig {
            sets: Sets::on(&wiring, Source::File),
            events: Events::on(&wiring),
            watch: Arc::new(FakeWatch::new(&dir.disk)),
            dir,
            view: wiring.value(),
            wiring,
            kernel,
        }
    }

    /// Starts the actor on a path inside the folder (empty: the folder itself).
    pub(super) fn start(&self, at: &str) -> ActorRef<FolderSource> {
        let config = Arc::new(Config { node_name: "Node-A".to_owned(), path: self.dir.path(at), period: PERIOD });
        let deps = Deps { fs: self.dir.fs(), watch: self.watch.clone() };
        fakes::start(&self.kernel, &self.wiring, move |crew| FolderSource::new(crew, config.clone(), deps.clone()))
    }

    /// As [`Rig::start`], and its first look is over.
    pub(super) async fn begin(&self, at: &str) -> ActorRef<FolderSource> {
        let actor = self.start(at);
        self.work().await;
        actor
    }

    /// Writes a file; no event.
    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        self.dir.write(name, text);
    }

    /// Tells of a change and lets everybody work.
    pub(super) async fn event(&self, change: Change) {
        self.watch.tell(change);
        self.work().await;
    }

    pub(super) async fn written(&self, name: &str) {
        self.event(Change::Written(name.into())).await;
    }

    pub(super) async fn gone(&self, name: &str) {
        self.event(Change::Gone(name.into())).await;
    }

    /// Less than a second passes.
    pub(super) async fn work(&self) {
        for _ in 0..50 {
            testing::settle().await;
        }
    }

    /// The next periodic look happens.
    pub(super) async fn next_look(&self) {
        tokio::time::sleep(PERIOD).await;
        self.work().await;
    }

    /// The last set, as `namespace/name image`.
    pub(super) fn set(&self) -> Vec<String> {
        let one = |p: &Arc<Pod>| {
            let image = pod::regular_containers(p)[0].image.clone().unwrap_or_default();
            format!("{}/{} {image}", pod::namespace(p), pod::name(p))
        };
        self.sets.last().expect("a set was handed over").iter().map(one).collect()
    }

    pub(super) fn events(&self) -> Vec<String> {
        let own = |event: NodeEvent| {
            assert_eq!(event.reason, "FailedValidation");
            event.message
        };
        self.events.all().into_iter().map(own).collect()
    }

    /// The published state of a file.
    pub(super) fn state(&self, name: &str) -> Option<ManifestState> {
        self.view.get().manifests.get(&*self.dir.path(name).to_string_lossy()).cloned()
    }

    pub(super) fn manifests(&self) -> BTreeMap<String, ManifestState> {
        self.view.get().manifests.clone()
    }
}

/// Runs a test around a rig whose actor does not run yet.
pub(super) fn with_rig<F: Future<Output = ()>>(test: impl FnOnce(Rig) -> F) {
    testing::run(1, |kernel| test(Rig::new(kernel)));
}

/// A manifest of one container.
pub(super) fn manifest(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - {{name: c, image: '{image}'}}\n"
    )
}

pub(super) fn accepted(pod: &str) -> Option<ManifestState> {
    Some(ManifestState::Accepted { pod: pod.to_owned() })
}

pub(super) fn refused(state: Option<ManifestState>) -> (Vec<String>, bool) {
    match state {
        Some(ManifestState::Refused { errors, keeps_old }) => (errors, keeps_old),
        other => panic!("not refused: {other:?}"),
    }
}
