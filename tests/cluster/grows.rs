//! Volumes that become larger while pods have them, and what is measured of them. What grows here is a directory, which has the
//! size of its disk, and a device: not every machine lets a file system grow that is mounted.

use csi_driver::Config;
use serde_json::{Value, json};
use testbed::{BosunOptions, NodeOptions, wait_until};

use crate::node::{SOON, create, kubectl, start_with, wait_output, wait_reasons};
use crate::site::{Claim, PLAIN, STORAGE, Site, claimed, raw_user, user};

const SMALL: u64 = 32 << 20;
const LARGE: u64 = 64 << 20;

fn site() -> Site {
    let config = json!({"volumeStatsAggPeriod": "1s", "featureGates": {"CSIVolumeHealth": true}});
    let bosun = BosunOptions { config, ..BosunOptions::default() };
    let node = start_with(NodeOptions { bosun, ..NodeOptions::default() });
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "grows"},
        "provisioner": PLAIN, "allowVolumeExpansion": true});
    node.cluster.admin().create(&format!("{STORAGE}/storageclasses"), &class).expect("a class");
    Site::on(node, &Config { condition: true, ..Config::default() })
}

/// What the summary says of the claim's volume.
fn summary(site: &Site) -> Value {
    let text = kubectl(&site.node, &["get", "--raw", "/api/v1/nodes/bed/proxy/stats/summary"]);
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    let volumes =
        summary["pods"].as_array().into_iter().flatten().flat_map(|p| p["volume"].as_array().into_iter().flatten());
    volumes.into_iter().find(|v| v["pvcRef"]["name"] == "data").cloned().unwrap_or_default()
}

fn wait_summary(site: &Site, what: &str, good: impl Fn(&Value) -> bool) -> Value {
    let found = || Some(summary(site)).filter(&good).ok_or_else(|| summary(site).to_string());
    wait_until(what, 2 * SOON, found).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()))
}

/// The value of a metric of the claim.
fn metric(scrape: &str, name: &str) -> Option<f64> {
    let line = scrape.lines().find(|l| l.starts_with(name) && l.contains("persistentvolumeclaim=\"data\""))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// What users ask for, and what the external resizer does then.
fn enlarge(site: &Site, claim: &Claim, room: &Value) {
    let admin = site.node.cluster.admin();
    admin.patch(&claim.path(), &json!({"spec": {"resources": {"requests": room}}})).expect("a larger claim");
    let volume = format!("/api/v1/persistentvolumes/pv-{}", claim.name);
    admin.patch(&volume, &json!({"spec": {"capacity": room}})).expect("a larger volume");
    let pending = json!([{"type": "FileSystemResizePending", "status": "True"}]);
    admin.patch(&format!("{}/status", claim.path()), &json!({"status": {"conditions": pending}})).expect("told");
}

fn wait_grown(site: &Site, claim: &Claim, room: &Value) {
    let grown = || {
        let claim = site.node.cluster.admin().get(&claim.path()).map_err(|e| e.to_string())?;
        let status = &claim["status"];
        let done = status["capacity"] == *room && status["conditions"].as_array().is_none_or(Vec::is_empty);
        if done { Ok(()) } else { Err(status.to_string()) }
    };
    wait_until("the claim to have grown", 2 * SOON, grown).unwrap_or_else(|e| panic!("{e}\n{}", site.node.bosun.log()));
    let calls = site.calls_about(&claim.name);
    let expand = calls.iter().find(|call| call["call"] == "NodeExpandVolume").expect("a call");
    let asked = &expand["request"]["capacity_range"]["required_bytes"];
    assert_eq!((&expand["code"], asked), (&json!("Ok"), &json!(LARGE.to_string())), "{expand}");
}

/// Nodes look for growth once a minute, so this takes as long.
#[test]
fn volumes_in_use_are_measured_and_grow_when_their_claims_do() {
    let site = site();
    let grows = |name: &str, kind| {
        let spec = json!({"storageClassName": "grows"});
        Claim { size: "32Mi", kind, spec, ..Claim::of(name, PLAIN) }
    };
    let (data, mut disk) = (grows("data", "Filesystem"), grows("disk", "Block"));
    disk.source["volumeAttributes"]["size"] = json!(SMALL.to_string());
    [&data, &disk].into_iter().for_each(|claim| site.claim(claim));
    create(&site.node, &user("app", &claimed("data"), &json!({})));
    let read = "while sleep 0.2; do blockdev --getsize64 /dev/raw; done & ";
    create(&site.node, &raw_user("raw", &claimed("disk"), read));
    site.ready("app");
    let raw = site.ready("raw");
    // The controllers' part, before the node's next look.
    let room = json!({"storage": "64Mi"});
    wait_output(&site.node, &raw, "the size of the device", |text| text.contains(&SMALL.to_string()));
    [&data, &disk].into_iter().for_each(|claim| enlarge(&site, claim, &room));

    let seen = wait_summary(&site, "the volume to be measured", |v| bytes(&v["capacityBytes"]) > 0);
    assert!(bytes(&seen["inodes"]) > 0 && seen["volumeHealthStats"]["abnormal"] == false, "{seen}");
    let abnormal = site.folder(PLAIN).join("volumes/vol-data/data/abnormal");
    std::fs::write(abnormal, "it squeaks").expect("words");
    wait_summary(&site, "the volume to be ill", |v| v["volumeHealthStats"]["abnormal"] == true);
    // For the first time: a scrape soon after another one gets the same.
    let scrape = kubectl(&site.node, &["get", "--raw", "/api/v1/nodes/bed/proxy/metrics"]);
    assert_eq!(metric(&scrape, "kubelet_volume_stats_health_status_abnormal"), Some(1.0), "{scrape}");
    assert!(metric(&scrape, "kubelet_volume_stats_capacity_bytes").is_some_and(|bytes| bytes > 0.0), "{scrape}");

    [&data, &disk].into_iter().for_each(|claim| wait_grown(&site, claim, &room));
    wait_reasons(&site.node, "app", &["FileSystemResizeSuccessful"]);
    wait_output(&site.node, &raw, "the device to be larger", |text| text.contains(&LARGE.to_string()));
}
