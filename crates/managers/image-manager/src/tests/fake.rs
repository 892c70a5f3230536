//! An image service in memory, and the manager around it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{Actor, ActorRef, Ctx, Handler, Kernel, Spec, supervised};
use async_trait::async_trait;
use contract::Wiring;
use contract::event::RecordEvent;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure, ImageView};
use contract::objects::{FetchServiceAccount, FetchToken, ObjectError, ServiceAccountFacts, Token};
use cri_api::v1;
use image_pull::gc::Thresholds;
use model::Timestamp;
use model::core::{Pod, Secret};
use model::event::EventObject;
use ports::credential::{CredentialPlugin, PluginCall, PluginError};
use ports::runtime::{ImageService, RuntimeCode, RuntimeError, RuntimeResult};
use pull_credentials::provider_config::Provider;
use pull_credentials::verification::Policy;
use serde_json::{Value, json};

use super::files::FakeFiles;
use crate::{Config, CredentialCache, Deps, ImageManager, PullRecords, Slots};

/// A registry and a runtime that pulls from it.
#[derive(Default)]
pub(super) struct FakeImages {
    world: Mutex<World>,
}

#[derive(Default)]
struct World {
    present: BTreeSet<String>,
    /// How the next pulls of a name end; afterwards they succeed.
    script: BTreeMap<String, VecDeque<RuntimeError>>,
    /// How long a pull takes; names that are absent take a second.
    lasts: BTreeMap<String, Duration>,
    inspect_error: Option<RuntimeError>,
    pulls: Vec<v1::PullImageRequest>,
    /// User names that the registry lets in, by image; absent: everybody.
    users: BTreeMap<String, String>,
    removed: Vec<String>,
    running: usize,
    most: usize,
}

impl FakeImages {
    /// Only this user may pull the image.
    pub(super) fn private(&self, image: &str, user: &str) {
        self.world.lock().unwrap().users.insert(image.into(), user.into());
    }
    pub(super) fn removed(&self) -> Vec<String> {
        std::mem::take(&mut self.world.lock().unwrap().removed)
    }
    /// User names of all pulls so far; `-` for none.
    pub(super) fn tried(&self) -> Vec<String> {
        let pulls = std::mem::take(&mut self.world.lock().unwrap().pulls);
        pulls.into_iter().map(|p| p.auth.map_or("-".into(), |a| a.username)).collect()
    }
    pub(super) fn put(&self, image: &str) {
        self.world.lock().unwrap().present.insert(image.into());
    }
    pub(super) fn fail_next(&self, image: &str, errors: &[(RuntimeCode, &str)]) {
        let errors = errors.iter().map(|(code, text)| RuntimeError::new(*code, *text)).collect();
        self.world.lock().unwrap().script.insert(image.into(), errors);
    }
    pub(super) fn lasts(&self, image: &str, d: Duration) {
        self.world.lock().unwrap().lasts.insert(image.into(), d);
    }
    pub(super) fn fail_inspection(&self, e: RuntimeError) {
        self.world.lock().unwrap().inspect_error = Some(e);
    }
    pub(super) fn pulls(&self) -> Vec<v1::PullImageRequest> {
        self.world.lock().unwrap().pulls.clone()
    }
    /// The most pulls that ran at one time.
    pub(super) fn most(&self) -> usize {
        self.world.lock().unwrap().most
    }
    pub(super) fn running(&self) -> usize {
        self.world.lock().unwrap().running
    }
}

struct Running<'a>(&'a FakeImages);
impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.world.lock().unwrap().running -= 1;
    }
}

fn id_of(image: &str) -> String {
    format!("sha256:id-of-{image}")
}

#[async_trait]
impl ImageService for FakeImages {
    async fn list_images(&self, _: v1::ListImagesRequest) -> RuntimeResult<v1::ListImagesResponse> {
        let world = self.world.lock().unwrap();
        let of = |name: &String| v1::Image {
            id: id_of(name),
            repo_tags: vec![name.clone()],
            size: 4242,
            ..v1::Image::default()
        };
        Ok(v1::ListImagesResponse { images: world.present.iter().map(of).collect() })
    }
    async fn image_status(&self, request: v1::ImageStatusRequest) -> RuntimeResult<v1::ImageStatusResponse> {
        let world = self.world.lock().unwrap();
        if let Some(e) = &world.inspect_error {
            return Err(e.clone());
        }
        let name = request.image.unwrap_or_default().image;
        let image = world.present.contains(&name).then(|| v1::Image {
            id: id_of(&name),
            size: 4242,
            uid: name.contains("numeric").then_some(v1::Int64Value { value: 1000 }),
            username: if name.contains("named") { "app".into() } else { String::new() },
            ..v1::Image::default()
        });
        Ok(v1::ImageStatusResponse { image, ..v1::ImageStatusResponse::default() })
    }
    async fn pull_image(&self, request: v1::PullImageRequest) -> RuntimeResult<v1::PullImageResponse> {
        let name = request.image.clone().unwrap_or_default().image;
        let user = request.auth.as_ref().map(|a| a.username.clone());
        let lasts = {
            let mut world = self.world.lock().unwrap();
            world.pulls.push(request);
            world.running += 1;
            world.most = world.most.max(world.running);
            world.lasts.get(&name).copied().unwrap_or(Duration::from_secs(1))
        };
        let _running = Running(self);
        tokio::time::sleep(lasts).await;
        let mut world = self.world.lock().unwrap();
        if let Some(e) = world.script.get_mut(&name).and_then(VecDeque::pop_front) {
            return Err(e);
        }
        let user = user.unwrap_or_default();
        if world.users.get(&name).is_some_and(|allowed| *allowed != user) {
            return Err(RuntimeError::new(RuntimeCode::Unknown, format!("401 for {user:?}")));
        }
        world.present.insert(name.clone());
        Ok(v1::PullImageResponse { image_ref: id_of(&name) })
    }
    async fn remove_image(&self, request: v1::RemoveImageRequest) -> RuntimeResult<()> {
        let id = request.image.unwrap_or_default().image;
        let mut world = self.world.lock().unwrap();
        world.present.retain(|name| id_of(name) != id);
        world.removed.push(id.replace("sha256:id-of-", ""));
        Ok(())
    }
    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse> {
        let fs_id = Some(v1::FilesystemIdentifier { mountpoint: "/var/lib/images".into() });
        let usage = v1::FilesystemUsage { fs_id, ..v1::FilesystemUsage::default() };
        Ok(v1::ImageFsInfoResponse { image_filesystems: vec![usage], ..v1::ImageFsInfoResponse::default() })
    }
}

struct Recorder(Arc<Mutex<Vec<String>>>);
impl Actor for Recorder {
    type Context = Ctx<Self>;
}
supervised!(Recorder);
impl Handler<RecordEvent> for Recorder {
    type Result = ();
    fn handle(&mut self, m: RecordEvent, _: &mut Ctx<Self>) {
        let e = m.event;
        let about = match e.object {
            EventObject::Pod { name, field_path, .. } => format!("{name} {field_path}"),
            EventObject::Node => "node".to_owned(),
        };
        self.0.lock().unwrap().push(format!("{about} {} {}: {}", e.kind.as_str(), e.reason, e.message));
    }
}

/// Longer than any test.
pub(super) const LONG: Duration = Duration::from_secs(86_400);

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) images: Arc<FakeImages>,
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<ImageManager>,
    log: Arc<Mutex<Vec<String>>>,
    /// Root directory of the node.
    pub(super) root: PathBuf,
    pub(super) plugin: Arc<FakePlugin>,
    pub(super) store: Arc<FakeStore>,
    _dir: Arc<tempfile::TempDir>,
}

/// Service accounts with one token for all.
#[derive(Default)]
pub(super) struct FakeStore {
    pub(super) annotations: Mutex<BTreeMap<String, String>>,
    pub(super) asked: Mutex<Vec<String>>,
}

struct Store(Arc<FakeStore>);
impl Actor for Store {
    type Context = Ctx<Self>;
}
supervised!(Store);
impl Handler<FetchServiceAccount> for Store {
    type Result = Result<ServiceAccountFacts, ObjectError>;
    fn handle(&mut self, m: FetchServiceAccount, _: &mut Ctx<Self>) -> Self::Result {
        self.0.asked.lock().unwrap().push(format!("account {}/{}", m.namespace, m.name));
        let annotations = self.0.annotations.lock().unwrap().clone();
        Ok(ServiceAccountFacts { uid: format!("uid-{}", m.name), annotations })
    }
}
impl Handler<FetchToken> for Store {
    type Result = Result<Token, ObjectError>;
    fn handle(&mut self, m: FetchToken, _: &mut Ctx<Self>) -> Self::Result {
        let text = format!("token-of-{}-for-{}", model::pod::name(&m.pod), m.audience);
        Ok(Token { text, expires_at: Timestamp::ZERO, refresh_at: Timestamp::ZERO })
    }
}

/// A plugin that answers what it is told to, after a second.
#[derive(Default)]
pub(super) struct FakePlugin {
    answer: Mutex<Option<Value>>,
    calls: Mutex<Vec<(String, Value)>>,
}

impl FakePlugin {
    pub(super) fn answers(&self, answer: Option<Value>) {
        *self.answer.lock().unwrap() = answer;
    }
    /// Name of the program and its request, of each call since the last look.
    pub(super) fn calls(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

#[async_trait]
impl CredentialPlugin for FakePlugin {
    async fn run(&self, call: PluginCall) -> Result<Vec<u8>, PluginError> {
        assert_eq!(call.deadline, Duration::from_secs(60));
        self.calls.lock().unwrap().push((call.name, serde_json::from_slice(&call.stdin).unwrap()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = self.answer.lock().unwrap().clone();
        answer.map(|a| a.to_string().into_bytes()).ok_or(PluginError("it failed".into()))
    }
}

pub(super) struct Setup {
    pub(super) qps: i32,
    pub(super) burst: i32,
    pub(super) serial: bool,
    pub(super) parallel_max: Option<usize>,
    pub(super) providers: Vec<Provider>,
    pub(super) verification: Option<Policy>,
    pub(super) gc: Thresholds,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            qps: 5,
            burst: 10,
            serial: true,
            parallel_max: None,
            providers: Vec::new(),
            verification: Some(Policy::default()),
            gc: Thresholds { high_percent: 100, ..Thresholds::default() },
        }
    }
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, setup: Setup) -> Self {
        let images = Arc::new(FakeImages::default());
        let (wiring, log) = (Wiring::default(), Arc::new(Mutex::new(Vec::new())));
        let lines = log.clone();
        let recorder = kernel.spawn(Spec::new("event-recorder"), move |_| Recorder(lines.clone()));
        wiring.connect::<contract::EventRecorder, _>(&recorder);
        let slots = Slots::new(setup.serial, setup.parallel_max);
        let (dir, plugin) = (Arc::new(tempfile::tempdir().unwrap()), Arc::new(FakePlugin::default()));
        let root = dir.path().join("kubelet");
        let store = Arc::new(FakeStore::default());
        let of = store.clone();
        let actor = kernel.spawn(Spec::new("object-store"), move |_| Store(of.clone()));
        wiring.inlet::<FetchServiceAccount>().connect(&actor);
        wiring.inlet::<FetchToken>().connect(&actor);
        let deps = Arc::new(Deps {
            images: images.clone(),
            slots,
            fs: Arc::new(FakeFiles),
            plugin: plugin.clone(),
            credential_cache: CredentialCache::default(),
            pull_records: PullRecords::default(),
        });
        let config = Arc::new(Config {
            registry_qps: setup.qps,
            registry_burst: setup.burst,
            root_dir: root.clone(),
            working_dir: dir.path().join("work"),
            home: None,
            providers: setup.providers,
            verification: setup.verification,
            gc: setup.gc,
        });
        let crew = wiring.crew();
        let new = move |_: u64| ImageManager::new(crew.succeed(), config.clone(), deps.clone());
        let manager = kernel.spawn(Spec::new("image-manager"), new);
        wiring.connect::<contract::ImageManager, _>(&manager);
        Self { images, wiring, manager, log, root, plugin, store, _dir: dir }
    }

    /// Asks for the image of pod `pod`, and waits.
    pub(super) async fn ensure(&self, pod: &str, image: &str, policy: &str) -> Result<EnsuredImage, ImageFailure> {
        self.wiring.ask(request(pod, image, policy)).await?
    }

    /// As [`Bench::ensure`], beside the test.
    pub(super) fn ensure_beside(
        &self,
        pod: &str,
        image: &str,
    ) -> tokio::task::JoinHandle<Result<EnsuredImage, ImageFailure>> {
        let (bench, pod, image) = (self.clone(), pod.to_owned(), image.to_owned());
        tokio::task::spawn_local(async move { bench.ensure(&pod, &image, "IfNotPresent").await })
    }

    /// Events since the last call.
    pub(super) async fn events(&self) -> Vec<String> {
        actor::testing::settle().await;
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    pub(super) fn view(&self) -> Arc<ImageView> {
        self.wiring.value().get()
    }
}

pub(super) fn request(pod: &str, image: &str, policy: &str) -> EnsureImage {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": pod, "namespace": "default", "uid": format!("uid-{pod}"), "annotations": {"note": "kept"}},
        "spec": {"containers": []},
    }))
    .unwrap();
    let metadata = v1::PodSandboxMetadata { name: model::pod::name(&pod).into(), ..v1::PodSandboxMetadata::default() };
    EnsureImage {
        pod: Arc::new(pod),
        field_path: "spec.containers{app}".into(),
        image: image.into(),
        pull_policy: policy.into(),
        sandbox_config: Arc::new(v1::PodSandboxConfig { metadata: Some(metadata), ..v1::PodSandboxConfig::default() }),
        runtime_handler: String::new(),
        pull_secrets: Arc::default(),
    }
}

pub(super) fn reason(answer: &Result<EnsuredImage, ImageFailure>) -> &str {
    answer.as_ref().map_or_else(|e| e.reason.as_str(), |_| "ok")
}

/// A pull secret of namespace `default` with one user for one registry.
pub(super) fn pull_secret(name: &str, registry: &str, user: &str) -> Arc<Secret> {
    let config = json!({"auths": {registry: {"username": user, "password": "p"}}}).to_string();
    let mut secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "type": "kubernetes.io/dockerconfigjson",
    }))
    .unwrap();
    let bytes = model::k8s_openapi::ByteString(config.into_bytes());
    secret.data = Some([(".dockerconfigjson".to_owned(), bytes)].into());
    Arc::new(secret)
}

impl Bench {
    /// As [`Bench::ensure`], with pull secrets.
    pub(super) async fn ensure_with(
        &self,
        pod: &str,
        image: &str,
        policy: &str,
        secrets: &[Arc<Secret>],
    ) -> Result<EnsuredImage, ImageFailure> {
        let mut ask = request(pod, image, policy);
        ask.pull_secrets = secrets.into();
        self.wiring.ask(ask).await?
    }

    /// As [`Bench::ensure`], for a pod of a service account.
    pub(super) async fn ensure_as(&self, pod: &str, image: &str, account: &str) -> Result<EnsuredImage, ImageFailure> {
        let mut ask = request(pod, image, "IfNotPresent");
        let mut with_account = Pod::clone(&ask.pod);
        with_account.spec.as_mut().unwrap().service_account_name = Some(account.into());
        ask.pod = Arc::new(with_account);
        self.wiring.ask(ask).await?
    }

    /// Files below `<root>/image_manager`.
    pub(super) fn files(&self, folder: &str) -> Vec<Value> {
        let dir = self.root.join("image_manager").join(folder);
        let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
        let text = |e: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(e.unwrap().path()).unwrap();
        entries.map(|e| serde_json::from_str(&text(e)).unwrap()).collect()
    }
}
