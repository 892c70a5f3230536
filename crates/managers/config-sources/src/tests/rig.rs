//! A folder, a watch that tests drive, and a PodManager that remembers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{Actor, ActorRef, Ctx, Handler, Kernel, Spec, supervised, testing};
use contract::Wiring;
use contract::board::ValueReader;
use contract::config_sources::folder::FolderManifests;
use contract::config_sources::{ManifestState, Source};
use contract::event::RecordEvent;
use contract::pod_manager::SetPods;
use futures::StreamExt;
use model::core::Pod;
use model::pod;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::folder::{Change, Changes, FolderWatch};
use crate::folder::{Config, Deps, FolderSource};

/// Sets and events as they came.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) sets: Vec<Vec<Arc<Pod>>>,
    pub(super) events: Vec<String>,
}

pub(super) type Log = Arc<Mutex<Seen>>;

pub(super) struct Taker(Log);

impl Actor for Taker {
    type Context = Ctx<Self>;
}
supervised!(Taker);

impl Handler<SetPods> for Taker {
    type Result = ();
    fn handle(&mut self, set: SetPods, _: &mut Ctx<Self>) {
        assert_eq!(set.source, Source::File);
        self.0.lock().unwrap().sets.push(set.pods);
    }
}

impl Handler<RecordEvent> for Taker {
    type Result = ();
    fn handle(&mut self, record: RecordEvent, _: &mut Ctx<Self>) {
        assert_eq!(record.event.reason, "FailedValidation");
        self.0.lock().unwrap().events.push(record.event.message);
    }
}

/// Changes come from the test. Starting works while the path exists.
#[derive(Default)]
pub(super) struct FakeWatch {
    tx: Mutex<Option<mpsc::Sender<io::Result<Change>>>>,
    pub(super) starts: Mutex<u32>,
    /// Errors to give first, the last one first.
    pub(super) refusals: Mutex<Vec<io::ErrorKind>>,
}

impl FolderWatch for FakeWatch {
    fn start(&self, path: &Path) -> io::Result<Changes> {
        *self.starts.lock().unwrap() += 1;
        if let Some(kind) = self.refusals.lock().unwrap().pop() {
            return Err(kind.into());
        }
        path.metadata()?;
        let (tx, mut rx) = mpsc::channel(64);
        *self.tx.lock().unwrap() = Some(tx);
        Ok(futures::stream::poll_fn(move |cx| rx.poll_recv(cx)).boxed_local())
    }
}

/// Everything around one actor.
pub(super) struct Rig {
    pub(super) dir: TempDir,
    pub(super) log: Log,
    pub(super) watch: Arc<FakeWatch>,
    pub(super) view: ValueReader<FolderManifests>,
    pub(super) wiring: Wiring,
    pub(super) taker: ActorRef<Taker>,
    pub(super) kernel: Kernel,
}

pub(super) const PERIOD: Duration = Duration::from_secs(20);

impl Rig {
    /// Nothing runs yet.
    pub(super) fn new(kernel: Kernel) -> Rig {
        let log = Log::default();
        let seen = log.clone();
        let taker = kernel.spawn(Spec::new("taker"), move |_| Taker(seen.clone()));
        let wiring = Wiring::default();
        wiring.inlet::<SetPods>().connect(&taker);
        wiring.inlet::<RecordEvent>().connect(&taker);
        Rig {
            dir: tempfile::tempdir().unwrap(),
            log,
            watch: Arc::default(),
            view: wiring.value(),
            wiring,
            taker,
            kernel,
        }
    }

    /// Starts the actor on a path inside the folder (empty: the folder itself).
    pub(super) fn start(&self, at: &str) -> ActorRef<FolderSource> {
        let path = if at.is_empty() { self.dir.path().to_owned() } else { self.path(at) };
        let config = Arc::new(Config { node_name: "Node-A".to_owned(), path, period: PERIOD });
        let watch: Arc<dyn FolderWatch> = self.watch.clone();
        let (deps, crew) = (Deps { fs: Arc::new(fakes::LinuxFs), watch }, self.wiring.crew());
        self.kernel
            .spawn(Spec::new("folder-source"), move |_| FolderSource::new(crew.succeed(), config.clone(), deps.clone()))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file; no event.
    pub(super) fn write(&self, name: &str, text: impl AsRef<str>) {
        std::fs::write(self.path(name), text.as_ref()).unwrap();
    }

    /// Tells of a change and lets everybody work.
    pub(super) async fn event(&self, change: Change) {
        let tx = self.watch.tx.lock().unwrap().clone().expect("a watch");
        tx.send(Ok(change)).await.unwrap();
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
        let seen = self.log.lock().unwrap();
        let one = |p: &Arc<Pod>| {
            let image = pod::regular_containers(p)[0].image.clone().unwrap_or_default();
            format!("{}/{} {image}", pod::namespace(p), pod::name(p))
        };
        seen.sets.last().expect("a set was handed over").iter().map(one).collect()
    }

    pub(super) fn sets(&self) -> usize {
        self.log.lock().unwrap().sets.len()
    }

    pub(super) fn uid(&self) -> String {
        let seen = self.log.lock().unwrap();
        seen.sets.last().unwrap()[0].metadata.uid.clone().unwrap()
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.log.lock().unwrap().events.clone()
    }

    /// The published state of a file.
    pub(super) fn state(&self, name: &str) -> Option<ManifestState> {
        self.view.get().manifests.get(&*self.path(name).to_string_lossy()).cloned()
    }

    pub(super) fn manifests(&self) -> BTreeMap<String, ManifestState> {
        self.view.get().manifests.clone()
    }
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
