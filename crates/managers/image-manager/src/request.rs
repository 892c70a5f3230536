//! One request for an image, and what every step of it needs.

use std::sync::Arc;

use contract::image::{EnsureImage, EnsuredImage, ImageFailure};
use cri_api::v1::{Image, ImageSpec, ImageStatusRequest};
use image_pull::text;
use model::event::{EventObject, EventType, NodeEvent};
use model::pod;
use ports::runtime::RuntimeError;
use pull_credentials::Credential;
use tokio::sync::OnceCell;

use crate::credentials;
use crate::deps::Tools;
use crate::pulls::{Manager, NoteImage};

pub(crate) struct Request {
    pub tools: Tools,
    pub manager: Arc<dyn Manager>,
    pub ask: EnsureImage,
    pub spec: ImageSpec,
    /// The image without tag, as credentials and records know it.
    pub repository: String,
    credentials: OnceCell<Vec<Credential>>,
}

pub(crate) fn failure(reason: &str, message: String) -> ImageFailure {
    ImageFailure { reason: reason.to_owned(), message }
}

pub(crate) fn emit_for_pod(tools: &Tools, ask: &EnsureImage, kind: EventType, reason: &'static str, message: String) {
    let object = EventObject::Pod {
        namespace: pod::namespace(&ask.pod).to_owned(),
        name: pod::name(&ask.pod).to_owned(),
        uid: pod::uid(&ask.pod),
        field_path: ask.field_path.clone(),
    };
    tools.crew.emit(NodeEvent { kind, reason: reason.into(), message, object });
}

impl Request {
    /// `name` is the image with its tag, `repository` without it.
    pub(crate) fn new(
        tools: Tools,
        manager: Arc<dyn Manager>,
        ask: EnsureImage,
        (name, repository): (String, String),
    ) -> Self {
        let spec = ImageSpec {
            image: name,
            annotations: ask.pod.metadata.annotations.clone().unwrap_or_default(),
            runtime_handler: ask.runtime_handler.clone(),
            ..ImageSpec::default()
        };
        Self { tools, manager, ask, spec, repository, credentials: OnceCell::new() }
    }

    /// What to try at the registry; looked up once, and only when it matters.
    pub(crate) async fn credentials(&self) -> Result<&[Credential], ImageFailure> {
        let find = || credentials::find(&self.tools, &self.repository, &self.ask.pod, &self.ask.pull_secrets);
        let found = self.credentials.get_or_try_init(find).await;
        found.map(Vec::as_slice).map_err(|e| failure(text::ERR_IMAGE_PULL, e.to_string()))
    }

    /// The image as the runtime has it.
    pub(crate) async fn inspect(&self) -> Result<Option<Image>, RuntimeError> {
        let request = ImageStatusRequest { image: Some(self.spec.clone()), verbose: false };
        Ok(self.tools.deps.images.image_status(request).await?.image)
    }

    /// Keeps the image from being removed before its container shows.
    pub(crate) fn note_image(&self, image_ref: &str, pulled: bool) {
        let note = NoteImage { pod: pod::uid(&self.ask.pod), image_ref: image_ref.to_owned(), pulled };
        // A manager that is being rebuilt keeps all young images anyway.
        let _noted: Result<(), actor::TellError> = self.manager.clone().tell(note);
    }

    pub(crate) fn emit(&self, kind: EventType, reason: &'static str, message: String) {
        emit_for_pod(&self.tools, &self.ask, kind, reason, message);
    }
}

pub(crate) fn of_image(i: &Image) -> EnsuredImage {
    let uid = i.uid.as_ref().map(|u| u.value);
    let username = if uid.is_some() { String::new() } else { i.username.clone() };
    EnsuredImage { image_ref: i.id.clone(), uid, username }
}
