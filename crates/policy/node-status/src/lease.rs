//! The lease by which a node shows that it lives (interfaces 8.9).

use model::Timestamp;
use model::k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use model::k8s_openapi::jiff;

/// Namespace of all node leases.
pub const NAMESPACE: &str = "kube-node-lease";

/// A new lease, held from now on. It belongs to the Node: without its UID none is made.
#[must_use]
pub fn new(node: &str, node_uid: &str, duration_s: i32, now: Timestamp) -> Lease {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(node.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    };
    renewed(&lease, node, Some(node_uid), duration_s, now)
}

/// The last known lease, renewed. The owner is added where it is missing and known.
#[must_use]
pub fn renewed(last: &Lease, node: &str, node_uid: Option<&str>, duration_s: i32, now: Timestamp) -> Lease {
    let mut lease = last.clone();
    let owners = lease.metadata.owner_references.get_or_insert_default();
    if let (Some(uid), true) = (node_uid, owners.is_empty()) {
        owners.push(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: node.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        });
    }
    if owners.is_empty() {
        lease.metadata.owner_references = None;
    }
    let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(node.to_owned());
    spec.lease_duration_seconds = Some(duration_s);
    spec.renew_time = micro(now);
    lease
}

/// Cut to microseconds, as the API keeps it.
fn micro(t: Timestamp) -> Option<MicroTime> {
    jiff::Timestamp::from_microsecond(t.0.div_euclid(1000)).ok().map(MicroTime)
}
