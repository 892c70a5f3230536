//! A CSI driver registers itself at a node of a real control plane, and goes.

use csi_driver::{Config, Driver};
use serde_json::{Value, json};
use testbed::wait_until;

use crate::node::{SOON, start};
use crate::site::DRIVER;

const CSI_NODE: &str = "/apis/storage.k8s.io/v1/csinodes/bed";
#[test]
fn a_driver_is_told_of_on_the_node_and_its_csinode_until_it_goes() {
    let node = start();
    let admin = node.cluster.admin();
    let csi_node = || admin.get(CSI_NODE).unwrap_or(Value::Null);
    let made = || Some(csi_node()).filter(|o| o["metadata"]["uid"].is_string()).ok_or_else(|| "none".to_owned());
    let object = wait_until("the CSINode to be there", SOON, made).expect("a CSINode");
    let owner = &object["metadata"]["ownerReferences"][0];
    let uid = &node.node().expect("a node")["metadata"]["uid"];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Node"), uid), "{object}");
    let migrated = &object["metadata"]["annotations"]["storage.alpha.kubernetes.io/migrated-plugins"];
    assert!(migrated.as_str().is_some_and(|m| m.contains("kubernetes.io/aws-ebs")), "{object}");

    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let config = Config {
        max_volumes: 5,
        topology: [("topology.csi.bosun.test/zone".to_owned(), "z1".to_owned())].into(),
        ..Config::default()
    };
    let (folder, registry) =
        (node.bed.dir().join("node/plugins").join(DRIVER), node.bed.dir().join("node/plugins_registry"));
    let config = Config { folder, registry: Some(registry), node_id: "bed-id".to_owned(), ..config };
    let driver = runtime.block_on(async { Driver::start(config) }).expect("a driver");
    let told = runtime.block_on(async { tokio::time::timeout(SOON, driver.registered()).await });
    told.expect("word").expect("registered");
    let wanted = json!([{ "name": DRIVER, "nodeID": "bed-id", "topologyKeys": ["topology.csi.bosun.test/zone"],
        "allocatable": { "count": 5 } }]);
    assert_eq!(csi_node()["spec"]["drivers"], wanted);
    let object = node.node().expect("a node");
    let ids = &object["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"];
    assert_eq!(ids, &json!(format!("{{\"{DRIVER}\":\"bed-id\"}}")), "{object}");
    assert_eq!(object["metadata"]["labels"]["topology.csi.bosun.test/zone"], "z1", "{object}");

    drop(driver);
    let gone = || {
        let ids = node.node().ok().map(|n| n["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"].clone());
        let object = csi_node();
        let none = object["spec"]["drivers"].as_array().is_none_or(Vec::is_empty);
        let gone = object["spec"].is_object() && none && ids == Some(Value::Null);
        if gone { Ok(()) } else { Err(format!("{object}, {ids:?}")) }
    };
    wait_until("the driver to be forgotten", SOON, gone).expect("it is forgotten");
    let label = &node.node().expect("a node")["metadata"]["labels"]["topology.csi.bosun.test/zone"];
    assert_eq!(label, "z1", "labels stay");
}
