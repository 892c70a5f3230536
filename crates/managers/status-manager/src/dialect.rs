//! Fields that an older API server cannot be told.
//!
//! A server ignores unknown fields, but not in a strategic merge patch: it refuses the whole patch when it does not know how
//! to merge a list in it (seen of 1.20 with `hostIPs`, which came with 1.28).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ports::api::ApiError;
use serde_json::Value;

/// Top-level fields of a pod status that this server refuses. Clones share what was learnt; a restart learns it again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dialect {
    unknown: Arc<Mutex<BTreeSet<String>>>,
}

impl Dialect {
    /// The patch without what the server refuses; `None` when nothing is left to say.
    pub(crate) fn spoken(&self, mut patch: Value) -> Option<Value> {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fields) = patch.as_object_mut() {
            fields.retain(|key, _| !unknown.contains(key.trim_start_matches("$setElementOrder/")));
        }
        patch.as_object().is_none_or(|fields| !fields.is_empty()).then_some(patch)
    }

    /// Whether the refusal named a field that was said: without it the same may be said again at once. It may have been
    /// learnt from the refusal of another pod's status meanwhile.
    pub(crate) fn learn(&self, error: &ApiError, said: &Value) -> bool {
        let Some(field) = refused_field(&error.to_string()).map(str::to_owned) else { return false };
        let order = format!("$setElementOrder/{field}");
        let was_said = said.get(&field).is_some() || said.get(&order).is_some();
        if self.unknown.lock().unwrap_or_else(PoisonError::into_inner).insert(field.clone()) {
            tracing::warn!(
                field,
                "this API server does not know a field of the pod status; it is left out from now on"
            );
        }
        was_said
    }
}

/// `unable to find api field in struct PodStatus for the json field "hostIPs"`.
fn refused_field(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("unable to find api field in struct PodStatus for the json field \"")?;
    rest.split_once('"').map(|(field, _)| field).filter(|field| !field.is_empty())
}

#[cfg(test)]
mod tests {
    use ports::api::ApiError;
    use serde_json::json;

    use super::Dialect;

    #[test]
    fn a_field_that_the_server_refused_is_left_out_with_its_order() {
        let dialect = Dialect::default();
        let patch = json!({"phase": "Running", "hostIPs": [{"ip": "10.0.0.1"}], "$setElementOrder/hostIPs": []});
        assert_eq!(dialect.spoken(patch.clone()), Some(patch.clone()));
        let refusal = "unable to find api field in struct PodStatus for the json field \"hostIPs\"";
        let refusal = ApiError::status(500, "", refusal);
        assert!(dialect.learn(&refusal, &patch));
        assert!(dialect.learn(&refusal, &patch), "said before it was learnt from another: said again at once, too");
        let spoken = dialect.spoken(patch).unwrap();
        assert_eq!(spoken, json!({"phase": "Running"}));
        assert!(!dialect.learn(&refusal, &spoken), "not said: not a reason to try at once");
        assert!(dialect.learn(&refusal, &json!({"$setElementOrder/hostIPs": []})));
        assert_eq!(dialect.spoken(json!({"hostIPs": []})), None);
    }

    #[test]
    fn other_refusals_teach_nothing() {
        let conflict = ApiError::status(409, "Conflict", "the object has been modified");
        assert!(!Dialect::default().learn(&conflict, &json!({"hostIPs": []})));
    }
}
