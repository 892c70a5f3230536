//! An image service in memory, and the manager around it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actor::{Actor, ActorRef, Ctx, Handler, Kernel, Spec, supervised};
use async_trait::async_trait;
use contract::event::{EventHandle, RecordEvent};
use contract::image::{EnsureImage, EnsuredImage, ImageFailure, ImageHandle, ImageView};
use cri_api::v1;
use model::core::Pod;
use model::event::EventObject;
use ports::runtime::{ImageService, RuntimeCode, RuntimeError, RuntimeResult};
use serde_json::json;

use crate::{Config, Deps, ImageManager, Slots};

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
    running: usize,
    most: usize,
}

impl FakeImages {
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
        Ok(v1::ListImagesResponse::default())
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
        world.present.insert(name.clone());
        Ok(v1::PullImageResponse { image_ref: id_of(&name) })
    }
    async fn remove_image(&self, _: v1::RemoveImageRequest) -> RuntimeResult<()> {
        Ok(())
    }
    async fn image_fs_info(&self) -> RuntimeResult<v1::ImageFsInfoResponse> {
        Ok(v1::ImageFsInfoResponse::default())
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
        let EventObject::Pod { name, field_path, .. } = e.object else { return };
        self.0.lock().unwrap().push(format!("{name} {field_path} {} {}: {}", e.kind.as_str(), e.reason, e.message));
    }
}

/// Long enough for any pull here.
pub(super) const LONG: Duration = Duration::from_secs(86_400);

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) images: Arc<FakeImages>,
    pub(super) handle: ImageHandle,
    pub(super) manager: ActorRef<ImageManager>,
    log: Arc<Mutex<Vec<String>>>,
}

pub(super) struct Setup {
    pub(super) qps: i32,
    pub(super) burst: i32,
    pub(super) serial: bool,
    pub(super) parallel_max: Option<usize>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { qps: 5, burst: 10, serial: true, parallel_max: None }
    }
}

impl Bench {
    pub(super) fn start(kernel: &Kernel, setup: Setup) -> Self {
        let images = Arc::new(FakeImages::default());
        let (events, log) = (EventHandle::default(), Arc::new(Mutex::new(Vec::new())));
        let lines = log.clone();
        events.record.connect(&kernel.spawn(Spec::new("event-recorder"), move |_| Recorder(lines.clone())));
        let handle = ImageHandle::default();
        let slots = Slots::new(setup.serial, setup.parallel_max, handle.view.clone());
        let deps = Arc::new(Deps { images: images.clone(), events, slots });
        let config = Config { registry_qps: setup.qps, registry_burst: setup.burst };
        let manager = kernel.spawn(Spec::new("image-manager"), move |_| ImageManager::new(&config, deps.clone()));
        handle.ensure_image.connect(&manager);
        Self { images, handle, manager, log }
    }

    /// Asks for the image of pod `pod`, and waits.
    pub(super) async fn ensure(&self, pod: &str, image: &str, policy: &str) -> Result<EnsuredImage, ImageFailure> {
        self.handle.ensure_image.ask(request(pod, image, policy), LONG).await?
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
        self.handle.view.get()
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
