//! What this server knows of pods and containers while it runs. All of it can be had again from records and supervisors.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cri_api::v1;
use host_linux::{LinuxCgroups, LinuxStats, SystemdScopes};
use pod_supervisor::SOCKET;
use pod_supervisor::cgroups::{Hierarchy, hierarchies_here};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::blocking::{Blocking, Class};
use crate::error::{At, Done, RuntimeError};
use crate::events::Events;
use crate::handlers::Handlers;
use crate::images::Images;
use crate::network::PodNetworks;
use crate::options::Options;
use crate::records::{ContainerRecord, SandboxRecord};
use crate::sessions::Streams;
use crate::status;
use crate::supervisor::Program;

/// A pod sandbox.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) id: String,
    record: Mutex<SandboxRecord>,
    /// Held by whoever changes the pod: one at a time.
    pub(crate) work: tokio::sync::Mutex<()>,
    /// Held by whoever writes its record; whether that is over, as its folder goes.
    writing: tokio::sync::Mutex<bool>,
    /// Its supervisor is being moved into its cgroup.
    joining: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// A container.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) pod: String,
    record: Mutex<ContainerRecord>,
    /// As [`Pod::work`].
    pub(crate) work: tokio::sync::Mutex<()>,
    /// As [`Pod::writing`].
    writing: tokio::sync::Mutex<bool>,
    /// Whether it has ended.
    pub(crate) ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Known {
    pods: BTreeMap<String, Arc<Pod>>,
    containers: BTreeMap<String, Arc<Container>>,
}

/// Everything that calls share.
pub(crate) struct Runtime {
    pub(crate) options: Options,
    pub(crate) images: Arc<dyn Images>,
    pub(crate) networks: Arc<dyn PodNetworks>,
    pub(crate) handlers: Handlers,
    pub(crate) supervisor: Program,
    pub(crate) cgroups: LinuxCgroups,
    pub(crate) scopes: SystemdScopes,
    /// Of cgroups, as the node has them mounted when this begins.
    pub(crate) hierarchies: Vec<Hierarchy>,
    pub(crate) stats: LinuxStats,
    pub(crate) events: Events,
    pub(crate) blocking: Blocking,
    pub(crate) streams: Streams,
    /// Whether this process is about to end.
    pub(crate) ending: watch::Sender<bool>,
    known: Mutex<Known>,
    /// What keeps other processes out, for as long as anything here goes on.
    lock: OnceLock<File>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 64 hex digits, as everybody's.
pub(crate) fn new_id() -> String {
    (0..4).map(|_| format!("{:016x}", fastrand::u64(..))).collect()
}

impl Pod {
    fn new(record: SandboxRecord) -> Arc<Self> {
        let id = record.id.clone();
        Arc::new(Self {
            id,
            record: Mutex::new(record),
            work: tokio::sync::Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            joining: tokio::sync::Mutex::default(),
        })
    }

    /// Its supervisor is being moved into its cgroup, until this ends.
    pub(crate) async fn joins(&self, joining: impl Future<Output = ()> + Send + 'static) {
        *self.joining.lock().await = Some(tokio::spawn(joining));
    }

    /// Waits until nobody moves its supervisor.
    pub(crate) async fn joined(&self) {
        let mut joining = self.joining.lock().await;
        if let Some(task) = joining.take() {
            // One that panicked has been told of.
            let _ = task.await;
        }
    }

    /// From here on its record is not written any more: its folder goes.
    pub(crate) async fn write_no_more(&self) {
        *self.writing.lock().await = true;
    }

    /// A copy of what is known of it.
    pub(crate) fn record(&self) -> SandboxRecord {
        lock(&self.record).clone()
    }

    /// Changes what is known of it; answers a copy, to be written.
    pub(crate) fn change(&self, change: impl FnOnce(&mut SandboxRecord)) -> SandboxRecord {
        let mut record = lock(&self.record);
        change(&mut record);
        record.clone()
    }
}

impl Container {
    fn new(record: ContainerRecord) -> Arc<Self> {
        let (id, pod) = (record.id.clone(), record.pod.clone());
        let ended = watch::Sender::new(record.exit.is_some());
        let record = Mutex::new(record);
        Arc::new(Self {
            id,
            pod,
            record,
            work: tokio::sync::Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            ended,
        })
    }

    /// As [`Pod::write_no_more`].
    pub(crate) async fn write_no_more(&self) {
        *self.writing.lock().await = true;
    }

    /// A copy of what is known of it.
    pub(crate) fn record(&self) -> ContainerRecord {
        lock(&self.record).clone()
    }

    /// Changes what is known of it; answers a copy, to be written.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ContainerRecord)) -> ContainerRecord {
        let mut record = lock(&self.record);
        change(&mut record);
        record.clone()
    }
}

impl Runtime {
    pub(crate) fn new(
        options: Options,
        images: Arc<dyn Images>,
        networks: Arc<dyn PodNetworks>,
        handlers: Handlers,
        cgroups: LinuxCgroups,
        streams: Streams,
    ) -> Done<Self> {
        let supervisor = Program::load(&options.supervisor, &options.run).at("mount", &options.supervisor)?;
        Ok(Self {
            supervisor,
            stats: LinuxStats::new(&cgroups),
            options,
            images,
            networks,
            handlers,
            cgroups,
            scopes: SystemdScopes::new(tokio::runtime::Handle::current()),
            hierarchies: hierarchies_here().at("read", Path::new("/proc/self/mountinfo"))?,
            events: Events::new(),
            blocking: Blocking::new(),
            streams,
            ending: watch::Sender::new(false),
            known: Mutex::default(),
            lock: OnceLock::new(),
        })
    }

    /// Keeps the lock of the folders.
    pub(crate) fn keep(&self, lock: File) {
        // Once: there is one server.
        let _ = self.lock.set(lock);
    }

    /// The socket of a pod's supervisor.
    pub(crate) fn socket(&self, pod: &str) -> PathBuf {
        self.options.pod_run(pod).join(SOCKET)
    }

    /// Takes in a pod under a name that nobody else has.
    pub(crate) fn add_pod(&self, record: SandboxRecord) -> Done<Arc<Pod>> {
        let mut known = lock(&self.known);
        let same = |p: &&Arc<Pod>| lock(&p.record).config.metadata == record.config.metadata;
        if let Some(other) = known.pods.values().find(same) {
            let name = status::sandbox_name(record.config.metadata.as_ref());
            return Err(RuntimeError::Reserved { name, id: other.id.clone() });
        }
        let pod = Pod::new(record);
        known.pods.insert(pod.id.clone(), Arc::clone(&pod));
        Ok(pod)
    }

    /// Takes in a container under a name that no other one of its pod has.
    pub(crate) fn add_container(&self, record: ContainerRecord) -> Done<Arc<Container>> {
        let mut known = lock(&self.known);
        let same =
            |c: &&Arc<Container>| c.pod == record.pod && lock(&c.record).config.metadata == record.config.metadata;
        if let Some(other) = known.containers.values().find(same) {
            let metadata = record.config.metadata.unwrap_or_default();
            let name = format!("{}_{}", metadata.name, metadata.attempt);
            return Err(RuntimeError::Reserved { name, id: other.id.clone() });
        }
        let container = Container::new(record);
        known.containers.insert(container.id.clone(), Arc::clone(&container));
        Ok(container)
    }

    pub(crate) fn forget_pod(&self, id: &str) {
        lock(&self.known).pods.remove(id);
    }

    pub(crate) fn forget_container(&self, id: &str) {
        lock(&self.known).containers.remove(id);
    }

    pub(crate) fn find_pod(&self, id: &str) -> Option<Arc<Pod>> {
        lock(&self.known).pods.get(id).cloned()
    }

    pub(crate) fn find_container(&self, id: &str) -> Option<Arc<Container>> {
        lock(&self.known).containers.get(id).cloned()
    }

    pub(crate) fn pod(&self, id: &str) -> Done<Arc<Pod>> {
        self.find_pod(id).ok_or_else(|| RuntimeError::NotFound { kind: "sandbox", id: id.to_owned() })
    }

    pub(crate) fn container(&self, id: &str) -> Done<Arc<Container>> {
        self.find_container(id).ok_or_else(|| RuntimeError::NotFound { kind: "container", id: id.to_owned() })
    }

    pub(crate) fn pods(&self) -> Vec<Arc<Pod>> {
        lock(&self.known).pods.values().cloned().collect()
    }

    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        lock(&self.known).containers.values().cloned().collect()
    }

    pub(crate) fn containers_of(&self, pod: &str) -> Vec<Arc<Container>> {
        lock(&self.known).containers.values().filter(|c| c.pod == pod).cloned().collect()
    }

    /// Writes what is known of a pod; what is written last is the latest.
    pub(crate) async fn write_pod(&self, pod: &Pod) -> Done<()> {
        let over = pod.writing.lock().await;
        if *over {
            return Ok(());
        }
        let (options, record) = (self.options.clone(), pod.record());
        self.blocking.run(Class::State, move || record.write(&options)).await
    }

    /// Writes what is known of a container; what is written last is the latest.
    pub(crate) async fn write_container(&self, container: &Container) -> Done<()> {
        let over = container.writing.lock().await;
        if *over {
            return Ok(());
        }
        let (options, record) = (self.options.clone(), container.record());
        self.blocking.run(Class::State, move || record.write(&options)).await
    }

    /// Tells who listens what happened to a container (or sandbox: the id is its own).
    pub(crate) fn happened(&self, id: &str, pod: &str, kind: v1::ContainerEventType) {
        let sandbox = self.find_pod(pod).map(|p| status::sandbox(&p.record()));
        let containers = self.containers_of(pod);
        self.events.tell(v1::ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: kind.into(),
            created_at: pod_supervisor::now(),
            pod_sandbox_status: sandbox,
            containers_statuses: containers.iter().map(|c| status::container(&c.record())).collect(),
        });
    }
}
