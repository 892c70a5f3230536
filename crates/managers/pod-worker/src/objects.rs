//! What a pod needs of the API server: configMaps and secrets for its environment, pull secrets, services, its class.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use container_config::env::{referenced_files, referenced_objects};
use container_config::{LookupError, ObjectMap};
use contract::RoleMessage;
use contract::objects::{FetchConfigMap, FetchRuntimeClass, FetchSecret, FetchServices, HoldObjects, ObjectError};
use contract::volume::MountedVolumes;
use futures::future::join_all;
use model::core::{Container, Secret, Service};
use model::event::EventType;
use model::object::ObjectKind;

use crate::job::Job;

/// A static pod waits this long for services and then goes on without: it may be what serves them.
const STATIC_POD_WAIT: Duration = Duration::from_millis(50);

/// Longest file of variables that is read.
const ENV_FILE_MAX: u64 = 1 << 20;

/// Contents of variable files by volume and path, as [`ObjectMap`] has them.
type EnvFiles = BTreeMap<(String, String), Result<Option<String>, String>>;

impl Job {
    /// Has ObjectStore follow the objects that the pod names, before they are asked for. Said again in each step: the pod may
    /// name others now, a message may get lost, and another ObjectStore may have taken over.
    pub(crate) fn hold_objects(&self) {
        if model::pod::is_static(&self.pod) {
            return;
        }
        if let Err(e) = self.crew.tell(HoldObjects { pod: self.pod.clone() }) {
            tracing::warn!(uid = %self.uid, error = %e, "objects of the pod are not followed");
        }
    }

    /// ConfigMaps and secrets that the environment of a container names, or why they cannot be had.
    pub(crate) async fn env_objects(&self, container: &Container) -> ObjectMap {
        let mut out = ObjectMap::default();
        for (kind, name) in referenced_objects(container) {
            match kind {
                ObjectKind::ConfigMap => {
                    let namespace = model::pod::namespace(&self.pod).to_owned();
                    let ask = FetchConfigMap { namespace, name: name.clone() };
                    let found = self.call(ask).await.map_err(lookup);
                    out.config_maps.insert(name, found.map(Arc::unwrap_or_clone));
                }
                ObjectKind::Secret => {
                    let found = self.secret(&name).await.map_err(lookup);
                    out.secrets.insert(name, found.map(Arc::unwrap_or_clone));
                }
                // No variable is made of them.
                ObjectKind::ClusterTrustBundle | ObjectKind::PodCertificate | ObjectKind::Unknown => {}
            }
        }
        out
    }

    /// What earlier containers left in files that the environment of this one names.
    pub(crate) async fn env_files(&self, container: &Container, mounted: &MountedVolumes) -> EnvFiles {
        let mut out = EnvFiles::new();
        for (volume, path) in referenced_files(container) {
            let Some(place) = mounted.volumes.get(&volume) else { continue };
            let (base, inside) = (place.host_path.clone(), PathBuf::from(&path));
            let read = self.on_host(move |fs| match fs.read_within(&base, &inside, ENV_FILE_MAX) {
                Ok(content) => Ok(Some(String::from_utf8_lossy(&content).into_owned())),
                Err(e) if e.is_not_found() => Ok(None),
                Err(e) => Err(e),
            });
            let found = read.await.map_err(|e| {
                // What is at a path of the host is nobody's business but the node's.
                tracing::warn!(uid = %self.uid, container = container.name, volume, path, error = e, "no variables");
                format!("couldn't parse env file {path:?} of volume {volume:?}")
            });
            out.insert((volume, path), found);
        }
        out
    }

    async fn secret(&self, name: &str) -> Result<Arc<Secret>, ObjectError> {
        let ask = FetchSecret { namespace: model::pod::namespace(&self.pod).to_owned(), name: name.to_owned() };
        self.call(ask).await
    }

    /// Services that the environment may name; `None`: not read yet.
    pub(crate) async fn services(&self) -> Option<Vec<Service>> {
        let ask = FetchServices { namespace: model::pod::namespace(&self.pod).to_owned() };
        let wait = if model::pod::is_static(&self.pod) { STATIC_POD_WAIT } else { ask.deadline() };
        let services = tokio::time::timeout(wait, self.call(ask)).await.ok()?.ok()?;
        Some(services.iter().map(|s| (**s).clone()).collect())
    }

    /// The pod's pull secrets that can be read, in order. A missing one is reported as an event, and may not be needed.
    pub(crate) async fn pull_secrets(&self) -> Arc<[Arc<Secret>]> {
        let listed = self.pod.spec.iter().flat_map(|s| s.image_pull_secrets.iter().flatten());
        let names: Vec<&str> = listed.map(|r| r.name.as_str()).filter(|name| !name.is_empty()).collect();
        let answers = join_all(names.iter().map(|name| self.secret(name))).await;
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (name, answer) in names.into_iter().zip(answers) {
            match answer {
                Ok(secret) => found.push(secret),
                Err(e) => {
                    tracing::warn!(uid = %self.uid, secret = name, error = %e, "pull secret cannot be read");
                    missing.push(name);
                }
            }
        }
        if !missing.is_empty() {
            let text = format!(
                "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                missing.join(", ")
            );
            self.event(EventType::Warning, "FailedToRetrieveImagePullSecret", text);
        }
        found.into()
    }

    /// Handler of the pod's runtime class; empty: the default one.
    pub(crate) async fn runtime_handler(&self) -> Result<String, ObjectError> {
        let class = self.pod.spec.as_ref().and_then(|s| s.runtime_class_name.as_deref()).unwrap_or_default();
        if class.is_empty() {
            return Ok(String::new());
        }
        let ask = FetchRuntimeClass { name: class.to_owned() };
        self.call(ask).await
    }
}

fn lookup(e: ObjectError) -> LookupError {
    if e.is_not_found() { LookupError::NotFound } else { LookupError::Failed(e.to_string()) }
}
