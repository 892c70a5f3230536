//! Plugins come and go.

use actor::testing::{run, until};
use contract::node::{ClearCsiNodeId, SetCsiNodeId};
use csi_api::v1;
use fakes::FakeDriver;
use ports::host::FileKind;

use model::k8s_openapi::api::storage::v1::CSINode;
use serde_json::json;

use super::rig::{NODE, Rig, secs};

fn driver(name: &str) -> FakeDriver {
    let topology = v1::Topology { segments: [("zone".to_owned(), "z".to_owned())].into() };
    let mut driver = FakeDriver::driver(name);
    driver.node.max_volumes_per_node = 9;
    driver.node.accessible_topology = Some(topology);
    driver
}

#[test]
fn a_csi_driver_is_asked_told_to_the_api_server_and_told() {
    run(1, |kernel| async move {
        let rig = Rig::start(&kernel);
        until("the CSINode is there before any driver", || rig.csi_node() == Some(Vec::new())).await;
        rig.comes("a-reg.sock", driver("a.example"));
        until("it is registered", || rig.driver("a.example").is_some()).await;
        until("it is told", || rig.told("a-reg.sock") == [Ok(())]).await;
        let row = rig.driver("a.example").unwrap();
        assert_eq!((row.endpoint.clone(), row.node_id.as_str()), (rig.path("a-reg.sock"), "id-of-a.example"));
        assert_eq!((row.max_volumes, row.topology["zone"].as_str()), (Some(9), "z"));
        assert_eq!(rig.csi_node(), Some(vec!["a.example".to_owned()]));
        let said = rig.node.asked::<SetCsiNodeId>();
        assert_eq!((said.len(), said[0].node_id.as_str(), &said[0].topology), (1, "id-of-a.example", &row.topology));
        let socket = rig.socket("a-reg.sock").unwrap();
        assert!(socket.registered_at.is_some() && socket.error.is_none() && socket.kind == "CSIPlugin");
    });
}

#[test]
fn a_driver_that_goes_is_forgotten_everywhere() {
    run(2, |kernel| async move {
        let rig = Rig::start(&kernel);
        rig.comes("a-reg.sock", driver("a.example"));
        rig.comes("b-reg.sock", driver("b.example"));
        until("both are registered", || rig.csi_node().is_some_and(|names| names.len() == 2)).await;
        until("both are told", || [rig.told("a-reg.sock"), rig.told("b-reg.sock")].iter().all(|t| t.len() == 1)).await;
        rig.goes("a-reg.sock");
        until("its row is gone", || rig.socket("a-reg.sock").is_none()).await;
        assert!(rig.driver("a.example").is_none());
        assert_eq!(rig.csi_node(), Some(vec!["b.example".to_owned()]));
        assert_eq!(rig.node.asked::<ClearCsiNodeId>(), [ClearCsiNodeId { driver: "a.example".to_owned() }]);
        assert!(rig.driver("b.example").is_some());
    });
}

#[test]
fn a_driver_that_went_while_no_daemon_was_there_has_five_minutes_to_come_back() {
    run(4, |kernel| async move {
        let rig = Rig::new(&kernel);
        let entry = |name: &str| json!({ "name": name, "nodeID": "x", "topologyKeys": null });
        let object =
            json!({ "metadata": { "name": NODE }, "spec": { "drivers": [entry("a.example"), entry("gone.example")] } });
        rig.api.put(&serde_json::from_value::<CSINode>(object).unwrap());
        rig.start_manager(true);
        rig.comes("a-reg.sock", driver("a.example"));
        secs(295).await;
        assert_eq!(rig.csi_node().map(|names| names.len()), Some(2));
        secs(10).await;
        assert_eq!(rig.csi_node(), Some(vec!["a.example".to_owned()]));
        assert_eq!(rig.node.asked::<ClearCsiNodeId>(), [ClearCsiNodeId { driver: "gone.example".to_owned() }]);
    });
}

#[test]
fn a_socket_that_is_made_anew_is_unregistered_and_registered_whatever_the_watch_told() {
    run(3, |kernel| async move {
        let rig = Rig::start(&kernel);
        rig.comes("a-reg.sock", driver("a.example"));
        until("it is told", || rig.told("a-reg.sock").len() == 1).await;
        let first = rig.driver("a.example").unwrap().generation;
        rig.folder.remove("a-reg.sock");
        rig.folder.fs().special(&rig.path("a-reg.sock"), FileKind::Socket);
        secs(11).await;
        until("it is told again", || rig.told("a-reg.sock").len() == 2).await;
        assert!(rig.driver("a.example").unwrap().generation > first);
        assert_eq!(rig.node.asked::<ClearCsiNodeId>().len(), 1);
        assert_eq!(rig.csi_node(), Some(vec!["a.example".to_owned()]));
    });
}

#[test]
fn only_sockets_without_a_dot_count_also_in_folders() {
    run(4, |kernel| async move {
        let rig = Rig::start(&kernel);
        until("the folder is there", || rig.folder.exists("")).await;
        assert_eq!(rig.folder.mode(""), 0o750);
        rig.folder.dir("deep/er");
        rig.folder.write("file.sock", "");
        rig.folder.link("/k/plugins_registry/deep/er/c.sock", "link.sock");
        rig.comes(".a.sock", driver("a.example"));
        rig.comes("deep/er/c.sock", driver("c.example"));
        until("that in a folder is registered", || rig.driver("c.example").is_some()).await;
        secs(30).await;
        assert_eq!(rig.csi_node(), Some(vec!["c.example".to_owned()]));
        assert!([".a.sock", "file.sock", "link.sock"].iter().all(|name| rig.socket(name).is_none()));
        assert_eq!(rig.plugins.calls(&rig.path("link.sock"), "GetInfo"), 0);
    });
}

#[test]
fn a_rebuilt_manager_asks_nobody_again_and_forgets_who_went_meanwhile() {
    run(5, |kernel| async move {
        let rig = Rig::start(&kernel);
        rig.comes("a-reg.sock", driver("a.example"));
        rig.comes("b-reg.sock", driver("b.example"));
        until("both are told", || [rig.told("a-reg.sock"), rig.told("b-reg.sock")].iter().all(|t| t.len() == 1)).await;
        let generation = rig.driver("a.example").unwrap().generation;
        kernel.faults().enable();
        rig.folder.remove("b-reg.sock");
        kernel.faults().add_text("plugin-manager: kill@=look#1").unwrap();
        rig.watch.gone("b-reg.sock");
        until("it is forgotten", || rig.socket("b-reg.sock").is_none()).await;
        assert_eq!(kernel.faults().log().len(), 1);
        assert_eq!(rig.driver("a.example").unwrap().generation, generation);
        assert_eq!(rig.plugins.calls(&rig.path("a-reg.sock"), "GetInfo"), 1);
        assert_eq!(rig.csi_node(), Some(vec!["a.example".to_owned()]));
    });
}
