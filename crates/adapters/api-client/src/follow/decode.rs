//! From JSON to objects, one by one: one that cannot be read does not take the others with it.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::StatusCode;
use model::json::FromJson;
use model::k8s_openapi::Metadata;
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ports::api::{ApiError, ApiResult, Followed, Kind, Object};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Status;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// As much of an object as is needed to tell which one it is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    metadata: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Name {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

/// End of a page.
pub(super) struct Page {
    pub(super) version: String,
    pub(super) next: Option<String>,
}

/// What a line of a watch says.
pub(super) enum Change {
    /// A change and the version after it.
    Step(Followed, String),
    /// Nothing changed up to this version.
    Bookmark(String),
    /// The server ends the watch.
    Failed(ApiError),
}

fn garbage(message: impl Into<String>) -> ApiError {
    ApiError::Garbage { message: message.into() }
}

/// Reads a page of a list: what can be read goes to `objects`, the rest is told of in `broken`.
pub(super) fn page(kind: Kind, body: &[u8], objects: &mut Vec<Object>, broken: &mut Vec<ApiError>) -> ApiResult<Page> {
    let list: List<'_> = serde_json::from_slice(body).map_err(|e| garbage(e.to_string()))?;
    let version = list.metadata.resource_version.filter(|v| !v.is_empty());
    let version = version.ok_or_else(|| garbage("a list without a resource version"))?;
    let items = list.items.unwrap_or_default();
    objects.reserve_exact(items.len());
    for item in items {
        match object(kind, item.get()) {
            Ok((object, _)) => objects.push(object),
            Err((error, _)) => broken.push(error),
        }
    }
    Ok(Page { version, next: list.metadata.r#continue.filter(|c| !c.is_empty()) })
}

/// Reads a line of a watch.
pub(super) fn line(kind: Kind, text: &[u8]) -> ApiResult<Change> {
    if let Some((step, json)) = split(text).and_then(|(what, json)| Some((step(what)?, json)))
        && let Ok((object, version)) = object(kind, json)
    {
        return Ok(Change::Step(step(object), version));
    }
    let line: Line<'_> = serde_json::from_slice(text).map_err(|e| garbage(e.to_string()))?;
    let step = match (step(&line.r#type), &*line.r#type) {
        (Some(step), _) => step,
        (None, "BOOKMARK") => {
            let named: Named = serde_json::from_str(line.object.get()).map_err(|e| garbage(e.to_string()))?;
            return Ok(Change::Bookmark(named.metadata.resource_version.unwrap_or_default()));
        }
        (None, "ERROR") => {
            let status: Status = serde_json::from_str(line.object.get()).map_err(|e| garbage(e.to_string()))?;
            return Ok(Change::Failed(status.into_error(StatusCode::INTERNAL_SERVER_ERROR, None)));
        }
        (None, other) => return Err(garbage(format!("a watch event of type {other:?}"))),
    };
    Ok(match object(kind, line.object.get()) {
        Ok((object, version)) => Change::Step(step(object), version),
        Err((error, version)) => Change::Step(Followed::Failed(error), version),
    })
}

fn step(what: &str) -> Option<fn(Object) -> Followed> {
    match what {
        "ADDED" | "MODIFIED" => Some(Followed::Applied),
        "DELETED" => Some(Followed::Deleted),
        _ => None,
    }
}

/// Type and object of a line in the form that the API server gives it: the object is found without a look at all of it.
fn split(text: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii_end();
    text.strip_prefix("{\"type\":\"")?.strip_suffix('}')?.split_once("\",\"object\":")
}

/// An object and its version; a failure names the object and keeps the version.
fn object(kind: Kind, raw: &str) -> Result<(Object, String), (ApiError, String)> {
    Ok(match kind {
        Kind::Pod => typed(raw, Object::Pod)?,
        Kind::Node => typed(raw, Object::Node)?,
        Kind::Service => typed(raw, Object::Service)?,
        Kind::ConfigMap => typed(raw, Object::ConfigMap)?,
        Kind::Secret => typed(raw, Object::Secret)?,
        Kind::RuntimeClass => typed(raw, Object::RuntimeClass)?,
        Kind::CertificateSigningRequest => typed(raw, Object::CertificateSigningRequest)?,
        Kind::ClusterTrustBundle => typed(raw, Object::ClusterTrustBundle)?,
        Kind::ClusterTrustBundleAlpha => typed(raw, Object::of_alpha_bundle)?,
        Kind::PodCertificateRequest => typed(raw, Object::PodCertificateRequest)?,
        Kind::CsiDriver => typed(raw, Object::CsiDriver)?,
    })
}

const MANAGED: &str = "\"managedFields\":";

/// Empties `managedFields`: nobody here asks who wrote which field, and it is often larger than the rest. In JSON of the
/// server the key can stand in a text only with its quotes escaped, so what is found is the key.
fn unmanaged(json: &str) -> Cow<'_, str> {
    let found = memchr::memmem::find(json.as_bytes(), MANAGED.as_bytes())
        .map(|at| at + MANAGED.len())
        .and_then(|from| Some((from, list_end(&json[from..])?)));
    match found {
        Some((from, length)) => Cow::Owned([&json[..from], "[]", &json[from + length..]].concat()),
        None => Cow::Borrowed(json),
    }
}

/// Where the list ends with which a text begins; `None`: it does not begin with one.
fn list_end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b' ' | b'\n' | b'\r' | b'\t' => {}
            // Anything else than a list.
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn typed<K>(raw: &str, wrap: fn(Arc<K>) -> Object) -> Result<(Object, String), (ApiError, String)>
where
    K: Clone + FromJson + Metadata<Ty = ObjectMeta>,
{
    match K::from_json(unmanaged(raw).as_bytes()) {
        Ok(mut object) => {
            // An empty list is left.
            object.metadata_mut().managed_fields = None;
            let version = object.metadata().resource_version.clone().unwrap_or_default();
            // Lists grow by doubling while they are read. A copy has room for what is in it and no more: a third less.
            Ok((wrap(Arc::new(object.clone())), version))
        }
        Err(e) => {
            let Name { name, namespace, resource_version } =
                serde_json::from_str::<Named>(raw).unwrap_or_default().metadata;
            let namespace = namespace.map(|n| format!("{n}/")).unwrap_or_default();
            let called = format!("{}{namespace}{}", K::KIND.to_lowercase() + " ", name.unwrap_or_default());
            Err((garbage(format!("{called}: {e}")), resource_version.unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{split, unmanaged};

    #[test]
    fn a_line_is_split_in_the_servers_form_only() {
        let rows = [
            (r#"{"type":"ADDED","object":{"a":"\",\"object\":1"}}"#, Some(("ADDED", r#"{"a":"\",\"object\":1"}"#))),
            ("{\"type\":\"ADDED\",\"object\":{}}\r", Some(("ADDED", "{}"))),
            (r#"{"object":{},"type":"ADDED"}"#, None),
            (r#"{"type": "ADDED", "object": {}}"#, None),
            (r#"{"type":"ADDED","object":{}"#, Some(("ADDED", "{"))),
        ];
        for (line, wanted) in rows {
            assert_eq!(split(line.as_bytes()), wanted, "{line}");
        }
    }

    #[test]
    fn managed_fields_are_emptied_and_nothing_else_is() {
        let rows = [
            (
                r#"{"a":1,"managedFields":[{"f:b":{"x":"]}"}},{"y":"\"]"}],"z":2}"#,
                r#"{"a":1,"managedFields":[],"z":2}"#,
            ),
            (r#"{"managedFields": [1], "z":[2]}"#, r#"{"managedFields":[], "z":[2]}"#),
            (r#"{"managedFields":null,"z":[2]}"#, r#"{"managedFields":null,"z":[2]}"#),
            (r#"{"text":"\"managedFields\":[1]"}"#, r#"{"text":"\"managedFields\":[1]"}"#),
            (r#"{"managedFields":[1"#, r#"{"managedFields":[1"#),
            (r#"{"managedFields":"x","z":[2]}"#, r#"{"managedFields":"x","z":[2]}"#),
            (r#"{"z":[2]}"#, r#"{"z":[2]}"#),
        ];
        for (json, wanted) in rows {
            assert_eq!(unmanaged(json), wanted, "{json}");
        }
    }
}
