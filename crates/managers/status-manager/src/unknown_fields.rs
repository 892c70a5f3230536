//! Fields of the pod status that an older API server does not know.
//!
//! A server ignores unknown fields, but not in a strategic merge patch: it refuses the whole patch when it does not know how
//! to merge a list in it (seen of 1.20 with `hostIPs`, which came with 1.28).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ports::api::ApiError;
use serde_json::Value;

/// Top-level fields of a pod status that this server refuses. Clones share what was learnt; a restart learns it again.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownFields {
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl UnknownFields {
    /// The patch without what the server refuses; `None` when nothing is left of it.
    pub(crate) fn leave_out(&self, mut patch: Value) -> Option<Value> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fields) = patch.as_object_mut() {
            fields.retain(|key, _| !names.contains(key.trim_start_matches("$setElementOrder/")));
        }
        patch.as_object().is_none_or(|fields| !fields.is_empty()).then_some(patch)
    }

    /// Whether the refusal names a field of the `patch` that was sent: without that field it may be sent again at once. The
    /// field may have been learnt meanwhile, from the refusal of another pod's status.
    pub(crate) fn learn(&self, error: &ApiError, patch: &Value) -> bool {
        let Some(field) = refused_field(&error.to_string()).map(str::to_owned) else { return false };
        let order = format!("$setElementOrder/{field}");
        let was_sent = patch.get(&field).is_some() || patch.get(&order).is_some();
        if self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(field.clone()) {
            tracing::warn!(
                field,
                "this API server does not know a field of the pod status; it is left out from now on"
            );
        }
        was_sent
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

    use super::UnknownFields;

    #[test]
    fn a_field_that_the_server_refused_is_left_out_with_its_order() {
        let fields = UnknownFields::default();
        let patch = json!({"phase": "Running", "hostIPs": [{"ip": "10.0.0.1"}], "$setElementOrder/hostIPs": []});
        assert_eq!(fields.leave_out(patch.clone()), Some(patch.clone()));
        let refusal = "unable to find api field in struct PodStatus for the json field \"hostIPs\"";
        let refusal = ApiError::status(500, "", refusal);
        assert!(fields.learn(&refusal, &patch));
        assert!(fields.learn(&refusal, &patch), "said before it was learnt from another: said again at once, too");
        let rest = fields.leave_out(patch).unwrap();
        assert_eq!(rest, json!({"phase": "Running"}));
        assert!(!fields.learn(&refusal, &rest), "not said: not a reason to try at once");
        assert!(fields.learn(&refusal, &json!({"$setElementOrder/hostIPs": []})));
        assert_eq!(fields.leave_out(json!({"hostIPs": []})), None);
    }

    #[test]
    fn other_refusals_teach_nothing() {
        let conflict = ApiError::status(409, "Conflict", "the object has been modified");
        assert!(!UnknownFields::default().learn(&conflict, &json!({"hostIPs": []})));
    }
}
