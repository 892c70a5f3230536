//! File, drop-ins, flags.

use model::node::CgroupDriver;

use std::path::Path;

use super::flags::configured;
use super::{HEAD, NodeConfig};
use crate::{Configured, Flags, configure};

struct Dir(tempfile::TempDir);

impl Dir {
    fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{HEAD}{text}\n")).unwrap();
        }
        Self(dir)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Configures with `c.yaml` when it exists, the folder `d` when it exists, and flags.
    fn read(&self, flags: &[&str]) -> Result<Configured, String> {
        let mut line = Vec::new();
        for (flag, name) in [("config", "c.yaml"), ("config-dir", "d")] {
            if Path::new(&self.at(name)).exists() {
                line.push(format!("--{flag}={}", self.at(name)));
            }
        }
        line.extend(flags.iter().map(|f| (*f).to_owned()));
        let Ok(crate::flags::Asked::Run(flags)) = crate::flags::parse(&line) else { panic!("{line:?}") };
        configure(&flags).map_err(|e| e.to_string())
    }

    fn config(&self, flags: &[&str]) -> NodeConfig {
        self.read(flags).unwrap().config
    }
}

#[test]
fn a_flag_wins_over_a_drop_in_and_a_drop_in_over_the_file() {
    let dir = Dir::with(&[
        ("c.yaml", "maxPods: 1\npodsPerCore: 1\nregistryBurst: 1"),
        ("d/a.conf", "podsPerCore: 2\nregistryBurst: 2"),
    ]);
    let c = dir.config(&["--registry-burst=3"]);
    assert_eq!((c.pods.max_pods, c.pods.pods_per_core, c.images.registry_burst), (1, 2, 3));
}

#[test]
fn drop_ins_are_read_in_the_order_of_a_walk_and_other_names_are_ignored() {
    let dir = Dir::with(&[
        ("d/10-a.conf", "maxPods: 10\npodsPerCore: 10"),
        ("d/20-sub/a.conf", "maxPods: 20\nregistryBurst: 20"),
        ("d/30-b.conf", "podsPerCore: 30"),
        ("d/90-c.yaml", "maxPods: 90"),
        ("d/91.conf.bak", "maxPods: 91"),
    ]);
    let found = dir.read(&[]).unwrap();
    let c = &found.config;
    assert_eq!((c.pods.max_pods, c.pods.pods_per_core, c.images.registry_burst), (20, 30, 20));
    let names: Vec<_> = found.files.iter().map(|f| f.strip_prefix(dir.0.path()).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["d/10-a.conf", "d/20-sub/a.conf", "d/30-b.conf"]);
}

#[test]
fn maps_merge_lists_are_replaced_and_null_goes_back_to_the_default() {
    let dir = Dir::with(&[
        (
            "c.yaml",
            "clusterDNS: [10.0.0.1]\nsystemReserved: {cpu: 1, memory: 1Gi}\nmaxPods: 5\nevictionHard: {memory.available: 1Gi}\nfeatureGates: {EventedPLEG: true}",
        ),
        (
            "d/a.conf",
            "clusterDNS: [10.0.0.2, 10.0.0.3]\nsystemReserved: {cpu: 2}\nmaxPods: null\nevictionHard: {pid.available: 5%}\nfeatureGates: {MemoryQoS: true}",
        ),
    ]);
    let c = dir.config(&["--feature-gates=EventedPLEG=false,CRIListStreaming=true"]);
    assert_eq!(c.dns.cluster_dns.len(), 2);
    assert_eq!(
        (c.allocatable.system_reserved["cpu"].value(), c.allocatable.system_reserved["memory"].value()),
        (2, 1 << 30)
    );
    assert_eq!(c.pods.max_pods, 110);
    assert_eq!(c.eviction.hard.keys().collect::<Vec<_>>(), ["memory.available", "pid.available"]);
    let on = |name| c.feature_gates.enabled(name);
    assert_eq!((on("EventedPLEG"), on("MemoryQoS"), on("CRIListStreaming")), (false, true, true));
}

#[test]
fn a_flag_replaces_a_whole_map_of_the_files() {
    let dir = Dir::with(&[("c.yaml", "systemReserved: {cpu: 1, memory: 1Gi}\nevictionHard: {memory.available: 1Gi}")]);
    let c = dir.config(&["--system-reserved=cpu=2", "--eviction-hard=pid.available<5%"]);
    assert_eq!(c.allocatable.system_reserved.len(), 1);
    assert_eq!(c.eviction.hard.keys().collect::<Vec<_>>(), ["pid.available"]);
}

#[test]
fn thresholds_have_defaults_with_a_file_only() {
    assert!(configured(&[]).config.eviction.hard.is_empty());
    assert!(Dir::with(&[("d/a.conf", "maxPods: 5")]).config(&[]).eviction.hard.is_empty());
    let dir = Dir::with(&[("c.yaml", ""), ("d/a.conf", "evictionHard: {memory.available: 5%}")]);
    assert_eq!(dir.config(&[]).eviction.hard.len(), 5);
}

#[test]
fn bare_flags_stand_on_insecure_defaults_and_a_file_on_secure_ones() {
    let mode = |c: &Configured| c.document.get("authorization").map(|a| a["mode"].clone());
    let bare = configured(&["--max-pods=5"]);
    assert_eq!(mode(&bare), Some("AlwaysAllow".into()));
    assert!(bare.warnings.iter().all(|w| w.path != "authorization"), "{:?}", bare.warnings);
    let drop_in = Dir::with(&[("d/a.conf", "maxPods: 5")]);
    assert_eq!(mode(&drop_in.read(&[]).unwrap()), Some("AlwaysAllow".into()));
    let file = Dir::with(&[("c.yaml", "maxPods: 5")]);
    assert_eq!(mode(&file.read(&[]).unwrap()), None);
}

#[test]
fn an_error_names_the_layer_that_the_value_came_from() {
    let dir = Dir::with(&[
        ("c.yaml", "maxPods: -1\nregistryBurst: -1\nsystemReserved: {cpu: x}"),
        ("d/a.conf", "registryBurst: -2\nauthorization: {mode: RBAC}"),
        ("d/b.conf", "evictionHard: {memory.available: 1%, pid.available: x}"),
    ]);
    let text = dir.read(&["--pods-per-core=-1"]).unwrap_err();
    let lines: Vec<&str> = text.lines().collect();
    for start in [
        format!("{}: maxPods: -1: ", dir.at("c.yaml")),
        format!("{}: registryBurst: -2: ", dir.at("d/a.conf")),
        format!("{}: systemReserved.cpu: \"x\": ", dir.at("c.yaml")),
        format!("{}: authorization.mode: \"RBAC\": ", dir.at("d/a.conf")),
        format!("{}: evictionHard.pid.available: \"x\": ", dir.at("d/b.conf")),
        "--pods-per-core: podsPerCore: -1: ".to_owned(),
    ] {
        assert!(lines.iter().any(|l| l.starts_with(&start)), "{start}\n{text}");
    }
    assert_eq!(lines.len(), 6, "{text}");
}

#[test]
fn a_drop_in_must_say_what_it_is() {
    let dir = Dir::with(&[("c.yaml", "maxPods: 5")]);
    std::fs::create_dir(dir.at("d")).unwrap();
    for (text, reason) in [
        ("", "is empty"),
        ("maxPods: 5", "apiVersion: must be given"),
        ("apiVersion: v1\nkind: Pod\n", "apiVersion: \"v1\": is not what this file must be"),
        ("a: [", "line "),
    ] {
        std::fs::write(dir.at("d/x.conf"), text).unwrap();
        let error = dir.read(&[]).unwrap_err();
        assert!(error.starts_with(&format!("{}: {reason}", dir.at("d/x.conf"))), "{error}");
    }
}

#[test]
fn paths_of_drop_ins_and_flags_do_not_start_at_a_folder_of_theirs() {
    let dir = Dir::with(&[("c.yaml", "staticPodPath: here"), ("d/a.conf", "resolvConf: there")]);
    let c = dir.config(&[]);
    assert_eq!(c.sources.static_pod_path, Some(dir.0.path().join("here")));
    assert_eq!(c.dns.resolv_conf, Some("there".into()));
    assert_eq!(dir.config(&["--pod-manifest-path=else"]).sources.static_pod_path, Some("else".into()));
    let log = Dir::with(&[("c.yaml", ""), ("d/a.conf", "podLogsDir: logs")]).read(&[]).unwrap_err();
    assert!(log.contains("podLogsDir: \"logs\""), "{log}");
}

#[test]
fn the_report_frequency_follows_the_update_frequency_of_its_own_file_only() {
    let report = |files: &[(&str, &str)]| Dir::with(files).config(&[]).node.status_report_frequency.as_secs();
    assert_eq!(report(&[("c.yaml", "nodeStatusUpdateFrequency: 20s")]), 20);
    assert_eq!(report(&[("c.yaml", ""), ("d/a.conf", "nodeStatusUpdateFrequency: 20s")]), 300);
    assert_eq!(report(&[("c.yaml", "nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m")]), 60);
}

#[test]
fn the_empty_command_line_is_the_default_without_thresholds_and_open_to_all() {
    let mut expected = NodeConfig::default();
    expected.eviction.hard.clear();
    expected.server.authentication.anonymous = true;
    expected.server.authentication.webhook = false;
    expected.server.authorization.mode = crate::AuthorizationMode::AlwaysAllow;
    expected.server.read_only_port = Some(10255);
    let found = configure(&Flags::default()).unwrap();
    assert_eq!(found.config, expected);
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

/// What kubeadm 1.36 leaves on a worker: unit drop-in, environment, configuration.
#[test]
fn a_node_of_kubeadm_starts_with_its_own_files_and_flags() {
    let env = include_str!("kubeadm/kubeadm-flags.env");
    let args = env.trim().strip_prefix("KUBELET_KUBEADM_ARGS=\"").unwrap().strip_suffix('"').unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, include_str!("kubeadm/config.yaml")).unwrap();
    let mut line: Vec<String> = [
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        &format!("--config={}", file.display()),
    ]
    .map(str::to_owned)
    .to_vec();
    line.extend(args.split_whitespace().map(str::to_owned));
    let Ok(crate::flags::Asked::Run(flags)) = crate::flags::parse(&line) else { panic!("{line:?}") };
    let found = configure(&flags).unwrap();
    let c = &found.config;
    assert_eq!(c.cgroups.driver, CgroupDriver::Systemd);
    assert_eq!(c.sources.static_pod_path, Some("/etc/kubernetes/manifests".into()));
    assert_eq!(c.runtime.container_runtime_endpoint, "unix:///var/run/containerd/containerd.sock");
    assert!(c.api.rotate_certificates && !c.server.tls.bootstrap);
    assert_eq!(flags.hostname_override.as_deref(), Some("worker-1"));
    assert_eq!((c.pods.sync_frequency.as_secs(), c.node.status_update_frequency.as_secs()), (60, 10));
    assert!(c.server.authentication.client_ca_file.is_some() && !c.server.authentication.anonymous);
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn a_node_of_kind_starts_with_its_own_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, include_str!("kubeadm/kind.yaml")).unwrap();
    let line = [
        &format!("--config={}", file.display()),
        "--node-ip=172.18.0.2",
        "--node-labels=",
        "--provider-id=kind://docker/kind/kind-worker",
        "--runtime-cgroups=/system.slice/containerd.service",
        "--pod-infra-container-image=registry.k8s.io/pause:3.10",
    ];
    let found = configured(&line);
    assert_eq!(found.config.cgroups.root, "/kubelet");
    assert!(found.config.eviction.hard.is_empty() && !found.config.cgroups.fail_swap_on);
    let unknown: Vec<String> =
        found.warnings.iter().filter(|w| w.reason.contains("unknown field")).map(|w| w.to_string()).collect();
    assert_eq!(unknown, ["metadata: unknown field, ignored"]);
}
