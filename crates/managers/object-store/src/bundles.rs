//! ClusterTrustBundles that pods take trust anchors from. Pure, but for the flag that callers wait for.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use actor::watch;
use contract::objects::{FetchTrustAnchors, ObjectError};
use model::k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle;
use ports::api::{Followed, Object};
use projection::anchors::{Selector, normalised};

/// Most answers that are remembered; each is a file of a pod at least.
const REMEMBERED: usize = 256;
/// What a kubelet says where bundles cannot be had: standalone, the gate is off, the server does not serve them.
pub(crate) const NOT_SUPPORTED: &str = "ClusterTrustBundle projection is not supported in static kubelet mode";
const NOT_SYNCED: &str = "ClusterTrustBundle informer has not yet synced";

/// How far it is with the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nobody has asked yet whether it serves bundles.
    #[default]
    Unasked,
    /// It is asked whether it does, and then for its bundles.
    Asked,
    /// All have been read.
    Synced,
    /// They cannot be read now; it goes on by itself.
    NotListed,
    /// No version that is known here is served.
    NotServed,
    /// It did not say what it serves.
    NotTold(String),
}

/// As much of a bundle as is needed.
#[derive(Debug)]
struct Bundle {
    signer: Option<String>,
    labels: BTreeMap<String, String>,
    anchors: String,
    version: String,
}

/// All bundles.
#[derive(Debug)]
pub(crate) struct Bundles {
    by_name: BTreeMap<String, Bundle>,
    stage: watch::Sender<Stage>,
    /// Answers since the last change, by what was asked.
    made: BTreeMap<String, Arc<str>>,
}

impl Default for Bundles {
    fn default() -> Self {
        Self { by_name: BTreeMap::new(), stage: watch::channel(Stage::default()).0, made: BTreeMap::new() }
    }
}

impl Bundles {
    /// Whether the server must be asked (again) what it serves.
    pub(crate) fn must_ask(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Unasked | Stage::NotServed | Stage::NotTold(_))
    }

    pub(crate) fn at(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// A list or a watch failed.
    pub(crate) fn not_listed(&self) {
        self.stage.send_if_modified(|stage| {
            let first = *stage == Stage::Asked;
            if first {
                *stage = Stage::NotListed;
            }
            first
        });
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    pub(crate) fn apply(&mut self, step: Followed) {
        let bundle = |o| match o {
            Object::ClusterTrustBundle(bundle) => Some(bundle),
            _ => None,
        };
        match step {
            Followed::All(all) => {
                self.by_name.clear();
                all.into_iter().filter_map(bundle).for_each(|b| self.put(&b));
                self.at(Stage::Synced);
            }
            Followed::Applied(o) => bundle(o).iter().for_each(|b| self.put(b)),
            Followed::Deleted(o) => {
                let name = bundle(o).and_then(|b| b.metadata.name.clone());
                drop(name.and_then(|name| self.by_name.remove(&name)));
            }
            Followed::Failed(_) => {}
        }
        self.made.clear();
    }

    fn put(&mut self, bundle: &ClusterTrustBundle) {
        let ClusterTrustBundle { metadata, spec } = bundle;
        let kept = Bundle {
            signer: spec.signer_name.clone(),
            labels: metadata.labels.clone().unwrap_or_default(),
            anchors: spec.trust_bundle.clone(),
            version: metadata.resource_version.clone().unwrap_or_default(),
        };
        self.by_name.insert(metadata.name.clone().unwrap_or_default(), kept);
    }

    /// Another one for every change.
    pub(crate) fn version(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.by_name.iter().for_each(|(name, b)| (name, &b.version).hash(&mut hasher));
        format!("{:016x}", hasher.finish())
    }

    /// What a projection is given, in a kubelet's words where it is nothing.
    pub(crate) fn answer(&mut self, ask: &FetchTrustAnchors) -> Result<Arc<str>, ObjectError> {
        let failed = |text: String| Err(ObjectError::Failed(text));
        match &*self.stage.borrow() {
            Stage::Synced => {}
            Stage::NotServed => return failed(NOT_SUPPORTED.to_owned()),
            Stage::NotTold(why) => {
                let what = "failed to determine which informer manager to choose";
                return failed(format!("failed to ensure informer manager for ClusterTrustBundles: {what}: {why}"));
            }
            Stage::Unasked | Stage::Asked | Stage::NotListed => return failed(NOT_SYNCED.to_owned()),
        }
        let key = format!("{:?}", (&ask.name, &ask.signer_name, &ask.label_selector));
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let found = self.select(ask).map_err(ObjectError::Failed)?;
        let made: Arc<str> = match found {
            Ok(found) => normalised(found).into(),
            // Not remembered: whoever does not forgive it asks for the same.
            Err(missing) => return if ask.optional { Ok(Arc::default()) } else { Err(missing) },
        };
        if self.made.len() >= REMEMBERED {
            self.made.clear();
        }
        self.made.insert(key, made.clone());
        Ok(made)
    }

    /// Contents of the bundles that are meant; the inner failure is one that `optional` forgives.
    fn select(&self, ask: &FetchTrustAnchors) -> Result<Result<Vec<&str>, ObjectError>, String> {
        if let Some(name) = &ask.name {
            let found = self.by_name.get(name).map(|b| vec![b.anchors.as_str()]);
            let text = "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io";
            return Ok(found.ok_or_else(|| ObjectError::NotFound(format!("{text} {name:?} not found"))));
        }
        let Some(signer) = &ask.signer_name else {
            return Err("ClusterTrustBundle projection requires either name or signerName to be set".to_owned());
        };
        let selector = Selector::parse(ask.label_selector.as_ref())?;
        let of_signer = self.by_name.values().filter(|b| b.signer.as_ref() == Some(signer));
        let found: Vec<&str> = of_signer.filter(|b| selector.takes(&b.labels)).map(|b| b.anchors.as_str()).collect();
        let text = "combination of signerName and labelSelector matched zero ClusterTrustBundles";
        Ok(if found.is_empty() { Err(ObjectError::Failed(text.to_owned())) } else { Ok(found) })
    }
}

#[cfg(test)]
mod tests;
