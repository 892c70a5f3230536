//! A runtime that pulls, a disk in memory, a plugin and an object store; and the manager between them.

use std::sync::Arc;
use std::time::Duration;

use actor::{ActorRef, Kernel};
use contract::Wiring;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure, ImageView};
use cri_api::v1;
use fakes::runtime::{Code, FakeImage, Mutation, Pull};
use fakes::{Events, FakePlugin, FakeRuntime, Folder, MemFs, Objects};
use image_pull::gc::Thresholds;
use model::core::{Pod, Secret};
use model::event::{EventObject, NodeEvent};
use pull_credentials::provider_config::Provider;
use pull_credentials::verification::Policy;
use serde_json::{Value, json};

use crate::{Config, CredentialCache, Deps, ImageAges, ImageManager, PullRecords, Slots};

/// Root directory of the node.
const ROOT: &str = "/kubelet";
/// What a pull takes of which a test says nothing.
const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) runtime: FakeRuntime,
    /// Root directory of the node.
    pub(super) root: Folder,
    pub(super) wiring: Wiring,
    pub(super) manager: ActorRef<ImageManager>,
    events: Events,
    pub(super) plugin: Arc<FakePlugin>,
    pub(super) objects: Objects,
    config: Arc<Config>,
    deps: Arc<Deps>,
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
    /// Every name can be pulled by everybody, in a second. The disk is nearly full, and stays so.
    pub(super) fn start(kernel: &Kernel, setup: Setup) -> Self {
        let (wiring, runtime, files) = (Wiring::default(), FakeRuntime::default(), MemFs::with_dirs(["/work"]));
        runtime.registry_has_all(Pull::Succeeds(SECOND));
        files.set_free(9 << 30);
        let (plugin, objects) = (Arc::new(FakePlugin::default()), Objects::on(&wiring, "default"));
        let deps = Arc::new(Deps {
            images: runtime.client(),
            slots: Slots::new(setup.serial, setup.parallel_max),
            fs: Arc::new(files.clone()),
            plugin: plugin.clone(),
            credential_cache: CredentialCache::default(),
            pull_records: PullRecords::default(),
            ages: ImageAges::default(),
        });
        let config = Arc::new(Config {
            registry_qps: setup.qps,
            registry_burst: setup.burst,
            root_dir: ROOT.into(),
            working_dir: "/work".into(),
            home: None,
            providers: setup.providers,
            verification: setup.verification,
            gc: setup.gc,
        });
        let events = Events::on(&wiring);
        let manager = begin(kernel, &wiring, &config, &deps);
        Self { runtime, root: Folder::of(&files, ROOT), wiring, manager, events, plugin, objects, config, deps }
    }

    /// The manager gives its place away, and another one of this process takes it so much later.
    pub(super) async fn is_away(&mut self, kernel: &Kernel, pause: Duration) {
        self.manager.stop();
        self.manager.stopped().await;
        tokio::time::sleep(pause).await;
        self.manager = begin(kernel, &self.wiring, &self.config, &self.deps);
    }

    /// Images that are there.
    pub(super) fn put(&self, names: &[&str]) {
        self.runtime.add_images(names);
    }

    /// From now on pulls of this image fail after a second.
    pub(super) fn fails(&self, image: &str, code: Code, text: &str) {
        self.runtime.registry(image, Pull::Fails(SECOND, code, text.to_owned()));
    }

    /// Only this user may pull the image.
    pub(super) fn private(&self, image: &str, user: &str) {
        self.runtime.registry(image, Pull::NeedsAuth(SECOND, user.to_owned(), "p".to_owned()));
    }

    fn mutations<T>(&self, one: impl Fn(Mutation) -> Option<T>) -> Vec<T> {
        self.runtime.mutations().into_iter().filter_map(one).collect()
    }

    pub(super) fn pulls(&self) -> Vec<v1::PullImageRequest> {
        self.mutations(|m| if let Mutation::PullImage(r) = m { Some(*r) } else { None })
    }

    /// User names of all pulls since the last look; `-` for none.
    pub(super) fn tried(&self) -> Vec<String> {
        let names = self.pulls().into_iter().map(|p| p.auth.map_or("-".into(), |a| a.username)).collect();
        self.runtime.forget_calls();
        names
    }

    /// Ids of the images that were removed since the last look.
    pub(super) fn removed(&self) -> Vec<String> {
        let id = |m| if let Mutation::RemoveImage(r) = m { Some(r.image.unwrap_or_default().image) } else { None };
        let ids = self.mutations(id);
        self.runtime.forget_calls();
        ids
    }

    /// Pulls that have not ended.
    pub(super) fn running(&self) -> usize {
        self.runtime.calls().iter().filter(|c| c.rpc == "PullImage" && c.answered.is_none()).count()
    }

    /// The most pulls that ran at one time.
    pub(super) fn most_at_once(&self) -> usize {
        let calls = self.runtime.calls();
        let pulls: Vec<_> = calls.iter().filter(|c| c.rpc == "PullImage").collect();
        let at = |time| pulls.iter().filter(|c| c.at <= time && c.answered.is_none_or(|end| end > time)).count();
        pulls.iter().map(|c| at(c.at)).max().unwrap_or(0)
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
        let line = |e: NodeEvent| {
            let about = match e.object {
                EventObject::Pod { name, field_path, .. } => format!("{name} {field_path}"),
                EventObject::Node | EventObject::Claim { .. } | EventObject::Unknown => "node".to_owned(),
            };
            format!("{about} {} {}: {}", e.kind.as_str(), e.reason, e.message)
        };
        self.events.taken().into_iter().map(line).collect()
    }

    pub(super) fn view(&self) -> Arc<ImageView> {
        self.wiring.value().get()
    }

    /// As [`Bench::ensure`], with pull secrets.
    pub(super) async fn ensure_with(
        &self,
        pod: &str,
        image: &str,
        policy: &str,
        secrets: &[Arc<Secret>],
    ) -> Result<EnsuredImage, ImageFailure> {
        self.wiring.ask(EnsureImage { pull_secrets: secrets.into(), ..request(pod, image, policy) }).await?
    }

    /// As [`Bench::ensure`], for a pod of a service account.
    pub(super) async fn ensure_as(&self, pod: &str, image: &str, account: &str) -> Result<EnsuredImage, ImageFailure> {
        let mut ask = request(pod, image, "IfNotPresent");
        let mut with_account = Pod::clone(&ask.pod);
        with_account.spec.as_mut().unwrap().service_account_name = Some(account.into());
        ask.pod = Arc::new(with_account);
        self.wiring.ask(ask).await?
    }

    /// What is in the files of a folder below `<root>/image_manager`.
    pub(super) fn files(&self, folder: &str) -> Vec<Value> {
        let dir = format!("image_manager/{folder}");
        let content = |name: &String| serde_json::from_str(&self.root.read(format!("{dir}/{name}"))).unwrap();
        self.root.names(&dir).iter().map(content).collect()
    }
}

fn begin(kernel: &Kernel, wiring: &Wiring, config: &Arc<Config>, deps: &Arc<Deps>) -> ActorRef<ImageManager> {
    let (config, deps) = (config.clone(), deps.clone());
    fakes::start(kernel, wiring, move |crew| ImageManager::new(crew, config.clone(), deps.clone()))
}

/// Runs a test around a manager.
pub(super) fn with_bench(setup: Setup, test: impl AsyncFnOnce(Bench)) {
    actor::testing::run(1, async |kernel| test(Bench::start(&kernel, setup)).await);
}

pub(super) fn id_of(image: &str) -> String {
    FakeImage::new(image).id
}

pub(super) fn request(pod: &str, image: &str, policy: &str) -> EnsureImage {
    let metadata = json!({"name": pod, "annotations": {"note": "kept"}});
    let pod = fakes::pod(&format!("uid-{pod}"), json!({"metadata": metadata, "spec": {"containers": []}}));
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
