//! Pods that want images, and a runtime that has and pulls them.

use std::sync::Arc;
use std::time::Duration;

use contract::ImageManager;
use contract::image::{EnsureImage, EnsuredImage, ImageFailure, ImageView, RemoveUnusedImages};
use contract::runtime::Observed;
use cri_api::v1;
use fakes::runtime::{FakeImage, Fault, Mutation, Pull};
use fakes::{Events, FakeRuntime, Folder};
use model::core::{Pod, Secret};
use model::event::{EventObject, NodeEvent};
use model::runtime::{ContainerObservation, ContainerState, PodObservation};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::case::Case;
use crate::outcome::{Broken, Outcome, demand};
use crate::stage::Stage;
use crate::watch::until;

/// How long a manager may take for what it does at once.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// Field path of the container that wants an image.
pub(super) const FIELD: &str = "spec.containers{app}";

pub(super) type Answer = Result<EnsuredImage, ImageFailure>;

/// A stage with a runtime and an event recorder. Every image can be pulled, in a tenth of a second.
#[derive(Clone)]
pub(super) struct Bed {
    pub(super) stage: Stage<ImageManager>,
    pub(super) runtime: FakeRuntime,
    events: Events,
}

impl Bed {
    pub(super) fn on(stage: Stage<ImageManager>) -> Self {
        let runtime = stage.outside().runtime().clone();
        runtime.registry_has_all(Pull::Succeeds(Duration::from_millis(100)));
        Bed { runtime, events: Events::on(stage.wiring()), stage }
    }

    /// Repository that no other case has.
    pub(super) fn repository(&self, word: &str) -> String {
        format!("r.io/{}", self.stage.uid(word))
    }

    /// An image that no other case has.
    pub(super) fn image(&self, word: &str) -> String {
        format!("{}:1", self.repository(word))
    }

    /// The runtime has it.
    pub(super) fn has(&self, image: &str) -> FakeImage {
        let image = FakeImage::new(image);
        self.runtime.add_image(image.clone());
        image
    }

    pub(super) fn pulls_so(&self, image: &str, pull: Pull) {
        self.runtime.registry(image, pull);
    }

    /// Only who has this name may pull it; the password is `p`.
    pub(super) fn private(&self, image: &str, user: &str) {
        self.pulls_so(image, Pull::NeedsAuth(Duration::from_millis(100), user.to_owned(), "p".to_owned()));
    }

    pub(super) fn pod(&self, word: &str) -> Arc<Pod> {
        let metadata = json!({"name": word, "namespace": "ns", "annotations": {"note": "kept"}});
        let spec = json!({"containers": [{"name": "app"}]});
        Arc::new(fakes::pod(&self.stage.uid(word), json!({"metadata": metadata, "spec": spec})))
    }

    pub(super) fn want(&self, pod: &Arc<Pod>, image: &str, pull_policy: &str) -> EnsureImage {
        let metadata =
            v1::PodSandboxMetadata { name: model::pod::name(pod).into(), ..v1::PodSandboxMetadata::default() };
        let sandbox_config = v1::PodSandboxConfig { metadata: Some(metadata), ..v1::PodSandboxConfig::default() };
        EnsureImage {
            pod: pod.clone(),
            field_path: FIELD.to_owned(),
            image: image.to_owned(),
            pull_policy: pull_policy.to_owned(),
            sandbox_config: Arc::new(sandbox_config),
            runtime_handler: String::new(),
            pull_secrets: Arc::default(),
        }
    }

    /// What a pod without secrets wants, unless it is there.
    pub(super) fn wants(&self, pod: &str, image: &str) -> EnsureImage {
        self.want(&self.pod(pod), image, "IfNotPresent")
    }

    pub(super) fn wants_with(&self, pod: &str, image: &str, secrets: &[Arc<Secret>]) -> EnsureImage {
        EnsureImage { pull_secrets: secrets.into(), ..self.wants(pod, image) }
    }

    pub(super) async fn ask(&self, ask: EnsureImage) -> Outcome<Answer> {
        self.stage.ask(ask).await
    }

    /// The image is to be had.
    pub(super) async fn got(&self, ask: EnsureImage) -> Outcome<EnsuredImage> {
        let image = ask.image.clone();
        self.ask(ask).await?.map_err(|e| Broken(format!("{image} is not to be had: {}: {e}", e.reason)))
    }

    /// It is not, for this reason.
    pub(super) async fn refused(&self, ask: EnsureImage, reason: &str) -> Outcome<ImageFailure> {
        let image = ask.image.clone();
        match self.ask(ask).await? {
            Err(failure) if failure.reason == reason => Ok(failure),
            other => Err(Broken(format!("of {image} the answer is {other:?}, not {reason}"))),
        }
    }

    /// As [`Bed::ask`], beside the case.
    pub(super) fn beside(&self, ask: EnsureImage) -> JoinHandle<Outcome<Answer>> {
        let bed = self.clone();
        tokio::task::spawn_local(async move { bed.ask(ask).await })
    }

    fn mutations<T>(&self, one: impl Fn(Mutation) -> Option<T>) -> Vec<T> {
        self.runtime.mutations().into_iter().filter_map(one).collect()
    }

    /// Pulls of an image that the runtime was asked for, by the name that it was asked with.
    pub(super) fn pulls(&self, image: &str) -> Vec<v1::PullImageRequest> {
        let of_image = |r: &v1::PullImageRequest| r.image.as_ref().is_some_and(|i| i.image == image);
        self.mutations(|m| if let Mutation::PullImage(r) = m { Some(*r).filter(of_image) } else { None })
    }

    pub(super) fn was_pulled(&self, image: &str, times: usize) -> Outcome {
        let found = self.pulls(image).len();
        demand(found == times, || format!("{image} was pulled {found} times, not {times}"))
    }

    /// Who tried to pull an image, in order; `-`: nobody in particular.
    pub(super) fn tried(&self, image: &str) -> Vec<String> {
        self.pulls(image).into_iter().map(|p| p.auth.map_or("-".to_owned(), |a| a.username)).collect()
    }

    /// It was tried by these, see [`Bed::tried`].
    pub(super) fn was_tried_as(&self, image: &str, users: &[&str]) -> Outcome {
        let tried = self.tried(image);
        demand(tried == users, || format!("it was tried as {tried:?}"))
    }

    /// Pulls of it that have not ended.
    pub(super) fn running(&self, image: &str) -> usize {
        let runs = |c: &&fakes::runtime::Call| c.rpc == "PullImage" && c.subject == image && c.answered.is_none();
        self.runtime.peek_calls(|calls| calls.iter().filter(runs).count())
    }

    /// The runtime is asked to pull it.
    pub(super) async fn is_being_pulled(&self, image: &str) -> Outcome {
        until("the image is being pulled", SOON, || self.running(image) > 0).await
    }

    /// Images that the runtime was asked to remove, in order.
    pub(super) fn removed(&self) -> Vec<String> {
        let id = |m| if let Mutation::RemoveImage(r) = m { r.image.map(|i| i.image) } else { None };
        self.mutations(id)
    }

    /// The runtime shows a pod with a container of this image.
    pub(super) fn shows(&self, pod: &Pod, state: ContainerState, image: &str, image_ref: &str) {
        let container = ContainerObservation {
            image: image.to_owned(),
            image_ref: image_ref.to_owned(),
            ..ContainerObservation::new("c1", "app", "s1", state)
        };
        let uid = model::pod::uid(pod);
        let shown = PodObservation::empty(uid, model::pod::namespace(pod), model::pod::name(pod));
        fakes::observe(self.stage.wiring(), PodObservation { containers: vec![container], ..shown });
    }

    pub(super) fn shows_no_more(&self, pod: &Pod) {
        self.stage.wiring().take_away::<Observed>(&model::pod::uid(pod));
    }

    pub(super) async fn remove_unused(&self) -> Outcome<Result<u64, ImageFailure>> {
        self.stage.ask(RemoveUnusedImages).await
    }

    /// As [`Bed::remove_unused`], which succeeds.
    pub(super) async fn frees(&self) -> Outcome<u64> {
        self.remove_unused().await?.map_err(|e| Broken(format!("nothing was removed: {}: {e}", e.reason)))
    }

    pub(super) fn view(&self) -> Arc<ImageView> {
        self.stage.wiring().value().get()
    }

    /// Events of a pod's container, as `Warning Failed: why`, in order.
    pub(super) fn told(&self, pod: &Pod) -> Vec<String> {
        let of_pod = |e: &&NodeEvent| match &e.object {
            EventObject::Pod { uid, field_path, .. } => *uid == model::pod::uid(pod) && field_path == FIELD,
            _ => false,
        };
        self.events.all().iter().filter(of_pod).map(line).collect()
    }

    /// Events of the node.
    pub(super) fn told_of_node(&self) -> Vec<String> {
        self.events.all().iter().filter(|e| e.object == EventObject::Node).map(line).collect()
    }

    /// All that events said so far.
    pub(super) fn all_told(&self) -> Vec<String> {
        self.events.all().iter().map(line).collect()
    }

    /// Such an event of the pod's container comes.
    pub(super) async fn tells(&self, pod: &Pod, event: &str) -> Outcome {
        let found = until("it is told", SOON, || self.told(pod).iter().any(|e| e == event)).await;
        found.map_err(|_| Broken(format!("no event {event:?}: {:?}", self.told(pod))))
    }

    /// Writes a file below the root directory of the node, where that is in memory.
    pub(super) fn write(&self, below: &str, content: &str) {
        self.root().write(below, content);
    }

    /// Writes nonsense over every file of such a folder, of which there are some.
    pub(super) fn damage(&self, folder: &str) -> Outcome {
        let names = self.root().names(folder);
        demand(!names.is_empty(), || format!("{folder} is empty"))?;
        names.iter().for_each(|name| self.write(&format!("{folder}/{name}"), "nonsense"));
        Ok(())
    }

    fn root(&self) -> Folder {
        let outside = self.stage.outside();
        Folder::of(&outside.files(), outside.root_dir())
    }

    pub(super) fn strikes(&self, fault: Fault) {
        self.runtime.inject(fault);
    }
}

fn line(e: &NodeEvent) -> String {
    format!("{} {}: {}", e.kind.as_str(), e.reason, e.message)
}

pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub(super) async fn pass(time: f64) {
    tokio::time::sleep(seconds(time)).await;
}

/// What came of a request beside the case.
pub(super) async fn came(job: JoinHandle<Outcome<Answer>>) -> Outcome<Answer> {
    job.await.map_err(|e| Broken(format!("a request of the case: {e}")))?
}

/// A case that begins with a manager that was asked for nothing yet, and a runtime without images.
pub(super) fn case<F, Fut>(name: &'static str, source: &'static str, rule: &'static str, play: F) -> Case<ImageManager>
where
    F: Fn(Bed) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + 'static,
{
    Case::begun(name, source, rule, Bed::on, play)
}
