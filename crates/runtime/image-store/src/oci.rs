//! Documents of images, OCI's and Docker's, as far as they are read here.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::Digest;

pub mod media;
mod platform;
#[cfg(test)]
mod tests;

pub use platform::Platform;

/// Most layers of an image: overlayfs takes 500 lower directories.
const LAYERS: usize = 500;

/// Why a document is no image that can run here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No JSON of that form.
    #[error("not a document of an image: {0}")]
    Json(String),
    /// Of the first version of Docker's format, without digests of layers.
    #[error(
        "manifest of the first version of Docker's format, which is no longer read: push the image anew with a current builder"
    )]
    Schema1,
    /// Names both layers and other manifests: who reads it would choose what it is.
    #[error("a manifest that is an index at once")]
    Ambiguous,
    /// A chart, a signature, a model.
    #[error("not an image of a container but an artifact of type {0:?}")]
    Artifact(String),
    /// None for this machine.
    #[error("no image for {wanted}; there are: {there}")]
    NoPlatform {
        /// What was looked for.
        wanted: Platform,
        /// What there is.
        there: String,
    },
    /// A layer that cannot be had.
    #[error("layer {0} has the type {1:?}, which cannot be unpacked")]
    LayerType(Digest, String),
    /// The configuration has other layers than the manifest.
    #[error("its configuration has {config} layers, its manifest {manifest}")]
    LayerCount {
        /// By the configuration.
        config: usize,
        /// By the manifest.
        manifest: usize,
    },
    /// More than overlayfs can stack.
    #[error("{0} layers, more than {LAYERS}")]
    TooManyLayers(usize),
}

/// Names content by digest and size.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is; empty in old documents.
    #[serde(default)]
    pub media_type: String,
    /// Of its bytes as they are sent.
    pub digest: Digest,
    /// Bytes as they are sent.
    pub size: u64,
    /// For which machines, in an index.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Free words.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

/// One image: a configuration and layers, lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The configuration.
    pub config: Descriptor,
    /// The layers.
    pub layers: Vec<Descriptor>,
}

/// A document that a name or digest stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// One image.
    Manifest(Manifest),
    /// The same image for several machines.
    Index(Vec<Descriptor>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schema_version: u32,
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

impl Document {
    /// Reads a manifest or an index. Which one it is says the document itself; a type that the registry names must agree
    /// (CVE-2021-41190).
    ///
    /// # Errors
    /// It is neither, or not of a container.
    pub fn parse(text: &[u8], told_type: &str) -> Result<Self, DocumentError> {
        let raw: Raw = match serde_json::from_slice(text) {
            Ok(raw) => raw,
            Err(_) if is_schema1(text) => return Err(DocumentError::Schema1),
            Err(e) => return Err(DocumentError::Json(e.to_string())),
        };
        if raw.schema_version != 2 {
            return Err(if raw.schema_version == 1 { DocumentError::Schema1 } else { no("schemaVersion is not 2") });
        }
        let is_index = match (raw.manifests.is_some(), raw.layers.is_some() || raw.config.is_some()) {
            (true, true) => return Err(DocumentError::Ambiguous),
            (is_index, _) => is_index,
        };
        for named in [raw.media_type.as_str(), told_type] {
            if media::kind(named).is_some_and(|index| index != is_index) {
                return Err(DocumentError::Ambiguous);
            }
        }
        if let Some(manifests) = raw.manifests {
            return Ok(Self::Index(manifests));
        }
        let (Some(config), Some(layers)) = (raw.config, raw.layers) else {
            return Err(no("neither a manifest nor an index"));
        };
        if !media::is_image_config(&config.media_type) {
            return Err(DocumentError::Artifact(raw.artifact_type.unwrap_or(config.media_type)));
        }
        if layers.len() > LAYERS {
            return Err(DocumentError::TooManyLayers(layers.len()));
        }
        if let Some(odd) = layers.iter().find(|l| !media::is_layer(&l.media_type)) {
            return Err(DocumentError::LayerType(odd.digest, odd.media_type.clone()));
        }
        Ok(Self::Manifest(Manifest { config, layers }))
    }
}

fn no(why: &str) -> DocumentError {
    DocumentError::Json(why.to_owned())
}

fn is_schema1(text: &[u8]) -> bool {
    let version = |v: serde_json::Value| v.get("schemaVersion").and_then(serde_json::Value::as_u64);
    serde_json::from_slice(text).ok().and_then(version) == Some(1)
}

/// The manifest for a machine, out of an index: the nearest, of equals the first.
///
/// # Errors
/// There is none.
pub fn choose<'a>(manifests: &'a [Descriptor], wanted: &Platform) -> Result<&'a Descriptor, DocumentError> {
    let fitting = manifests.iter().filter(|m| media::kind(&m.media_type) != Some(true) || m.platform.is_some());
    let ranked = fitting.filter_map(|m| Some((wanted.rank(m.platform.as_ref()?)?, m)));
    if let Some((_, nearest)) = ranked.min_by_key(|(rank, _)| *rank) {
        return Ok(nearest);
    }
    match manifests {
        // Of one that says nothing its configuration will.
        [only] if only.platform.is_none() => Ok(only),
        _ => {
            let names = manifests.iter().filter_map(|m| m.platform.as_ref()).filter(|p| p.os != "unknown");
            let there: Vec<String> = names.map(ToString::to_string).take(20).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            Err(DocumentError::NoPlatform { wanted: wanted.clone(), there })
        }
    }
}

/// What a container of an image is started with, unless told otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ContainerDefaults {
    /// User, perhaps with a group: names or numbers.
    #[serde(deserialize_with = "or_default")]
    pub user: String,
    /// Ports that it listens on, such as `80/tcp`.
    #[serde(deserialize_with = "keys")]
    pub exposed_ports: Vec<String>,
    /// `NAME=value`.
    #[serde(deserialize_with = "or_default")]
    pub env: Vec<String>,
    /// Command without arguments.
    #[serde(deserialize_with = "or_default")]
    pub entrypoint: Vec<String>,
    /// Arguments, or the command where there is no entrypoint.
    #[serde(deserialize_with = "or_default")]
    pub cmd: Vec<String>,
    /// Paths for data.
    #[serde(deserialize_with = "keys")]
    pub volumes: Vec<String>,
    /// Working directory.
    #[serde(deserialize_with = "or_default")]
    pub working_dir: String,
    /// Free words.
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Signal that ends it: a name or number.
    #[serde(deserialize_with = "or_default")]
    pub stop_signal: String,
}

/// Configuration of an image (OCI image-spec, config.md).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ImageConfig {
    /// For which machines.
    #[serde(flatten)]
    pub platform: Platform,
    /// When it was built, RFC 3339.
    #[serde(default)]
    pub created: Option<String>,
    /// What containers start with.
    #[serde(default, deserialize_with = "or_default")]
    pub config: ContainerDefaults,
    /// Its layers.
    pub rootfs: RootFs,
}

/// The layers of an image by their contents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RootFs {
    /// Digests of the layers without compression, lowest first.
    #[serde(default, deserialize_with = "or_default")]
    pub diff_ids: Vec<Digest>,
}

impl ImageConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &[u8]) -> Result<Self, DocumentError> {
        let config: Self = serde_json::from_slice(text).map_err(|e| DocumentError::Json(e.to_string()))?;
        match config.rootfs.diff_ids.len() {
            many if many > LAYERS => Err(DocumentError::TooManyLayers(many)),
            _ => Ok(config),
        }
    }

    /// Whether it belongs to that manifest and runs on that machine.
    ///
    /// # Errors
    /// Not.
    pub fn fits(&self, layers: usize, wanted: &Platform) -> Result<(), DocumentError> {
        let config = self.rootfs.diff_ids.len();
        if config != layers {
            return Err(DocumentError::LayerCount { config, manifest: layers });
        }
        match wanted.rank(&self.platform) {
            Some(_) => Ok(()),
            None => Err(DocumentError::NoPlatform { wanted: wanted.clone(), there: self.platform.to_string() }),
        }
    }
}

/// `null` counts as not given: builders write it for empty lists.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// The keys of an object whose values say nothing.
fn keys<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let map = Option::<BTreeMap<String, serde::de::IgnoredAny>>::deserialize(from)?.unwrap_or_default();
    Ok(map.into_keys().collect())
}
