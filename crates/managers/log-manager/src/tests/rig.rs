use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actor::testing::settle;
pub(super) use actor::testing::until;
use actor::{ActorRef, Kernel};
use contract::Wiring;
use cri_api::v1;
use fakes::runtime::samples;
use fakes::{FakeRuntime, Folder};
use jiff::tz::TimeZone;
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use model::{PodUid, Timestamp};
use ports::runtime::Runtime;

use crate::{Config, Deps, LogManager, Serial};

pub(super) const INTERVAL: Duration = Duration::from_secs(10);

pub(super) fn config() -> Config {
    Config { max_size: Some(100), max_files: 5, max_workers: 1, interval: INTERVAL, time_zone: TimeZone::UTC }
}

pub(super) struct Rig {
    pub(super) dir: Folder,
    pub(super) fake: FakeRuntime,
    client: Arc<dyn Runtime>,
    sandbox: String,
    pub(super) wiring: Wiring,
    rows: BTreeMap<String, ContainerObservation>,
    pub(super) compress: Arc<dyn ports::log::Compress>,
}

impl Rig {
    pub(super) async fn new() -> Self {
        let (dir, fake) = (Folder::new("/logs"), FakeRuntime::default());
        fake.write_files_to(&dir.disk);
        fake.add_images(&["app:1"]);
        let client = fake.client();
        let log_directory = dir.path("").to_string_lossy().into_owned();
        let sandbox = v1::PodSandboxConfig { log_directory, ..samples::sandbox("web", 0) };
        let request = v1::RunPodSandboxRequest { config: Some(sandbox), runtime_handler: String::new() };
        let sandbox = client.run_pod_sandbox(request).await.unwrap().pod_sandbox_id;
        let compress = dir.fs();
        Self { dir, fake, client, sandbox, wiring: Wiring::default(), rows: BTreeMap::new(), compress }
    }

    /// A running container with an empty log in a folder of its name.
    pub(super) async fn container(&mut self, name: &str) -> String {
        self.dir.write(self.log(name), "");
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: self.sandbox.clone(),
            config: Some(samples::container("web", name, "app:1", 0)),
            sandbox_config: Some(samples::sandbox("web", 0)),
        };
        let id = self.client.create_container(request).await.unwrap().container_id;
        self.client.start_container(v1::StartContainerRequest { container_id: id.clone() }).await.unwrap();
        let log_path = self.log(name).to_str().unwrap().to_owned();
        let row = ContainerObservation {
            created_at: Timestamp(1),
            started_at: Timestamp(1),
            log_path,
            ..ContainerObservation::new(id.as_str(), name, "s", ContainerState::Running)
        };
        self.rows.insert(name.to_owned(), row);
        self.observe(name, ContainerState::Running);
        id
    }

    /// Changes the state that the board shows.
    pub(super) fn observe(&mut self, name: &str, state: ContainerState) {
        self.rows.get_mut(name).unwrap().state = state;
        let mut pod = PodObservation::empty(PodUid::from("u"), "ns", "web");
        pod.containers = self.rows.values().cloned().collect();
        fakes::observe(&self.wiring, pod);
    }

    pub(super) fn start(&self, kernel: &Kernel, config: Config) -> ActorRef<LogManager> {
        let runtime: Arc<dyn ports::runtime::ContainerRuntime> = self.client.clone();
        let deps =
            Arc::new(Deps { runtime, fs: self.dir.fs(), compress: self.compress.clone(), serial: Serial::default() });
        let config = Arc::new(config);
        fakes::start(kernel, &self.wiring, move |crew| LogManager::new(&crew, config.clone(), deps.clone()))
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.dir.path(name).join("0.log")
    }

    pub(super) fn has_log(&self, name: &str) -> bool {
        self.dir.exists(self.log(name))
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        // As a runtime has it: without a file nothing is made.
        assert!(self.has_log(name), "the container has a log");
        self.dir.append(self.log(name), text);
    }

    /// Text of one file; what is "compressed" can be read.
    pub(super) fn text(&self, name: &str, file: &str) -> String {
        self.dir.read(format!("{name}/{file}"))
    }

    /// Names of the files beside the log, and its own, sorted.
    pub(super) fn files(&self, name: &str) -> Vec<String> {
        self.dir.names(name)
    }

    /// All that was ever written and is still there, oldest first.
    pub(super) fn everything(&self, name: &str) -> String {
        let mut files = self.files(name);
        // The log itself is the newest.
        files.sort_by_key(|f| (f == "0.log", f.clone()));
        files.iter().map(|f| self.text(name, f)).collect()
    }

    pub(super) fn reopened(&self) -> usize {
        self.fake.count("ReopenContainerLog")
    }
}

/// Lets a round pass.
pub(super) async fn round() {
    tokio::time::sleep(INTERVAL).await;
    for _ in 0..20 {
        settle().await;
    }
}
