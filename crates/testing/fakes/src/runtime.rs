//! A container runtime in this process: CRI v1 (and containerd's event service) over gRPC, on a unix socket or in memory.
//!
//! It starts empty, as containerd 1.6 with a network does: see [`Features`]. Ids, addresses and times are the same in every run
//! on a paused clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::files::MemFs;
use actor::watch;
use cri_api::v1;
use cri_client::{CriClient, Deadlines};
use model::Timestamp;
use ports::runtime::Runtime;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

mod calls;
mod effects;
mod event_service;
mod events;
mod fault;
mod happening;
mod image_service;
mod images;
mod program;
pub mod samples;
mod service;
mod state;
mod transport;
mod witness;

pub use calls::{Call, Mutation};
pub use fault::{Fault, FaultKind};
pub use happening::{Cause, Happening, What};
pub use images::FakeImage;
pub use program::{ExecCall, ExecReply, OnTerm, Program, Pull};
pub use state::{EventTrouble, FakeContainer, FakeSandbox};
/// Codes of failures.
pub use tonic::Code;

use fault::Faults;
use state::{Change, End, State};

/// 2026-01-01T00:00:00Z.
const EPOCH: i64 = 1_767_225_600_000_000_000;

/// What this runtime implements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// CRI `GetContainerEvents`.
    pub cri_events: bool,
    /// containerd's event service.
    pub containerd_events: bool,
    /// Answer of `RuntimeConfig`; `None`: Unimplemented.
    pub cgroup_driver: Option<cri_api::v1::CgroupDriver>,
    /// Container statuses carry resources.
    pub resources_in_status: bool,
    /// `UpdatePodSandboxResources`.
    pub sandbox_resize: bool,
    /// Its handlers, the default one and `special`, run pods with users of their own. A runtime that cannot names none.
    pub user_namespaces: bool,
}

impl Features {
    /// containerd 1.6: no CRI events, but containerd's own.
    #[must_use]
    pub fn containerd_1_6() -> Self {
        Self {
            cri_events: false,
            containerd_events: true,
            cgroup_driver: None,
            resources_in_status: false,
            sandbox_resize: false,
            user_namespaces: false,
        }
    }

    /// containerd 2.x.
    #[must_use]
    pub fn containerd_2() -> Self {
        Self {
            cri_events: true,
            containerd_events: true,
            cgroup_driver: Some(cri_api::v1::CgroupDriver::Cgroupfs),
            resources_in_status: true,
            sandbox_resize: false,
            user_namespaces: false,
        }
    }

    /// No events of any kind.
    #[must_use]
    pub fn without_events() -> Self {
        Self { containerd_events: false, ..Self::containerd_1_6() }
    }
}

type ExecHandler = Arc<dyn Fn(&ExecCall) -> ExecReply + Send + Sync>;

/// What tests set.
struct Script {
    features: Features,
    programs: BTreeMap<String, Vec<Program>>,
    pulls: BTreeMap<String, Pull>,
    other_pulls: Option<Pull>,
    offers: BTreeMap<String, FakeImage>,
    exec: ExecHandler,
    runtime_ready: bool,
    network_ready: bool,
    events: EventTrouble,
    close_streams: bool,
    /// Lists that are still to lack every other sandbox or container.
    partial_lists: u32,
    exit_lag: Duration,
    files: Option<MemFs>,
    stream_url: Option<String>,
    container_stats: Option<Vec<v1::ContainerStats>>,
    image_fs: Option<v1::ImageFsInfoResponse>,
    witness: Option<happening::Witness>,
}

struct Inner {
    state: Mutex<State>,
    script: Mutex<Script>,
    faults: Mutex<Faults>,
    calls: Mutex<Vec<Call>>,
    traceparents: Mutex<Vec<String>>,
    changes: broadcast::Sender<Change>,
    cut: watch::Sender<u64>,
    up: AtomicBool,
    /// Told when calls that are held up may go on.
    released: Notify,
    epoch: AtomicI64,
    start: Instant,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime, and the test's hand on it. Clones are the same runtime.
#[derive(Clone)]
pub struct FakeRuntime {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for FakeRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.inner.state);
        write!(f, "FakeRuntime({} sandboxes, {} containers)", state.sandboxes.len(), state.containers.len())
    }
}

impl Default for FakeRuntime {
    fn default() -> Self {
        Self::new(Features::containerd_1_6())
    }
}

impl FakeRuntime {
    /// An empty runtime whose clock starts at 2026-01-01.
    #[must_use]
    pub fn new(features: Features) -> Self {
        Self::at(features, Timestamp(EPOCH))
    }

    /// An empty runtime whose clock starts now at `epoch`, for tests whose other half has a clock of its own.
    #[must_use]
    pub fn at(features: Features, epoch: Timestamp) -> Self {
        let script = Script {
            features,
            programs: BTreeMap::new(),
            pulls: BTreeMap::new(),
            other_pulls: None,
            offers: BTreeMap::new(),
            exec: Arc::new(|_| ExecReply::default()),
            runtime_ready: true,
            network_ready: true,
            events: EventTrouble::None,
            close_streams: false,
            partial_lists: 0,
            exit_lag: Duration::ZERO,
            files: None,
            stream_url: None,
            container_stats: None,
            image_fs: None,
            witness: None,
        };
        let inner = Inner {
            state: Mutex::default(),
            script: Mutex::new(script),
            faults: Mutex::default(),
            calls: Mutex::default(),
            traceparents: Mutex::default(),
            changes: broadcast::channel(4096).0,
            cut: watch::channel(0).0,
            up: AtomicBool::new(true),
            released: Notify::new(),
            epoch: AtomicI64::new(epoch.0),
            start: Instant::now(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A client of this runtime over connections without bytes, with the deadlines of interfaces 7.3.
    #[must_use]
    pub fn client(&self) -> Arc<dyn Runtime> {
        Arc::new(self.cri_client(Deadlines::default()))
    }

    /// As [`FakeRuntime::client`], as the concrete type and with other deadlines.
    #[must_use]
    pub fn cri_client(&self, deadlines: Deadlines) -> CriClient {
        CriClient::with_connector("fake", self.connector(), deadlines, 1)
    }

    /// As [`FakeRuntime::client`], by HTTP/2.
    #[must_use]
    pub fn piped_client(&self) -> CriClient {
        CriClient::with_connector("fake", self.piped_connector(), Deadlines::default(), 1)
    }

    // What containers and registries do.

    /// Says what containers do whose image or container name is `name`: the n-th program for attempt n, the last one for all
    /// later attempts. A container name goes before an image. Without a program a container runs for ever.
    pub fn program(&self, name: &str, programs: &[Program]) {
        lock(&self.inner.script).programs.insert(name.to_owned(), programs.to_vec());
    }

    /// Logs and termination messages are written to this file system from now on; before, to the machine's own.
    pub fn write_files_to(&self, files: &MemFs) {
        lock(&self.inner.script).files = Some(files.clone());
    }

    /// Puts images into the store.
    pub fn add_images(&self, names: &[&str]) {
        names.iter().for_each(|n| self.add_image(FakeImage::new(n)));
    }

    /// Puts an image into the store.
    pub fn add_image(&self, image: FakeImage) {
        lock(&self.inner.state).images.add(image);
    }

    /// Takes an image out of the store.
    pub fn remove_image(&self, name: &str) {
        lock(&self.inner.state).images.remove(name);
    }

    /// Whether an image is in the store.
    #[must_use]
    pub fn has_image(&self, name: &str) -> bool {
        lock(&self.inner.state).images.find(name).is_some()
    }

    /// Says how a pull of `name` goes. Without it the registry does not know the image.
    pub fn registry(&self, name: &str, pull: Pull) {
        lock(&self.inner.script).pulls.insert(images::full_name(name), pull);
    }

    /// Says how a pull goes of which [`FakeRuntime::registry`] says nothing.
    pub fn registry_has_all(&self, pull: Pull) {
        lock(&self.inner.script).other_pulls = Some(pull);
    }

    /// Says what a pull of this image's name brings, other than a plain image.
    pub fn registry_offers(&self, image: FakeImage) {
        lock(&self.inner.script).offers.insert(image.name.clone(), image);
    }

    /// Answers commands that are run in containers. Without it all succeed at once.
    pub fn on_exec(&self, handler: impl Fn(&ExecCall) -> ExecReply + Send + Sync + 'static) {
        lock(&self.inner.script).exec = Arc::new(handler);
    }

    /// Where sessions (exec, attach, port-forward) are served.
    pub fn set_stream_url(&self, url: &str) {
        lock(&self.inner.script).stream_url = Some(url.to_owned());
    }

    /// Answers `ListContainerStats` with these from now on, whatever runs.
    pub fn set_container_stats(&self, stats: Vec<v1::ContainerStats>) {
        lock(&self.inner.script).container_stats = Some(stats);
    }

    /// Answers `ImageFsInfo` with this from now on, whatever images there are.
    pub fn set_image_fs(&self, answer: v1::ImageFsInfoResponse) {
        lock(&self.inner.script).image_fs = Some(answer);
    }

    // What happens to the runtime.

    /// Ends a running container with this code. Returns whether it ran.
    pub fn exit(&self, container: &str, code: i32) -> bool {
        self.inner.finish(container, End::code(code))
    }

    /// Ends a running container as the kernel does when memory runs out.
    pub fn oom(&self, container: &str) -> bool {
        let end = End { code: state::KILLED, reason: "OOMKilled", message: String::new(), cause: Cause::Itself };
        self.inner.finish(container, end)
    }

    /// Ends a sandbox's own process, as when somebody kills it: NOTREADY, containers go on.
    pub fn kill_sandbox(&self, sandbox: &str) {
        self.inner.sandbox_down(sandbox, Cause::Itself);
    }

    /// The machine starts anew: what ran has ended with 255 (`Unknown`), no sandbox is ready, and no event tells of it.
    pub fn reboot(&self) {
        self.inner.reboot();
    }

    /// Loses a container, process and all, as from a damaged store; no event tells of it. Returns whether it was there.
    pub fn lose(&self, container: &str) -> bool {
        self.inner.lose(container)
    }

    /// Reports the runtime itself as ready or not.
    pub fn set_runtime_ready(&self, ready: bool) {
        lock(&self.inner.script).runtime_ready = ready;
    }

    /// Reports the network as ready or not; without it only sandboxes on the host's network start.
    pub fn set_network_ready(&self, ready: bool) {
        lock(&self.inner.script).network_ready = ready;
    }

    /// Loses all events from now on (or no longer).
    pub fn mute_events(&self, mute: bool) {
        self.trouble_events(if mute { EventTrouble::Lost } else { EventTrouble::None });
    }

    /// What becomes of events from now on.
    pub fn trouble_events(&self, trouble: EventTrouble) {
        lock(&self.inner.script).events = trouble;
    }

    /// Has so many lists lack every other sandbox or container.
    pub fn shorten_lists(&self, times: u32) {
        lock(&self.inner.script).partial_lists = times;
    }

    /// Ends CRI event streams as soon as they are opened, as CRI-O does without `enable_pod_events`.
    pub fn close_event_streams(&self, close: bool) {
        lock(&self.inner.script).close_streams = close;
    }

    /// Lets statuses follow exit events by this much, as containerd's do.
    pub fn set_exit_lag(&self, lag: Duration) {
        lock(&self.inner.script).exit_lag = lag;
    }

    /// Makes calls fail.
    pub fn inject(&self, fault: Fault) {
        lock(&self.inner.faults).add(fault);
    }

    /// Ends all faults. Calls that hang go on hanging; those that are held up go on.
    pub fn clear_faults(&self) {
        lock(&self.inner.faults).clear();
        self.shorten_lists(0);
        self.inner.released.notify_waiters();
    }

    /// Somebody sets the machine's clock forward or back by so many nanoseconds: what happens from now on has another time.
    pub fn set_clock_by(&self, nanos: i64) {
        self.inner.epoch.fetch_add(nanos, Ordering::Relaxed);
        lock(&self.inner.state).clock_was_set(nanos);
    }

    // What there is to see.

    /// The runtime's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.inner.now())
    }

    /// All sandboxes, by id (which is by age).
    #[must_use]
    pub fn sandboxes(&self) -> Vec<FakeSandbox> {
        lock(&self.inner.state).sandboxes.values().cloned().collect()
    }

    /// All containers, by id (which is by age).
    #[must_use]
    pub fn containers(&self) -> Vec<FakeContainer> {
        lock(&self.inner.state).containers.values().cloned().collect()
    }

    /// Looks at all sandboxes and containers, by id, without a copy of them.
    pub fn peek<T>(
        &self,
        look: impl FnOnce(&BTreeMap<String, FakeSandbox>, &BTreeMap<String, FakeContainer>) -> T,
    ) -> T {
        let state = lock(&self.inner.state);
        look(&state.sandboxes, &state.containers)
    }

    /// Looks at every call so far, in order of arrival, without a copy of them.
    pub fn peek_calls<T>(&self, look: impl FnOnce(&[Call]) -> T) -> T {
        look(&lock(&self.inner.calls))
    }

    /// The newest container of this name in a pod of this name.
    #[must_use]
    pub fn container(&self, pod: &str, name: &str) -> Option<FakeContainer> {
        let state = lock(&self.inner.state);
        let of_pod =
            |c: &&FakeContainer| c.name() == name && state.sandboxes.get(&c.sandbox).is_some_and(|s| s.pod() == pod);
        state.containers.values().rfind(of_pod).cloned()
    }

    /// Every call so far, in order of arrival.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.inner.calls).clone()
    }

    /// Calls of one RPC so far.
    #[must_use]
    pub fn count(&self, rpc: &str) -> usize {
        lock(&self.inner.calls).iter().filter(|c| c.rpc == rpc).count()
    }

    /// Every request that changes something, in order of arrival.
    #[must_use]
    pub fn mutations(&self) -> Vec<Mutation> {
        lock(&self.inner.calls).iter().filter_map(|c| c.mutation.clone()).collect()
    }

    /// Forgets the calls so far.
    pub fn forget_calls(&self) {
        lock(&self.inner.calls).clear();
    }
}
