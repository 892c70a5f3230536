//! The API's form of an event (interfaces 8.10). Pure.

use contract::event::EventEntry;
use model::Timestamp;
use model::event::EventObject;
use serde_json::{Map, Value, json};

#[cfg(test)]
mod tests;

/// Who reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// Name of this node.
    pub node_name: String,
}

/// `source.component` and `reportingComponent`: what tools filter by.
const COMPONENT: &str = "kubelet";
/// Events about the node go here.
const NODE_NAMESPACE: &str = "default";

impl Reporter {
    /// Namespace that the event is stored in.
    #[must_use]
    pub fn namespace<'a>(&self, object: &'a EventObject) -> &'a str {
        match object {
            EventObject::Pod { namespace, .. } | EventObject::Claim { namespace, .. } if !namespace.is_empty() => {
                namespace
            }
            _ => NODE_NAMESPACE,
        }
    }

    /// Name of the event: the object's, and a time that tells it from others.
    #[must_use]
    pub fn name(&self, object: &EventObject, nanos: i64) -> String {
        let name = match object {
            EventObject::Pod { name, .. } | EventObject::Claim { name, .. } => name,
            EventObject::Node | EventObject::Unknown => &self.node_name,
        };
        format!("{name}.{nanos:x}")
    }

    /// The whole event. `resource_version`: of the object as this node knew it; static pods have none.
    #[must_use]
    pub fn event(&self, name: &str, line: &EventEntry, resource_version: Option<&str>) -> Value {
        let mut metadata = json!({ "name": name, "namespace": self.namespace(&line.object) });
        if !line.annotations.is_empty() {
            metadata["annotations"] = json!(line.annotations);
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": self.involved(&line.object, resource_version),
            "reason": line.reason,
            "message": line.message,
            "type": line.kind.as_str(),
            "source": { "component": COMPONENT, "host": self.node_name },
            "firstTimestamp": line.first.to_api(),
            "lastTimestamp": line.last.to_api(),
            "count": line.count,
            "eventTime": null,
            "reportingComponent": COMPONENT,
            "reportingInstance": self.node_name,
        })
    }

    /// The strategic merge patch that brings an older occurrence up to date.
    #[must_use]
    pub fn repetition(&self, line: &EventEntry) -> Value {
        json!({ "count": line.count, "lastTimestamp": line.last.to_api(), "message": line.message })
    }

    fn involved(&self, object: &EventObject, resource_version: Option<&str>) -> Value {
        let mut fields = Map::new();
        let mut put = |key: &str, value: &str| {
            if !value.is_empty() {
                fields.insert(key.to_owned(), value.into());
            }
        };
        put("apiVersion", "v1");
        match object {
            // No UID: since 1.36 it is neither the name nor unknown.
            EventObject::Node => {
                put("kind", "Node");
                put("name", &self.node_name);
            }
            EventObject::Unknown => {}
            EventObject::Claim { namespace, name, uid, .. } => {
                put("kind", "PersistentVolumeClaim");
                put("namespace", namespace);
                put("name", name);
                put("uid", uid);
                put("resourceVersion", resource_version.unwrap_or_default());
            }
            EventObject::Pod { namespace, name, uid, field_path } => {
                put("kind", "Pod");
                put("namespace", namespace);
                put("name", name);
                put("uid", uid.as_str());
                put("resourceVersion", resource_version.unwrap_or_default());
                put("fieldPath", field_path);
            }
        }
        Value::Object(fields)
    }
}

/// The time part of a name: that of the first occurrence, moved on where two events would get the same.
#[must_use]
pub(crate) fn name_time(first: Timestamp, taken_before: i64) -> i64 {
    first.0.max(taken_before.saturating_add(1))
}
