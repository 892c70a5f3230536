//! Files of one volume, from the objects that it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::core::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, PodCertificateProjection, ProjectedVolumeSource,
    ResourceFieldSelector, Secret, ServiceAccountTokenProjection, Volume, VolumeProjection,
};
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;

use crate::needs::{Credential, Fetched, Missing, SourceSlot, TokenSlot};
use crate::path::clean;

#[cfg(test)]
mod tests;

/// One file.
#[derive(Clone, PartialEq, Eq)]
pub struct ProjectedFile {
    /// Content.
    pub data: Vec<u8>,
    /// Permission bits before the pod's group is let in.
    pub mode: u32,
    /// Owner, where it is not root.
    pub owner: Option<u32>,
}

// Content may be secret.
impl std::fmt::Debug for ProjectedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes {:o} {:?}", self.data.len(), self.mode, self.owner)
    }
}

/// Files by path relative to the root of the volume.
pub type Payload = BTreeMap<String, ProjectedFile>;

/// The downward API, which variables of containers share: `container_config::env` has it.
#[derive(Clone, Copy, Debug)]
pub struct DownwardApi {
    /// A field of the pod by its path, e.g. `metadata.labels['app']`.
    pub field: fn(&str, &Pod) -> Result<String, String>,
    /// A resource of a container, with the node's allocatable resources for absent limits.
    pub resource: fn(&ResourceFieldSelector, &Pod, &Allocatable) -> Result<String, String>,
}

/// Resources of a node by name.
pub type Allocatable = BTreeMap<String, ApiQuantity>;

/// What payloads are made from.
#[derive(Clone, Copy, Debug)]
pub struct PayloadInput<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Objects and tokens that were fetched for it.
    pub fetched: &'a Fetched,
    /// Fields and resources.
    pub downward_api: DownwardApi,
    /// Allocatable resources of the node; stand in for absent limits.
    pub allocatable: &'a Allocatable,
    /// [`fs_user`](crate::fs_user) of the pod.
    pub fs_user: Option<u32>,
    /// `securityContext.fsGroup` of the pod.
    pub fs_group: Option<u32>,
}

const NO_MODE: &str = "no defaultMode used, not even the default value for it";

fn mode_of(default: Option<i32>) -> Result<u32, String> {
    default.and_then(|m| u32::try_from(m).ok()).ok_or_else(|| NO_MODE.to_owned())
}

/// Files of a configMap, secret, downwardAPI or projected volume; none for other kinds.
///
/// # Errors
/// Text as a kubelet has it after `MountVolume.SetUp failed for volume "x" : `.
pub fn payload(volume: &Volume, input: &PayloadInput<'_>) -> Result<Payload, String> {
    if let Some(v) = &volume.config_map {
        let may_lack = v.optional == Some(true);
        let map = config_map(input, &v.name, may_lack)?;
        config_map_files(v.items.as_deref(), &map, mode_of(v.default_mode)?, may_lack)
    } else if let Some(v) = &volume.secret {
        let may_lack = v.optional == Some(true);
        let name = v.secret_name.as_deref().unwrap_or_default();
        let secret = secret(input, name, may_lack)?;
        secret_files(v.items.as_deref(), &secret, mode_of(v.default_mode)?, may_lack)
    } else if let Some(v) = &volume.downward_api {
        downward_files(v.items.as_deref().unwrap_or_default(), mode_of(v.default_mode)?, input)
    } else if let Some(v) = &volume.projected {
        projected_files(&volume.name, v, input)
    } else {
        Ok(Payload::new())
    }
}

fn not_fetched(kind: &str, name: &str) -> Missing {
    Missing { not_found: false, text: format!("{kind} {name:?} was not fetched") }
}

/// What was fetched of an object; an optional one that does not exist is an empty one.
fn found<T: Default>(
    of_kind: &BTreeMap<String, Result<Arc<T>, Missing>>,
    (kind, name): (&str, &str),
    may_lack: bool,
) -> Result<Arc<T>, String> {
    match of_kind.get(name).cloned().unwrap_or_else(|| Err(not_fetched(kind, name))) {
        Err(e) if e.not_found && may_lack => Ok(Arc::default()),
        other => other.map_err(|e| e.text),
    }
}

fn config_map(input: &PayloadInput<'_>, name: &str, may_lack: bool) -> Result<Arc<ConfigMap>, String> {
    found(&input.fetched.config_maps, ("configmap", name), may_lack)
}

fn secret(input: &PayloadInput<'_>, name: &str, may_lack: bool) -> Result<Arc<Secret>, String> {
    found(&input.fetched.secrets, ("secret", name), may_lack)
}

/// Files of a ConfigMap: all keys, or those that `items` list.
///
/// # Errors
/// A listed key is missing and the object is not optional.
pub fn config_map_files(
    items: Option<&[KeyToPath]>,
    map: &ConfigMap,
    mode: u32,
    optional: bool,
) -> Result<Payload, String> {
    let mut content: BTreeMap<&str, &[u8]> = BTreeMap::new();
    content.extend(map.binary_data.iter().flatten().map(|(k, v)| (k.as_str(), v.0.as_slice())));
    content.extend(map.data.iter().flatten().map(|(k, v)| (k.as_str(), v.as_bytes())));
    let missing = |key: &str| format!("configmap references non-existent config key: {key}");
    files(items.unwrap_or_default(), &content, mode, (!optional).then_some(&missing))
}

/// Files of a Secret: all keys, or those that `items` list.
///
/// # Errors
/// A listed key is missing and the object is not optional.
pub fn secret_files(
    items: Option<&[KeyToPath]>,
    secret: &Secret,
    mode: u32,
    optional: bool,
) -> Result<Payload, String> {
    let content = secret.data.iter().flatten().map(|(k, v)| (k.as_str(), v.0.as_slice())).collect();
    let missing = |key: &str| format!("references non-existent secret key: {key}");
    files(items.unwrap_or_default(), &content, mode, (!optional).then_some(&missing))
}

/// `missing` words the failure of a key that is not there; without it such a key is left out.
fn files(
    items: &[KeyToPath],
    content: &BTreeMap<&str, &[u8]>,
    mode: u32,
    missing: Option<&dyn Fn(&str) -> String>,
) -> Result<Payload, String> {
    let file = |data: &[u8], mode| ProjectedFile { data: data.to_vec(), mode, owner: None };
    if items.is_empty() {
        return Ok(content.iter().map(|(key, data)| ((*key).to_owned(), file(data, mode))).collect());
    }
    let mut out = Payload::new();
    for item in items {
        match (content.get(item.key.as_str()), missing) {
            (Some(data), _) => {
                let mode = item.mode.and_then(|m| u32::try_from(m).ok()).unwrap_or(mode);
                out.insert(item.path.clone(), file(data, mode));
            }
            (None, None) => {}
            (None, Some(text)) => return Err(text(&item.key)),
        }
    }
    Ok(out)
}

fn downward_files(items: &[DownwardAPIVolumeFile], mode: u32, input: &PayloadInput<'_>) -> Result<Payload, String> {
    let mut out = Payload::new();
    let mut errors = Vec::new();
    for item in items {
        let text = if let Some(field) = &item.field_ref {
            (input.downward_api.field)(&field.field_path, input.pod)
        } else if let Some(resource) = &item.resource_field_ref {
            (input.downward_api.resource)(resource, input.pod, input.allocatable)
        } else {
            Ok(String::new())
        };
        let mode = item.mode.and_then(|m| u32::try_from(m).ok()).unwrap_or(mode);
        match text {
            Ok(text) => {
                out.insert(clean(&item.path), ProjectedFile { data: text.into_bytes(), mode, owner: None });
            }
            Err(e) => errors.push(e),
        }
    }
    aggregate(errors).map_or(Ok(out), Err)
}

/// Sources in order: a later one takes the path of an earlier one.
fn projected_files(volume: &str, v: &ProjectedVolumeSource, input: &PayloadInput<'_>) -> Result<Payload, String> {
    let mode = mode_of(v.default_mode)?;
    let mut out = Payload::new();
    let mut errors = Vec::new();
    for (index, source) in v.sources.iter().flatten().enumerate() {
        let slot = SourceSlot { volume: volume.to_owned(), index };
        match source_files(&slot, source, mode, input) {
            Ok(files) => out.extend(files),
            Err(e) => errors.push(e),
        }
    }
    aggregate(errors).map_or(Ok(out), Err)
}

fn source_files(
    slot: &SourceSlot,
    source: &VolumeProjection,
    mode: u32,
    input: &PayloadInput<'_>,
) -> Result<Payload, String> {
    if let Some(s) = &source.secret {
        let may_lack = s.optional == Some(true);
        let secret = secret(input, &s.name, may_lack)?;
        secret_files(s.items.as_deref(), &secret, mode, may_lack)
    } else if let Some(s) = &source.config_map {
        let may_lack = s.optional == Some(true);
        let map = config_map(input, &s.name, may_lack)?;
        config_map_files(s.items.as_deref(), &map, mode, may_lack)
    } else if let Some(s) = &source.downward_api {
        downward_files(s.items.as_deref().unwrap_or_default(), mode, input)
    } else if let Some(s) = &source.service_account_token {
        token_file(s, mode, input)
    } else if let Some(s) = &source.cluster_trust_bundle {
        let anchors = input.fetched.trust_anchors.get(slot).ok_or("the trust anchors were not fetched")?;
        let anchors = anchors.as_ref().map_err(|e| e.text.clone())?;
        Ok(Payload::from([(s.path.clone(), private(anchors.as_bytes(), mode, input))]))
    } else if let Some(s) = &source.pod_certificate {
        certificate_files(slot, s, mode, input)
    } else {
        Ok(Payload::new())
    }
}

fn token_file(s: &ServiceAccountTokenProjection, mode: u32, input: &PayloadInput<'_>) -> Result<Payload, String> {
    let token = input.fetched.tokens.get(&TokenSlot::of(s)).ok_or("the token was not fetched")?;
    let token = token.as_ref().map_err(|e| e.text.clone())?;
    Ok(Payload::from([(s.path.clone(), private(token.as_bytes(), mode, input))]))
}

fn certificate_files(
    slot: &SourceSlot,
    s: &PodCertificateProjection,
    mode: u32,
    input: &PayloadInput<'_>,
) -> Result<Payload, String> {
    let credential = input.fetched.certificates.get(slot).ok_or("the certificate was not fetched")?;
    let Credential { key_pem, chain_pem } = credential.as_ref().map_err(|e| e.text.clone())?;
    let files = [
        (&s.credential_bundle_path, format!("{key_pem}{chain_pem}")),
        (&s.key_path, key_pem.to_string()),
        (&s.certificate_chain_path, chain_pem.to_string()),
    ];
    let wanted = files.into_iter().filter_map(|(path, text)| Some((path.clone().filter(|p| !p.is_empty())?, text)));
    Ok(wanted.map(|(path, text)| (path, private(text.as_bytes(), mode, input))).collect())
}

/// A file that is private where somebody in particular is to read it; the group is let in with the rest of the volume.
fn private(data: &[u8], mode: u32, input: &PayloadInput<'_>) -> ProjectedFile {
    let mode = if input.fs_user.is_some() || input.fs_group.is_some() { 0o600 } else { mode };
    ProjectedFile { data: data.to_vec(), mode, owner: input.fs_user }
}

/// Several failures in one text: each once, in brackets when there is more than one.
fn aggregate(errors: Vec<String>) -> Option<String> {
    let mut each: Vec<String> = Vec::new();
    for e in errors {
        if !each.contains(&e) {
            each.push(e);
        }
    }
    match each.len() {
        0 | 1 => each.pop(),
        _ => Some(format!("[{}]", each.join(", "))),
    }
}
