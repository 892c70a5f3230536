//! What is followed, and what the steps of a watch mean. Pure.

use model::object::{ObjectKind, ObjectRef};
use ports::api::{Followed, Kind, Object, Selection};

use crate::cache::Content;

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One object that pods name.
    Object(ObjectRef),
    /// ClusterTrustBundles, as this kind.
    TrustBundles(Kind),
    /// Requests for certificates of pods of this node.
    CertificateRequests,
    /// Services that have an address.
    Services,
    /// Runtime classes.
    RuntimeClasses,
}

impl Target {
    /// What pods hold it by; `None`: it is followed whoever is here.
    pub(crate) fn held_as(&self) -> Option<ObjectRef> {
        match self {
            Self::Object(object) => Some(object.clone()),
            Self::TrustBundles(_) => Some(ObjectRef::trust_bundles()),
            Self::CertificateRequests | Self::Services | Self::RuntimeClasses => None,
        }
    }
}

/// What is listed and watched for a target; `None`: a kind that is not known here.
pub(crate) fn selection(target: &Target, all_services: bool, node_name: &str) -> Option<Selection> {
    Some(match target {
        Target::Object(object) => Selection {
            kind: match object.kind {
                ObjectKind::ConfigMap => Kind::ConfigMap,
                ObjectKind::Secret => Kind::Secret,
                ObjectKind::ClusterTrustBundle | ObjectKind::PodCertificate | ObjectKind::Unknown => return None,
            },
            namespace: Some(object.namespace.clone()),
            field_selector: format!("metadata.name={}", object.name),
        },
        Target::Services => {
            let with_address = if all_services { "" } else { "spec.clusterIP!=None" };
            Selection { kind: Kind::Service, namespace: None, field_selector: with_address.to_owned() }
        }
        // The API server shows a node nothing but its own.
        Target::CertificateRequests => Selection {
            field_selector: format!("spec.nodeName={node_name}"),
            ..everything(Kind::PodCertificateRequest)
        },
        Target::TrustBundles(kind) => everything(*kind),
        Target::RuntimeClasses => everything(Kind::RuntimeClass),
    })
}

const fn everything(kind: Kind) -> Selection {
    Selection { kind, namespace: None, field_selector: String::new() }
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
