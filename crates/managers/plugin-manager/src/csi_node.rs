//! The CSINode object: what this node has of CSI drivers.

use std::collections::{BTreeMap, BTreeSet};

use csi_api::v1::NodeGetInfoResponse;
use model::k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Annotation with the in-tree plugins whose volumes go to their CSI drivers, as those of a kubelet 1.36 all do.
const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// In the order of the alphabet.
const MIGRATED_PLUGINS: [&str; 7] = [
    "kubernetes.io/aws-ebs",
    "kubernetes.io/azure-disk",
    "kubernetes.io/azure-file",
    "kubernetes.io/cinder",
    "kubernetes.io/gce-pd",
    "kubernetes.io/portworx-volume",
    "kubernetes.io/vsphere-volume",
];

/// What a driver says of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DriverInfo {
    pub name: String,
    pub node_id: String,
    pub max_volumes: Option<i32>,
    pub topology: BTreeMap<String, String>,
}

impl DriverInfo {
    pub(crate) fn new(driver: &str, said: NodeGetInfoResponse) -> Self {
        Self {
            name: driver.to_owned(),
            max_volumes: limit(driver, said.max_volumes_per_node),
            topology: said.accessible_topology.map(|t| t.segments).unwrap_or_default(),
            node_id: said.node_id,
        }
    }

    fn entry(&self) -> CSINodeDriver {
        let keys: Vec<String> = self.topology.keys().cloned().collect();
        CSINodeDriver {
            name: self.name.clone(),
            node_id: self.node_id.clone(),
            topology_keys: (!keys.is_empty()).then_some(keys),
            allocatable: self.max_volumes.map(|count| VolumeNodeResources { count: Some(count) }),
        }
    }

    /// Whether an entry says the same, in whatever order.
    fn is_said_by(&self, entry: &CSINodeDriver) -> bool {
        let keys: BTreeSet<&String> = entry.topology_keys.iter().flatten().collect();
        let count = entry.allocatable.as_ref().and_then(|a| a.count);
        entry.node_id == self.node_id && keys == self.topology.keys().collect() && count == self.max_volumes
    }
}

/// The object of a node that has none, without drivers. It goes with its Node.
pub(crate) fn new(node: &str, uid: &str) -> CSINode {
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    };
    let mut object = CSINode {
        metadata: ObjectMeta {
            name: Some(node.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: CSINodeSpec { drivers: Vec::new() },
    };
    mark(&mut object);
    object
}

/// The object of a node with one driver, as the driver says.
#[must_use]
pub fn told(driver: &str, said: NodeGetInfoResponse) -> CSINode {
    let object = new("node", "uid");
    with(&object, &DriverInfo::new(driver, said)).unwrap_or(object)
}

/// Puts the annotation right; whether that changed something.
fn mark(object: &mut CSINode) -> bool {
    let annotations = object.metadata.annotations.get_or_insert_default();
    let said = annotations.get(MIGRATED).map(String::as_str).unwrap_or_default();
    if said.split(',').collect::<BTreeSet<_>>() == MIGRATED_PLUGINS.into() {
        return false;
    }
    annotations.insert(MIGRATED.to_owned(), MIGRATED_PLUGINS.join(","));
    true
}

/// The object with the annotation; `None`: it has it.
pub(crate) fn marked(object: &CSINode) -> Option<CSINode> {
    let mut object = object.clone();
    mark(&mut object).then_some(object)
}

/// The object with this driver, after all others; `None`: it says so already.
pub(crate) fn with(object: &CSINode, driver: &DriverInfo) -> Option<CSINode> {
    let mut new = object.clone();
    let marked = mark(&mut new);
    if !marked && new.spec.drivers.iter().any(|entry| entry.name == driver.name && driver.is_said_by(entry)) {
        return None;
    }
    new.spec.drivers.retain(|entry| entry.name != driver.name);
    new.spec.drivers.push(driver.entry());
    Some(new)
}

/// The object without this driver; `None`: it does not have it.
pub(crate) fn without(object: &CSINode, driver: &str) -> Option<CSINode> {
    let mut new = object.clone();
    new.spec.drivers.retain(|entry| entry.name != driver);
    (new.spec.drivers.len() != object.spec.drivers.len()).then_some(new)
}

/// `max_volumes_per_node` as the object has it: no limit where the driver has none, or says nonsense.
pub(crate) fn limit(driver: &str, said: i64) -> Option<i32> {
    if said < 0 {
        tracing::error!(driver, said, "invalid attach limit, it is left out of the CSINode");
    }
    (said > 0).then(|| i32::try_from(said).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DriverInfo, limit, marked, new, with, without};

    fn driver(name: &str, max_volumes: Option<i32>) -> DriverInfo {
        let topology = [("zone", "z1"), ("rack", "r1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        DriverInfo { name: name.to_owned(), node_id: "id".to_owned(), max_volumes, topology }
    }

    #[test]
    fn a_new_object_belongs_to_its_node_and_says_what_is_migrated() {
        let object = new("n1", "u1");
        assert_eq!(
            serde_json::to_value(&object).unwrap(),
            json!({
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {
                    "name": "n1",
                    "annotations": { "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume" },
                    "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1" }],
                },
                "spec": { "drivers": [] },
            })
        );
        assert_eq!(marked(&object), None);
    }

    #[test]
    fn drivers_come_change_and_go_and_what_is_said_is_not_said_again() {
        let one = with(&new("n1", "u1"), &driver("a", Some(5))).unwrap();
        assert_eq!(with(&one, &driver("a", Some(5))), None);
        let two = with(&one, &driver("b", None)).unwrap();
        let changed = with(&two, &driver("a", None)).unwrap();
        assert_eq!(
            serde_json::to_value(&changed.spec).unwrap(),
            json!({ "drivers": [
                { "name": "b", "nodeID": "id", "topologyKeys": ["rack", "zone"] },
                { "name": "a", "nodeID": "id", "topologyKeys": ["rack", "zone"] },
            ] })
        );
        assert_eq!(two.spec.drivers[0].allocatable.as_ref().unwrap().count, Some(5));
        assert_eq!(without(&changed, "c"), None);
        assert_eq!(without(&changed, "b").unwrap().spec.drivers.len(), 1);
    }

    #[test]
    fn keys_in_another_order_say_the_same_and_a_lost_annotation_is_put_back() {
        let mut object = with(&new("n1", "u1"), &driver("a", None)).unwrap();
        object.spec.drivers[0].topology_keys.as_mut().unwrap().reverse();
        assert_eq!(with(&object, &driver("a", None)), None);
        object.metadata.annotations = None;
        assert!(with(&object, &driver("a", None)).unwrap().metadata.annotations.is_some());
        assert!(marked(&object).is_some());
    }

    #[test]
    fn limits_fit_the_field() {
        assert_eq!([0, -1, 7, i64::MAX].map(|n| limit("a", n)), [None, None, Some(7), Some(i32::MAX)]);
    }
}
