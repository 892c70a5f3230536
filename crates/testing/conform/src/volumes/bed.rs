//! Pods with volumes, the objects that these hold, and the node's root directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contract::VolumeManager;
use contract::volume::{
    MakePodDirs, MountVolumes, MountedVolume, MountedVolumes, PodVolumes, RemovePodDir, UnmountVolumes, VolumeError,
};
use fakes::{Events, Objects};
use model::PodUid;
use model::core::Pod;
use ports::host::{FileStat, HostResult, Mounter as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::outside::Disk;
use crate::stage::Stage;
use crate::watch::until;

/// How long a manager may take for what it does at once.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// Where emptyDirs of a pod are, below its directory.
pub(super) const EMPTY_DIRS: &str = "volumes/kubernetes.io~empty-dir";

pub(super) type Answer = Result<Arc<MountedVolumes>, VolumeError>;

/// A stage with an object store of the namespace `ns` and an event recorder.
#[derive(Clone)]
pub(super) struct Bed {
    pub(super) stage: Stage<VolumeManager>,
    pub(super) objects: Objects,
    pub(super) events: Events,
}

impl Bed {
    pub(super) fn on(stage: Stage<VolumeManager>) -> Self {
        let (objects, events) = (Objects::on(stage.wiring(), "ns"), Events::on(stage.wiring()));
        Bed { stage, objects, events }
    }

    pub(super) fn uid(&self, word: &str) -> PodUid {
        PodUid::from(self.stage.uid(word).as_str())
    }

    /// A pod of this specification whose UID begins with the case's.
    pub(super) fn pod_of(&self, word: &str, spec: Value) -> Arc<Pod> {
        let metadata = json!({"name": word, "namespace": "ns", "labels": {"app": "web"}});
        Arc::new(fakes::pod(&self.stage.uid(word), json!({"metadata": metadata, "spec": spec})))
    }

    /// A pod whose one container mounts every volume of the list.
    pub(super) fn pod(&self, word: &str, volumes: Value) -> Arc<Pod> {
        self.pod_of(word, spec_of(volumes))
    }

    /// A pod with an emptyDir `v`.
    pub(super) fn scratch(&self, word: &str) -> Arc<Pod> {
        self.pod(word, json!([{"name": "v", "emptyDir": {}}]))
    }

    /// A pod with a volume `v` of the configMap `m`.
    pub(super) fn mapped(&self, word: &str) -> Arc<Pod> {
        self.pod(word, json!([{"name": "v", "configMap": {"name": "m", "defaultMode": 0o644}}]))
    }

    pub(super) async fn ask(&self, pod: &Arc<Pod>) -> Outcome<Answer> {
        self.stage.ask(MountVolumes { pod: pod.clone() }).await
    }

    /// As [`Bed::ask`], beside the case.
    pub(super) fn beside(&self, pod: &Arc<Pod>) -> JoinHandle<Outcome<Answer>> {
        let (bed, pod) = (self.clone(), pod.clone());
        tokio::task::spawn_local(async move { bed.ask(&pod).await })
    }

    /// All its volumes are there.
    pub(super) async fn mounts(&self, pod: &Arc<Pod>) -> Outcome<Arc<MountedVolumes>> {
        self.ask(pod).await?.map_err(|e| Broken(format!("its volumes are not there: {e}")))
    }

    /// Its volume `v` is there.
    pub(super) async fn mount(&self, pod: &Arc<Pod>) -> Outcome<MountedVolume> {
        let all = self.mounts(pod).await?;
        all.volumes.get("v").cloned().ok_or_else(|| Broken(format!("no volume v: {all:?}")))
    }

    pub(super) async fn make(&self, uid: &PodUid) -> Outcome {
        done("MakePodDirs", self.stage.ask(MakePodDirs { uid: uid.clone() }).await?)
    }

    pub(super) async fn unmount(&self, pod: &Pod) -> Outcome {
        done("UnmountVolumes", self.stage.ask(UnmountVolumes { uid: model::pod::uid(pod) }).await?)
    }

    pub(super) async fn try_remove(&self, uid: &PodUid) -> Outcome<Result<(), VolumeError>> {
        self.stage.ask(RemovePodDir { uid: uid.clone() }).await
    }

    pub(super) async fn remove(&self, pod: &Pod) -> Outcome {
        done("RemovePodDir", self.try_remove(&model::pod::uid(pod)).await?)
    }

    pub(super) fn row(&self, uid: &PodUid) -> Option<Arc<PodVolumes>> {
        self.stage.wiring().board::<PodVolumes>().get(uid)
    }

    /// The pod's row names these volumes as present; `None`: it has none.
    pub(super) fn shows(&self, uid: &PodUid, present: Option<&[&str]>) -> Outcome {
        let row = self.row(uid).map(|row| row.present.clone());
        let wanted = present.map(|names| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        demand(row == wanted, || format!("present are {row:?}, not {wanted:?}"))
    }

    fn disk(&self) -> Disk {
        self.stage.outside().disk()
    }

    /// A path below the root directory, or an absolute one.
    pub(super) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.disk().root.join(below)
    }

    /// The directory of a pod.
    pub(super) fn dir(&self, pod: &Pod) -> PathBuf {
        self.dir_of(&model::pod::uid(pod))
    }

    pub(super) fn dir_of(&self, uid: &PodUid) -> PathBuf {
        self.path(Path::new("pods").join(uid.as_str()))
    }

    pub(super) fn stat(&self, path: impl AsRef<Path>) -> Outcome<Option<FileStat>> {
        on_disk(self.disk().fs.stat(&self.path(path)))
    }

    pub(super) fn is_there(&self, path: impl AsRef<Path>) -> Outcome<bool> {
        Ok(self.stat(path)?.is_some())
    }

    pub(super) fn has_mode(&self, path: impl AsRef<Path>, mode: u32) -> Outcome {
        let path = path.as_ref().display().to_string();
        let found = self.stat(&path)?.ok_or_else(|| Broken(format!("there is no {path}")))?.mode;
        demand(found == mode, || format!("{path} has mode {found:o}, not {mode:o}"))
    }

    pub(super) fn read(&self, path: impl AsRef<Path>) -> Outcome<String> {
        let bytes = on_disk(self.disk().fs.read_file(&self.path(path), 1 << 20))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The file has that content.
    pub(super) fn holds(&self, path: impl AsRef<Path>, content: &str) -> Outcome {
        let found = self.read(&path)?;
        demand(found == content, || format!("in {} is {found:?}, not {content:?}", path.as_ref().display()))
    }

    /// The file comes to have that content, with nobody asking for it.
    pub(super) async fn turns(&self, path: impl AsRef<Path>, content: &str) -> Outcome {
        let so = || self.read(&path).is_ok_and(|found| found == content);
        let found = until(&format!("the file holds {content:?}"), SOON, so).await;
        found.map_err(|Broken(why)| Broken(format!("{why}; it is {:?}", self.read(&path))))
    }

    /// Writes a file, as a container or somebody on the node would, and makes the directories that it needs.
    pub(super) fn write(&self, path: impl AsRef<Path>, content: &str) -> Outcome {
        let (disk, path) = (self.disk(), self.path(path));
        if let Some(dir) = path.parent() {
            on_disk(disk.fs.create_dir(dir, 0o755))?;
        }
        on_disk(disk.fs.write_file(&path, content.as_bytes(), 0o644))
    }

    pub(super) fn make_dir(&self, path: impl AsRef<Path>) -> Outcome {
        on_disk(self.disk().fs.create_dir(&self.path(path), 0o755))
    }

    pub(super) fn link_of(&self, path: impl AsRef<Path>) -> Outcome<PathBuf> {
        on_disk(self.disk().fs.read_link(&self.path(path)))
    }

    /// Somebody removes the directory of a pod.
    pub(super) fn forget_dir(&self, uid: &PodUid) -> Outcome {
        on_disk(self.disk().fs.remove_tree(&self.dir_of(uid)))
    }

    pub(super) fn link(&self, target: &Path, link: &Path) -> Outcome {
        on_disk(self.disk().fs.symlink(target, link))
    }

    /// Something is mounted there, on the disk in memory.
    pub(super) fn is_mounted(&self, path: &Path) -> bool {
        self.stage.outside().files().is_mount_point(path).unwrap_or(false)
    }

    /// Names in a directory, but those that begin with two dots.
    pub(super) fn names(&self, path: impl AsRef<Path>) -> Outcome<Vec<String>> {
        let entries = on_disk(self.disk().fs.list_dir(&self.path(path)))?;
        Ok(entries.into_iter().map(|e| e.name).filter(|name| !name.starts_with("..")).collect())
    }

    /// Such an event comes.
    pub(super) async fn tells(&self, event: &str) -> Outcome {
        let found = until("it is told", SOON, || self.events.lines().iter().any(|e| e == event)).await;
        found.map_err(|_| Broken(format!("no event {event:?}: {:?}", self.events.lines())))
    }
}

/// A specification whose one container mounts every volume of the list.
pub(super) fn spec_of(volumes: Value) -> Value {
    let names = volumes.as_array().into_iter().flatten().map(|v| v["name"].clone());
    let mounts: Vec<Value> = names.map(|name| json!({"name": name, "mountPath": "/m"})).collect();
    json!({"volumes": volumes, "containers": [{"name": "app", "volumeMounts": mounts}]})
}

fn on_disk<T>(found: HostResult<T>) -> Outcome<T> {
    found.map_err(|e| Broken(format!("on the disk: {}", actor::chain(&e))))
}

fn done(what: &str, answer: Result<(), VolumeError>) -> Outcome {
    answer.map_err(|e| Broken(format!("{what} failed: {e}")))
}

/// What came of a request beside the case.
pub(super) async fn came(job: JoinHandle<Outcome<Answer>>) -> Outcome<Answer> {
    job.await.map_err(|e| Broken(format!("a request of the case: {e}")))?
}

pub(super) async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// A case that begins with a manager that was told of no pod, and an empty root directory.
pub(super) fn case<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<VolumeManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    Case::begun(name, source, rule, Bed::on, play)
}
