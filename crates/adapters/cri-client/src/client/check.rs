//! Answers that are well-formed but useless: a runtime that sends them would break the caller later (interfaces 7.3).

use cri_api::v1;
use ports::runtime::{RuntimeCode, RuntimeError, RuntimeResult};

/// What a version answer must say about the API.
pub(crate) const API_VERSION: &str = "0.1.0";

fn refuse<T>(text: String) -> RuntimeResult<T> {
    Err(RuntimeError::new(RuntimeCode::Unknown, text))
}

pub(crate) fn version(v: v1::VersionResponse) -> RuntimeResult<v1::VersionResponse> {
    let fields = [&v.version, &v.runtime_name, &v.runtime_version, &v.runtime_api_version];
    if fields.iter().any(|f| f.is_empty()) {
        return refuse(format!(
            "not all fields are set in the version answer: version {:?}, runtime name {:?}, runtime version {:?}, API version {:?}",
            v.version, v.runtime_name, v.runtime_version, v.runtime_api_version
        ));
    }
    if v.version != API_VERSION {
        return refuse(format!("runtime speaks version {:?} of the kubelet API, {API_VERSION:?} is needed", v.version));
    }
    Ok(v)
}

pub(crate) fn sandbox_id(id: &str, request: &str) -> RuntimeResult<()> {
    if id.is_empty() { refuse(format!("PodSandboxId is not set for sandbox {request:?}")) } else { Ok(()) }
}

pub(crate) fn container_id(id: &str, request: &str) -> RuntimeResult<()> {
    if id.is_empty() { refuse(format!("ContainerId is not set for container {request:?}")) } else { Ok(()) }
}

pub(crate) fn image_ref(reference: &str, request: &str) -> RuntimeResult<()> {
    if reference.is_empty() { refuse(format!("imageRef of image {request:?} is not set")) } else { Ok(()) }
}

pub(crate) fn sandbox_status(s: &v1::PodSandboxStatus) -> RuntimeResult<()> {
    let meta = s.metadata.as_ref();
    let missing = [
        ("id", s.id.is_empty()),
        ("metadata.name", meta.is_none_or(|m| m.name.is_empty())),
        ("metadata.namespace", meta.is_none_or(|m| m.namespace.is_empty())),
        ("metadata.uid", meta.is_none_or(|m| m.uid.is_empty())),
        ("created_at", s.created_at == 0),
    ];
    complete("status of sandbox", &s.id, &missing)
}

pub(crate) fn container_status(s: &v1::ContainerStatus) -> RuntimeResult<()> {
    let missing = [
        ("id", s.id.is_empty()),
        ("metadata.name", s.metadata.as_ref().is_none_or(|m| m.name.is_empty())),
        ("created_at", s.created_at == 0),
        ("image.image", s.image.as_ref().is_none_or(|i| i.image.is_empty())),
        ("image_ref", s.image_ref.is_empty()),
    ];
    complete("status of container", &s.id, &missing)
}

pub(crate) fn image(i: &v1::Image) -> RuntimeResult<()> {
    complete("status of image", &i.id, &[("id", i.id.is_empty()), ("size", i.size == 0)])
}

fn complete(what: &str, id: &str, fields: &[(&str, bool)]) -> RuntimeResult<()> {
    match fields.iter().find(|(_, missing)| *missing) {
        Some((field, _)) => refuse(format!("{what} {id:?} lacks {field}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
