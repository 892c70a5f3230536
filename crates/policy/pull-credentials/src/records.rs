//! Records of images that this node pulled (pod-lifecycle 5.4, interfaces 8.7): which credentials opened them.
//!
//! An *intent* is written before a pull and removed after it, a *record* after a pull that succeeded. Files and JSON are a
//! kubelet's, so that either can take over from the other.

use std::collections::BTreeMap;

use model::Timestamp;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::keyring::{Credential, Source};

#[cfg(test)]
mod tests;

const GROUP: &str = "kubelet.config.k8s.io/";
const VERSION: &str = "kubelet.config.k8s.io/v1beta1";

/// An image that is being pulled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PullIntent {
    /// As written in the pod.
    pub image: String,
}

/// An image that was pulled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PullRecord {
    /// When it last changed.
    pub updated: Timestamp,
    /// Id or reference that the runtime answered.
    pub image_ref: String,
    /// Who may use it, by repository without tag (`docker.io/library/busybox`).
    pub access: BTreeMap<String, Access>,
}

/// Who may use an image.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Access {
    /// Pods with one of these pull secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub kubernetes_secrets: Vec<SecretAccess>,
    /// Pods of these service accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_empty")]
    pub kubernetes_service_accounts: Vec<AccountAccess>,
    /// Every pod.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub node_pods_accessible: bool,
}

/// A pull secret that opened an image. Sorted by namespace, name, UID.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretAccess {
    /// UID.
    pub uid: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// [`Credential::hash`] of what was sent; empty: not known.
    pub credential_hash: String,
}

/// A service account whose token opened an image.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountAccess {
    /// UID.
    pub uid: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(d)?.unwrap_or_default())
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawIntent {
    kind: String,
    api_version: String,
    image: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawRecord {
    kind: String,
    api_version: String,
    last_updated_time: Option<Time>,
    image_ref: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credential_mapping: Option<BTreeMap<String, Access>>,
}

/// Name of the file for an image (intent) or an image reference (record).
#[must_use]
pub fn file_name(key: &str) -> String {
    format!("sha256-{}", crate::keyring::hex(&Sha256::digest(key.as_bytes())))
}

/// Whether a file is one of ours, and whole.
#[must_use]
pub fn is_record_file(name: &str) -> bool {
    name.starts_with("sha256-") && !name.ends_with(".tmp")
}

impl PullIntent {
    /// Text of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let raw = RawIntent { kind: "ImagePullIntent".into(), api_version: VERSION.into(), image: self.image.clone() };
        line(&raw)
    }

    /// From the text of a file; `None` when it is none.
    #[must_use]
    pub fn decode(text: &[u8]) -> Option<Self> {
        let raw: RawIntent = serde_json::from_slice(text).ok()?;
        fits(&raw.kind, "ImagePullIntent", &raw.api_version).then_some(Self { image: raw.image })
    }
}

impl PullRecord {
    /// Text of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        line(&RawRecord {
            kind: "ImagePulledRecord".into(),
            api_version: VERSION.into(),
            last_updated_time: self.updated.to_api(),
            image_ref: self.image_ref.clone(),
            credential_mapping: (!self.access.is_empty()).then(|| self.access.clone()),
        })
    }

    /// From the text of a file; `None` when it is none.
    #[must_use]
    pub fn decode(text: &[u8]) -> Option<Self> {
        let raw: RawRecord = serde_json::from_slice(text).ok()?;
        fits(&raw.kind, "ImagePulledRecord", &raw.api_version).then(|| Self {
            updated: raw.last_updated_time.as_ref().map_or(Timestamp::ZERO, Timestamp::from_api),
            image_ref: raw.image_ref,
            access: raw.credential_mapping.unwrap_or_default(),
        })
    }
}

fn fits(kind: &str, wanted: &str, version: &str) -> bool {
    kind == wanted && version.strip_prefix(GROUP).is_some_and(|v| matches!(v, "v1" | "v1beta1" | "v1alpha1"))
}

fn line(raw: &impl Serialize) -> Vec<u8> {
    // Strings, lists and maps of strings always have a JSON form.
    let mut out = serde_json::to_vec(raw).unwrap_or_default();
    out.push(b'\n');
    out
}

/// Who may use an image that was pulled with this credential (`None`: without any).
#[must_use]
pub fn access_by(used: Option<&Credential>) -> Access {
    let mut access = Access::default();
    match used.map(|c| (c, &c.source)) {
        None | Some((_, Source::Node)) => access.node_pods_accessible = true,
        Some((c, Source::Secret { uid, namespace, name })) => access.kubernetes_secrets.push(SecretAccess {
            uid: uid.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            credential_hash: c.hash(),
        }),
        Some((_, Source::ServiceAccount { uid, namespace, name })) => {
            let account = AccountAccess { uid: uid.clone(), namespace: namespace.clone(), name: name.clone() };
            access.kubernetes_service_accounts.push(account);
        }
    }
    access
}

/// The record after a pull: `None` when it stays as it is. `access` is `None` for an image of which nobody knows how it
/// came here: it is then known, but nobody may use it without being checked.
#[must_use]
pub fn merged(
    old: Option<&PullRecord>,
    image_ref: &str,
    repository: &str,
    access: Option<&Access>,
    now: Timestamp,
) -> Option<PullRecord> {
    let Some(old) = old else {
        let access = access.map(|a| (repository.to_owned(), a.clone())).into_iter().collect();
        return Some(PullRecord { updated: now, image_ref: image_ref.to_owned(), access });
    };
    let new = access.filter(|a| **a != Access::default())?;
    let before = old.access.get(repository);
    let after = match before {
        None => new.clone(),
        Some(b) if b.node_pods_accessible => return None,
        Some(_) if new.node_pods_accessible => Access { node_pods_accessible: true, ..Access::default() },
        Some(b) => joined(b, new),
    };
    if before == Some(&after) {
        return None;
    }
    let mut record = PullRecord { updated: now, ..old.clone() };
    record.access.insert(repository.to_owned(), after);
    Some(record)
}

/// Both together: of a secret that is in both, the newer hash.
fn joined(old: &Access, new: &Access) -> Access {
    let mut out = old.clone();
    for secret in &new.kubernetes_secrets {
        let same = |s: &SecretAccess| (&s.uid, &s.namespace, &s.name) == (&secret.uid, &secret.namespace, &secret.name);
        out.kubernetes_secrets.retain(|s| !same(s));
        out.kubernetes_secrets.push(secret.clone());
    }
    out.kubernetes_secrets.sort_by(|a, b| (&a.namespace, &a.name, &a.uid).cmp(&(&b.namespace, &b.name, &b.uid)));
    for account in &new.kubernetes_service_accounts {
        if !out.kubernetes_service_accounts.contains(account) {
            out.kubernetes_service_accounts.push(account.clone());
        }
    }
    let by_name =
        |a: &AccountAccess, b: &AccountAccess| (&a.namespace, &a.name, &a.uid).cmp(&(&b.namespace, &b.name, &b.uid));
    out.kubernetes_service_accounts.sort_by(by_name);
    out
}
