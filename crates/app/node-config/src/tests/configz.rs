//! `/configz` beside that of a kubelet with the same file.

use model::node::CgroupDriver;
use serde_json::{Map, Value, json};

use super::*;
use crate::configz::configz;
use crate::{Configured, Flags, configure};

/// What the recorded kubelet was given that is not a default.
const RECORDED: &str = "staticPodPath: /etc/kubernetes/manifests
port: 10350
tlsCertFile: /etc/kubernetes/pki/kubeletserver.crt
tlsPrivateKeyFile: /etc/kubernetes/pki/kubeletserver.key
authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}
registryPullQPS: 0
eventRecordQPS: 0
healthzPort: 10348
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
cgroupRoot: /gold
maxPods: 300
evictionHard: {imagefs.available: 1%, memory.available: 100Mi, nodefs.available: 1%}
failSwapOn: false
logging: {verbosity: 2}
failCgroupV1: false";

fn configured(lines: &str) -> Configured {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, format!("{HEAD}{lines}\n")).unwrap();
    configure(&Flags { config: Some(file), ..Flags::default() }).unwrap()
}

fn shown(lines: &str, driver: Option<CgroupDriver>) -> Map<String, Value> {
    let c = configured(lines);
    let document = configz(&c.document, &c.config, driver);
    document["kubeletconfig"].as_object().unwrap().clone()
}

#[test]
fn each_key_is_that_of_a_kubelet_with_the_same_file() {
    let golden: Value = serde_json::from_str(include_str!("configz.json")).unwrap();
    let golden = golden["kubeletconfig"].as_object().unwrap();
    let ours = shown(RECORDED, None);
    for (key, value) in golden {
        assert_eq!(ours.get(key), Some(value), "{key}");
    }
    let more: Vec<&String> = ours.keys().filter(|k| !golden.contains_key(*k)).collect();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn a_document_that_was_shown_is_a_file_with_the_same_meaning() {
    let first = configured(RECORDED);
    let text = serde_json::to_string(&shown(RECORDED, None)).unwrap();
    let (second, warnings) = crate::parse(&text, Path::new("/etc/bosun")).unwrap();
    assert_eq!(second, first.config);
    assert_eq!(warnings.len(), first.warnings.len(), "{warnings:?}");
}

#[test]
fn what_is_given_is_shown_in_the_words_of_go() {
    let rows = [
        ("syncFrequency: 90s", "syncFrequency", json!("1m30s")),
        ("syncFrequency: 0s", "syncFrequency", json!("1m0s")),
        ("volumeStatsAggPeriod: -1m", "volumeStatsAggPeriod", json!("-1m0s")),
        ("maxPods: 0", "maxPods", json!(110)),
        ("readOnlyPort: 10255", "readOnlyPort", json!(10255)),
        ("readOnlyPort: 0", "readOnlyPort", Value::Null),
        ("enforceNodeAllocatable: []", "enforceNodeAllocatable", json!([])),
        ("resolvConf: ''", "resolvConf", json!("")),
        ("evictionHard: {}", "evictionHard", Value::Null),
        ("maxParallelImagePulls: 3", "serializeImagePulls", json!(false)),
        ("featureGates: {EventedPLEG: true}", "featureGates", json!({"EventedPLEG": true})),
        ("rotateCertificates: false", "rotateCertificates", Value::Null),
        ("rotateCertificates: true", "rotateCertificates", json!(true)),
        ("memorySwap: {swapBehavior: NoSwap}", "memorySwap", json!({"swapBehavior": "NoSwap"})),
        ("nodeStatusUpdateFrequency: 20s", "nodeStatusReportFrequency", json!("20s")),
        ("imageServiceEndpoint: unix:///x", "imageServiceEndpoint", json!("unix:///x")),
        ("notAField: 1", "notAField", Value::Null),
        ("featureGates: {KubeletCrashLoopBackOffMax: false}", "crashLoopBackOff", json!({})),
        (
            "featureGates: {KubeletEnsureSecretPulledImages: false}",
            "imagePullCredentialsVerificationPolicy",
            Value::Null,
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 60s}",
            "crashLoopBackOff",
            json!({"maxContainerRestartPeriod": "1m0s"}),
        ),
        ("reservedSystemCPUs: 0-1\nkubeReserved: {cpu: 1, pid: 5}", "kubeReserved", json!({"pid": 5})),
        ("reservedSystemCPUs: 0-1\nkubeReserved: {cpu: 1}", "systemReserved", json!({"cpu": "2"})),
        ("reservedSystemCPUs: 0-1\nkubeReserved: {cpu: 1}", "kubeReserved", Value::Null),
    ];
    for (lines, key, value) in rows {
        assert_eq!(shown(lines, None).get(key).cloned().unwrap_or_default(), value, "{lines}");
    }
}

#[test]
fn the_driver_of_the_runtime_takes_the_place_of_the_configured_one() {
    assert_eq!(shown("cgroupDriver: cgroupfs", Some(CgroupDriver::Systemd))["cgroupDriver"], json!("systemd"));
}

#[test]
fn bare_flags_show_their_own_defaults() {
    let c = configure(&Flags::default()).unwrap();
    let document = configz(&c.document, &c.config, None);
    let shown = &document["kubeletconfig"];
    assert_eq!(shown["readOnlyPort"], json!(10255));
    assert_eq!(shown["authorization"]["mode"], json!("AlwaysAllow"));
    assert_eq!(shown["authentication"]["anonymous"]["enabled"], json!(true));
    assert_eq!(shown.get("evictionHard"), None);
}

#[test]
fn no_header_value_is_shown() {
    let shown = shown("staticPodURL: https://h/\nstaticPodURLHeader: {Authorization: [Bearer x]}", None);
    assert_eq!(shown["staticPodURLHeader"], json!({"Authorization": ["<masked>"]}));
}
