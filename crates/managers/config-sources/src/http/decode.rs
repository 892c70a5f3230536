//! The body of an answer: one pod, or a list of pods. Pure.

use model::core::Pod;
use serde_json::Value;
use static_pod::{MAX_MANIFEST_BYTES, ManifestError, Origin, Source, read_manifest, yaml};

/// All pods of a body, or why there are none. An empty body is an empty set. One bad pod spoils its list: the set of before
/// stands until all of it is good.
pub(crate) fn decode(body: &[u8], node_name: &str, url: &str) -> Result<Vec<Pod>, String> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let origin = Origin { node_name, source: Source::Url(url) };
    let error = match read_manifest(body, &origin) {
        Ok(manifest) => return Ok(vec![manifest.pod]),
        Err(error) => error,
    };
    let Some(items) = items(body) else { return Err(lines(&error)) };
    let one = |(at, item): (usize, Value)| {
        let bytes = item.to_string();
        read_manifest(bytes.as_bytes(), &origin).map(|m| m.pod).map_err(|e| format!("items[{at}]: {}", lines(&e)))
    };
    items.into_iter().enumerate().map(one).collect()
}

fn lines(error: &ManifestError) -> String {
    error.to_string().replace('\n', "; ")
}

/// The elements of a list of pods; they may leave out what kind they are.
fn items(body: &[u8]) -> Option<Vec<Value>> {
    if body.len() > MAX_MANIFEST_BYTES {
        return None;
    }
    let list = yaml::read(std::str::from_utf8(body).ok()?).ok()?.value?;
    if !matches!(list["kind"].as_str(), Some("PodList" | "List")) || list["apiVersion"] != "v1" {
        return None;
    }
    let mut items = list["items"].as_array().cloned().unwrap_or_default();
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.entry("apiVersion").or_insert_with(|| "v1".into());
        item.entry("kind").or_insert_with(|| "Pod".into());
    }
    Some(items)
}
