use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{Reporting, changed, patch, updated};
use model::core::NodeAddress;
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity as Api;

const M5: Duration = Duration::from_secs(300);

#[test]
fn a_quiet_node_reports_every_five_minutes() {
    let at = Duration::from_secs;
    let mut r = Reporting::new(M5);
    assert!(r.is_due(at(0)), "never reported");
    r.reported(at(0), false, 0.9);
    assert!(!r.is_due(at(299)));
    assert!(r.is_due(at(300)));
}

#[test]
fn after_a_change_the_next_report_is_shifted_by_up_to_half() {
    for (random, due) in [(0.0, 150), (0.5, 300), (1.0, 450)] {
        let mut r = Reporting::new(M5);
        r.reported(Duration::ZERO, true, random);
        assert!(!r.is_due(Duration::from_secs(due - 1)), "{random}");
        assert!(r.is_due(Duration::from_secs(due)), "{random}");
    }
}

fn edited(edit: impl FnOnce(&mut Node)) -> Node {
    let mut node = fresh();
    edit(&mut node);
    node
}

#[test]
fn only_heartbeats_are_no_change() {
    let status = |n: &mut Node, edit: &dyn Fn(&mut model::core::NodeStatus)| edit(n.status.as_mut().unwrap());
    let beaten = updated(&plan(), &fresh(), &facts(), T1).0;
    let reordered = edited(|n| status(n, &|s| s.conditions.as_mut().unwrap().reverse()));
    let respelt =
        edited(|n| status(n, &|s| drop(s.capacity.as_mut().unwrap().insert("memory".into(), Api("8192Mi".into())))));
    let emptied = edited(|n| status(n, &|s| s.volumes_in_use = Some(vec![])));
    let table: Vec<(&str, Node, bool)> = vec![
        ("heartbeats", beaten, false),
        ("order of conditions", reordered, false),
        ("another notation", respelt, false),
        ("empty and absent", emptied, false),
        ("a condition", edited(|n| status(n, &|s| s.conditions.as_mut().unwrap()[3].status = "False".into())), true),
        (
            "an amount",
            edited(|n| status(n, &|s| drop(s.capacity.as_mut().unwrap().insert("memory".into(), Api("9Gi".into()))))),
            true,
        ),
        ("an image", edited(|n| status(n, &|s| s.images = None)), true),
        ("a volume", edited(|n| status(n, &|s| s.volumes_in_use = Some(vec!["v".into()]))), true),
        ("a label", edited(|n| drop(n.metadata.labels.as_mut().unwrap().remove("kubernetes.io/os"))), true),
    ];
    for (what, node, expected) in table {
        assert_eq!(changed(&fresh(), &node), expected, "{what}");
    }
}

#[test]
fn equal_nodes_need_no_patch_and_the_spec_is_never_in_one() {
    assert_eq!(patch(&fresh(), &fresh()), None);
    let cordoned = edited(|n| n.spec.as_mut().unwrap().unschedulable = Some(true));
    assert_eq!(patch(&fresh(), &cordoned), None);
}

#[test]
fn a_heartbeat_patches_times_alone() {
    let beaten = updated(&plan(), &fresh(), &facts(), T1).0;
    let time = "1970-01-12T13:46:50Z";
    let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    let expected = json!({ "status": {
        "$setElementOrder/conditions": kinds.map(|k| json!({ "type": k })),
        "conditions": kinds.map(|k| json!({ "type": k, "lastHeartbeatTime": time })),
    }});
    assert_eq!(patch(&fresh(), &beaten), Some(expected));
}

#[test]
fn maps_change_by_key_and_lose_by_null() {
    let mut node = fresh();
    node.metadata.labels.as_mut().unwrap().remove("kubernetes.io/os");
    node.metadata.labels.as_mut().unwrap().insert("a".into(), "b".into());
    let status = node.status.as_mut().unwrap();
    status.capacity.as_mut().unwrap().remove("hugepages-2Mi");
    status.capacity.as_mut().unwrap().insert("cpu".into(), Api("4".into()));
    status.node_info.as_mut().unwrap().boot_id = "boot-2".into();
    let expected = json!({
        "metadata": { "labels": { "kubernetes.io/os": null, "a": "b" } },
        "status": { "capacity": { "hugepages-2Mi": null, "cpu": "4" }, "nodeInfo": { "bootID": "boot-2" } },
    });
    assert_eq!(patch(&fresh(), &node), Some(expected));
}

#[test]
fn addresses_are_replaced_whole() {
    let mut node = fresh();
    node.status.as_mut().unwrap().addresses =
        Some(vec![NodeAddress { type_: "Hostname".into(), address: "n2".into() }]);
    let expected =
        json!({ "status": { "addresses": [{ "type": "Hostname", "address": "n2" }, { "$patch": "replace" }] } });
    assert_eq!(patch(&fresh(), &node), Some(expected));
}

#[test]
fn foreign_conditions_are_not_touched_and_only_vanished_ones_deleted() {
    let foreign =
        NodeCondition { type_: "NetworkUnavailable".into(), status: "False".into(), ..NodeCondition::default() };
    let with = edited(|n| n.status.as_mut().unwrap().conditions.as_mut().unwrap().push(foreign));
    let beaten = updated(&plan(), &with, &facts(), T1).0;
    let p = patch(&with, &beaten).unwrap();
    assert!(p["status"]["conditions"].as_array().unwrap().iter().all(|c| c["type"] != "NetworkUnavailable"));
    assert_eq!(p["status"]["$setElementOrder/conditions"].as_array().unwrap().len(), 5);
    let p = patch(&with, &fresh()).unwrap();
    assert_eq!(p["status"]["conditions"], json!([{ "$patch": "delete", "type": "NetworkUnavailable" }]));
}

#[test]
fn lists_are_replaced_and_dropped_by_null() {
    let mut node = fresh();
    node.status.as_mut().unwrap().images = None;
    node.status.as_mut().unwrap().volumes_in_use = Some(vec!["v".into()]);
    assert_eq!(patch(&fresh(), &node), Some(json!({ "status": { "images": null, "volumesInUse": ["v"] } })));
}
