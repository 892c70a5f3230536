//! What is followed, and what the steps of a watch mean. Pure.

use model::object::{ObjectKind, ObjectRef};
use ports::api::{Followed, Kind, Object, Selection};

use crate::cache::Content;

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One object that pods name.
    Object(ObjectRef),
    /// Services that have an address.
    Services,
    /// Runtime classes.
    RuntimeClasses,
}

/// What is listed and watched for a target; `None`: a kind that is not known here.
pub(crate) fn selection(target: &Target, all_services: bool) -> Option<Selection> {
    Some(match target {
        Target::Object(object) => Selection {
            kind: match object.kind {
                ObjectKind::ConfigMap => Kind::ConfigMap,
                ObjectKind::Secret => Kind::Secret,
                ObjectKind::Unknown => return None,
            },
            namespace: Some(object.namespace.clone()),
            field_selector: format!("metadata.name={}", object.name),
        },
        Target::Services => {
            let with_address = if all_services { "" } else { "spec.clusterIP!=None" };
            Selection { kind: Kind::Service, namespace: None, field_selector: with_address.to_owned() }
        }
        Target::RuntimeClasses => {
            Selection { kind: Kind::RuntimeClass, namespace: None, field_selector: String::new() }
        }
    })
}

/// What a step says of one object; `None`: nothing.
pub(crate) fn change(object: &ObjectRef, step: Followed) -> Option<Option<Content>> {
    match step {
        Followed::All(objects) => Some(objects.into_iter().find_map(|o| content(object, o))),
        Followed::Applied(o) => content(object, o).map(Some),
        Followed::Deleted(o) => content(object, o).map(|_| None),
        Followed::Failed(_) => None,
    }
}

/// The content, if this is the object that is meant.
fn content(object: &ObjectRef, found: Object) -> Option<Content> {
    let content = match (object.kind, found) {
        (ObjectKind::ConfigMap, Object::ConfigMap(o)) => Content::config_map(unshare(o)),
        (ObjectKind::Secret, Object::Secret(o)) => Content::secret(unshare(o)),
        _ => return None,
    };
    (content.name() == object.name).then_some(content)
}

fn unshare<T: Clone>(object: std::sync::Arc<T>) -> T {
    std::sync::Arc::unwrap_or_clone(object)
}
