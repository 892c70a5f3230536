use std::path::Path;

use super::*;
use crate::load;

#[test]
fn paths_in_a_file_start_at_the_folder_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, format!("{HEAD}staticPodPath: manifests\nresolvConf: dns/resolv.conf\npodLogsDir: logs\n"))
        .unwrap();
    let (config, warnings) = load(&file).unwrap();
    assert_eq!(config.sources.static_pod_path.as_deref(), Some(dir.path().join("manifests").as_path()));
    assert_eq!(config.dns.resolv_conf.as_deref(), Some(dir.path().join("dns/resolv.conf").as_path()));
    assert_eq!(config.pods.logs_dir, dir.path().join("logs"));
    assert!(warnings.is_empty());
}

#[test]
fn every_line_of_an_error_names_the_file_the_key_the_value_and_what_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, format!("{HEAD}maxPods: many\nsyncFrequency: 10\nmemorySwap: {{swapBehavior: Some}}\n"))
        .unwrap();
    let text = load(&file).unwrap_err().to_string();
    let name = file.display();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            format!("{name}: syncFrequency: 10: has the wrong type (allowed: 0 or more, as in 20s, 1m30s or 100ms)"),
            format!(
                "{name}: memorySwap.swapBehavior: \"Some\": is not one of the known words (allowed: \"NoSwap\", \"LimitedSwap\")"
            ),
            format!("{name}: maxPods: \"many\": has the wrong type (allowed: a whole number from 0 to 2147483647)"),
        ]
    );
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let text = load(Path::new("/nonexistent/config.yaml")).unwrap_err().to_string();
    assert!(text.starts_with("/nonexistent/config.yaml: cannot be read: "), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c");
    std::fs::write(&file, b"a: \xff").unwrap();
    assert!(load(&file).unwrap_err().to_string().ends_with("is not UTF-8: byte 3 is not part of a character"));
}

#[test]
fn the_configuration_of_a_running_kubelet_is_accepted() {
    let configz: serde_json::Value = serde_json::from_str(include_str!("configz.json")).unwrap();
    let (config, warnings) = crate::parse(&configz["kubeletconfig"].to_string(), Path::new("/")).unwrap();
    assert_eq!(config.cgroups.root, "/gold");
    assert_eq!(config.pods.max_pods, 300);
    assert_eq!(config.images.registry_pull_qps, 0);
    assert!(warnings.iter().all(|w| !w.reason.contains("unknown field")), "{warnings:?}");
}

#[test]
fn the_sample_is_the_default_but_for_the_folder_and_the_server_and_its_comments_tell_the_truth() {
    let sample = include_str!("../../../../../config/bosun.yaml");
    let (config, warnings) = crate::parse(sample, Path::new("/")).unwrap();
    assert_eq!(warnings, []);
    let mut expected = NodeConfig::default();
    expected.sources.static_pod_path = Some("/etc/kubernetes/manifests".into());
    expected.server.enable_server = false;
    assert_eq!(config, expected);
    // Each commented-out field shows its default.
    let field = |line: &str| {
        let line = line.strip_prefix("# ")?;
        let (name, value) = line.trim_start().split_once(':')?;
        let is_field = name.chars().all(char::is_alphanumeric) && name.starts_with(char::is_lowercase);
        (is_field && (value.is_empty() || value.starts_with(' '))).then(|| line.to_owned())
    };
    let shown: Vec<String> = sample.lines().filter_map(field).collect();
    assert!(shown.len() > 30, "{shown:?}");
    assert_eq!(read(&shown.join("\n")).unwrap(), (NodeConfig::default(), Vec::new()));
}
