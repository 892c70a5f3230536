mod address;
mod csi;
mod golden;
mod registration;
mod reporting;
mod status;

use std::collections::BTreeMap;
use std::net::IpAddr;

use model::Timestamp;
use model::core::{Node, NodeCondition};
use model::event::NodeEvent;
use model::quantity::Quantity;
use model::resources::ResourceList;

use crate::{Facts, Image, Machine, Plan, RuntimeVersion};

const T0: Timestamp = Timestamp::from_secs(1_000_000);
const T1: Timestamp = Timestamp::from_secs(1_000_010);

fn ip(s: &str) -> IpAddr {
    s.parse().unwrap()
}

fn amounts(list: &[(&str, &str)]) -> ResourceList {
    list.iter().map(|(k, v)| ((*k).to_owned(), v.parse::<Quantity>().unwrap())).collect()
}

fn plan() -> Plan {
    Plan {
        name: "n1".into(),
        hostname: "n1".into(),
        controller_attach_detach: true,
        local_storage: true,
        max_images: Some(50),
        max_pods: 110,
        port: 10250,
        version: "v1.36.2".into(),
        arch: "amd64".into(),
        ..Plan::default()
    }
}

fn facts() -> Facts {
    let capacity =
        [("cpu", "2"), ("memory", "8Gi"), ("pods", "110"), ("ephemeral-storage", "100Gi"), ("hugepages-2Mi", "0")];
    let allocatable =
        [("cpu", "1500m"), ("memory", "7Gi"), ("pods", "110"), ("ephemeral-storage", "90Gi"), ("hugepages-2Mi", "0")];
    Facts {
        addresses: Some(Ok(vec![ip("10.0.0.1")])),
        machine: Some(Machine {
            machine_id: "m".into(),
            system_uuid: "s".into(),
            boot_id: "boot-1".into(),
            swap_bytes: 0,
            capacity: amounts(&capacity),
            allocatable: amounts(&allocatable),
        }),
        kernel_version: "6.1.0".into(),
        os_image: "Debian".into(),
        runtime: Some(RuntimeVersion { name: "containerd".into(), version: "2.0.0".into() }),
        images: Some(vec![Image { digests: vec![], tags: vec!["a:1".into()], size_bytes: 5 }]),
        runtime_handlers: Some(vec![]),
        ..Facts::default()
    }
}

fn fresh() -> Node {
    crate::initial(&plan(), &facts(), T0)
}

fn condition<'a>(node: &'a Node, kind: &str) -> &'a NodeCondition {
    node.status.as_ref().unwrap().conditions.as_ref().unwrap().iter().find(|c| c.type_ == kind).unwrap()
}

fn reasons(events: &[NodeEvent]) -> Vec<&str> {
    events.iter().map(|e| e.reason.as_ref()).collect()
}

fn labels(node: &Node) -> &BTreeMap<String, String> {
    node.metadata.labels.as_ref().unwrap()
}
