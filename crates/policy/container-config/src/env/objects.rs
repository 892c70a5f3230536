//! Where the environment finds what is not in the pod.

use std::collections::{BTreeMap, BTreeSet};

use model::core::{ConfigMap, Container, Secret};
use model::object::ObjectKind;

use super::error::EnvError;
use super::file;

/// An object is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The node has no API server.
    NoClient,
    /// The API server does not have it. The only failure that `optional` forgives.
    NotFound,
    /// Anything else, in the words of who failed.
    Failed(String),
}

impl LookupError {
    pub(super) fn into_env(self, kind: ObjectKind, namespace: &str, name: &str) -> EnvError {
        match self {
            LookupError::NoClient => {
                EnvError::NoClient { kind: kind.camel_case(), namespace: namespace.to_owned(), name: name.to_owned() }
            }
            LookupError::NotFound => EnvError::Object(format!("{} {name:?} not found", kind.singular())),
            LookupError::Failed(text) => EnvError::Object(text),
        }
    }
}

/// Source of ConfigMaps, Secrets and variable files; answers from memory, so callers fetch first
/// (see [`referenced_objects`]).
pub trait ObjectLookup {
    /// A ConfigMap of the pod's namespace.
    ///
    /// # Errors
    /// See [`LookupError`].
    fn config_map(&self, namespace: &str, name: &str) -> Result<ConfigMap, LookupError>;

    /// A Secret of the pod's namespace.
    ///
    /// # Errors
    /// See [`LookupError`].
    fn secret(&self, namespace: &str, name: &str) -> Result<Secret, LookupError>;

    /// Value of `key` in the variable file `path` of an emptyDir (`fileKeyRef`, 1.35); `None` when file or key is missing.
    ///
    /// # Errors
    /// Text of a failure to read or parse.
    fn file_key(&self, volume: &str, path: &str, key: &str) -> Result<Option<String>, String> {
        let _ = (path, key);
        Err(no_volume(volume))
    }
}

/// A node without API server: nothing can be looked up.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObjects;

impl ObjectLookup for NoObjects {
    fn config_map(&self, _: &str, _: &str) -> Result<ConfigMap, LookupError> {
        Err(LookupError::NoClient)
    }

    fn secret(&self, _: &str, _: &str) -> Result<Secret, LookupError> {
        Err(LookupError::NoClient)
    }
}

/// Objects of the pod's namespace that were fetched before, by name. What is not in here counts as not found.
#[derive(Clone, Debug, Default)]
pub struct ObjectMap {
    /// ConfigMaps, or why there is none.
    pub config_maps: BTreeMap<String, Result<ConfigMap, LookupError>>,
    /// Secrets, or why there is none.
    pub secrets: BTreeMap<String, Result<Secret, LookupError>>,
    /// Contents of variable files by volume and path; `None`: there is none, or why it cannot be read.
    pub files: BTreeMap<(String, String), Result<Option<String>, String>>,
}

impl ObjectLookup for ObjectMap {
    fn config_map(&self, _: &str, name: &str) -> Result<ConfigMap, LookupError> {
        self.config_maps.get(name).cloned().unwrap_or(Err(LookupError::NotFound))
    }

    fn secret(&self, _: &str, name: &str) -> Result<Secret, LookupError> {
        self.secrets.get(name).cloned().unwrap_or(Err(LookupError::NotFound))
    }

    fn file_key(&self, volume: &str, path: &str, key: &str) -> Result<Option<String>, String> {
        let found = self.files.get(&(volume.to_owned(), path.to_owned())).ok_or_else(|| no_volume(volume))?;
        let Some(content) = found.clone()? else { return Ok(None) };
        file::variable(&content, key).map_err(|e| format!("couldn't parse env file {path:?} of volume {volume:?}: {e}"))
    }
}

fn no_volume(volume: &str) -> String {
    format!("cannot find the volume {volume:?} referenced by FileKeyRef")
}

/// Volume and path of every variable file that the environment of a container names.
#[must_use]
pub fn referenced_files(container: &Container) -> BTreeSet<(String, String)> {
    let sources = container.env.iter().flatten().filter_map(|e| e.value_from.as_ref()?.file_key_ref.as_ref());
    sources.map(|f| (f.volume_name.clone(), f.path.clone())).collect()
}

/// Every ConfigMap and Secret that the environment of a container names.
#[must_use]
pub fn referenced_objects(container: &Container) -> BTreeSet<(ObjectKind, String)> {
    let mut out = BTreeSet::new();
    for from in container.env_from.iter().flatten() {
        out.extend(from.config_map_ref.iter().map(|r| (ObjectKind::ConfigMap, r.name.clone())));
        out.extend(from.secret_ref.iter().map(|r| (ObjectKind::Secret, r.name.clone())));
    }
    for from in container.env.iter().flatten().filter_map(|e| e.value_from.as_ref()) {
        out.extend(from.config_map_key_ref.iter().map(|r| (ObjectKind::ConfigMap, r.name.clone())));
        out.extend(from.secret_key_ref.iter().map(|r| (ObjectKind::Secret, r.name.clone())));
    }
    out
}
