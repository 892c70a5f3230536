//! What rules and dashboards of the usual monitoring stack ask of a node is there once it has worked (interfaces 5.2,
//! and the rows of 5.1 with a star).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fakes::runtime::{ExecReply, Fault, Program, Pull};
use metrics_endpoint::{BuildInfo, ClaimUsage, Deps, FeatureGate, Usage, router};
use sim::{LIMIT, SimNode};
use tower::ServiceExt;

use crate::{pod, run, secs, simple};

/// Series, and the labels by which rules select, group and join. Of kubernetes-mixin and kube-prometheus: recording rules,
/// alerts, the kubelet dashboard.
const ASKED: &[(&str, &[&str])] = &[
    ("kubelet_node_name", &["node"]),
    ("kubelet_running_pods", &[]),
    ("kubelet_running_containers", &["container_state"]),
    ("kubelet_pod_worker_duration_seconds_bucket", &["operation_type", "le"]),
    ("kubelet_pod_worker_duration_seconds_count", &["operation_type"]),
    ("kubelet_pod_start_duration_seconds_bucket", &["le"]),
    ("kubelet_pod_start_duration_seconds_count", &[]),
    ("kubelet_pleg_relist_duration_seconds_bucket", &["le"]),
    ("kubelet_pleg_relist_duration_seconds_count", &[]),
    ("kubelet_pleg_relist_interval_seconds_bucket", &["le"]),
    ("kubelet_runtime_operations_total", &["operation_type"]),
    ("kubelet_runtime_operations_errors_total", &["operation_type"]),
    ("kubelet_runtime_operations_duration_seconds_bucket", &["operation_type", "le"]),
    ("kubelet_cgroup_manager_duration_seconds_bucket", &["operation_type", "le"]),
    ("kubelet_cgroup_manager_duration_seconds_count", &["operation_type"]),
    ("kubelet_certificate_manager_client_ttl_seconds", &[]),
    ("kubelet_certificate_manager_server_ttl_seconds", &[]),
    ("kubelet_certificate_manager_client_expiration_renew_errors", &[]),
    ("kubelet_server_expiration_renew_errors", &[]),
    ("kubelet_volume_stats_capacity_bytes", &["namespace", "persistentvolumeclaim"]),
    ("kubelet_volume_stats_available_bytes", &["namespace", "persistentvolumeclaim"]),
    ("kubelet_volume_stats_used_bytes", &["namespace", "persistentvolumeclaim"]),
    ("kubelet_volume_stats_inodes", &["namespace", "persistentvolumeclaim"]),
    ("kubelet_volume_stats_inodes_used", &["namespace", "persistentvolumeclaim"]),
    ("kubelet_volume_stats_inodes_free", &["namespace", "persistentvolumeclaim"]),
    ("storage_operation_duration_seconds_count", &["operation_name", "volume_plugin", "status", "migrated"]),
    ("storage_operation_duration_seconds_bucket", &["operation_name", "volume_plugin", "le"]),
    ("volume_manager_total_volumes", &["plugin_name", "state"]),
    ("process_cpu_seconds_total", &[]),
    ("process_resident_memory_bytes", &[]),
    ("process_start_time_seconds", &[]),
    ("go_goroutines", &[]),
    ("kubernetes_build_info", &["git_version", "major", "minor", "git_commit", "build_date", "platform", "go_version"]),
];

/// Ours, and others that a node tells of once it has worked.
const ALSO: &[(&str, &[&str])] = &[
    ("kubelet_active_pods", &["static"]),
    ("kubelet_desired_pods", &["static"]),
    ("kubelet_working_pods", &["config", "lifecycle", "static"]),
    ("kubelet_containers_per_pod_count_count", &[]),
    ("kubelet_pod_worker_start_duration_seconds_count", &[]),
    ("kubelet_pod_start_sli_duration_seconds_bucket", &["le"]),
    ("kubelet_pod_start_total_duration_seconds_count", &[]),
    ("kubelet_first_network_pod_start_sli_duration_seconds", &[]),
    ("kubelet_started_pods_total", &[]),
    ("kubelet_started_pods_errors_total", &[]),
    ("kubelet_started_containers_total", &["container_type"]),
    ("kubelet_started_containers_errors_total", &["container_type", "code"]),
    ("kubelet_terminated_containers_total", &["container_type", "exit_code", "reason"]),
    ("kubelet_admission_rejections_total", &["reason"]),
    ("kubelet_run_podsandbox_duration_seconds_count", &["runtime_handler"]),
    ("kubelet_image_pull_duration_seconds_count", &["image_size_in_bytes"]),
    ("kubelet_image_manager_ensure_image_requests_total", &["present_locally", "pull_policy", "pull_required"]),
    ("kubelet_pleg_last_seen_seconds", &[]),
    ("kubelet_pleg_pod_relist_duration_seconds_count", &[]),
    ("kubelet_cgroup_version", &[]),
    ("kubernetes_feature_enabled", &["name", "stage"]),
    ("bosun_actors", &["actor", "group", "state"]),
    ("bosun_actor_restarts_total", &["actor", "group"]),
    ("bosun_actor_turns_total", &["actor", "group"]),
    ("bosun_pod_start_phase_seconds_bucket", &["phase", "le"]),
];

fn deps(node: &SimNode) -> Deps {
    let wiring = node.wiring();
    let claim = ClaimUsage {
        namespace: "default".into(),
        claim: "data".into(),
        capacity_bytes: Some(10),
        available_bytes: Some(6),
        used_bytes: Some(4),
        inodes: Some(3),
        inodes_free: Some(2),
        inodes_used: Some(1),
        abnormal: None,
    };
    let crew = wiring.crew::<contract::Server>();
    Deps {
        kernel: node.kernel.clone(),
        lookup: contract::lookup::PodLookup::of(wiring),
        workers: wiring.board(),
        volumes: Arc::new(move || {
            let crew = crew.clone();
            Box::pin(async move { crew.ask(contract::volume::ListVolumes).await.ok() })
        }),
        plugins: wiring.board(),
        certificates: wiring.value(),
        client_certificate_managed: true,
        serving_certificate_managed: true,
        node_name: "sim".into(),
        feature_gates: [FeatureGate { name: "KubeletPSI".into(), stage: "BETA".into(), enabled: true }].into(),
        build: BuildInfo::default(),
        health_checks: Arc::new(Vec::new),
        elsewhere: None,
        // No claims yet: what a measurement of one would say.
        usage: Some(Arc::new(move || {
            let claims = vec![claim.clone()];
            Box::pin(async move { Usage { claims, logs: Vec::new() } })
        })),
    }
}

/// Series by name: their labels.
async fn scrape(node: &SimNode, path: &str) -> BTreeMap<String, Vec<BTreeMap<String, String>>> {
    let request = axum::http::Request::get(path).body(axum::body::Body::empty()).unwrap();
    let answer = router(deps(node)).oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 24).await.unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let mut all: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (series, _value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels.trim_end_matches('}').split("\",").filter(|l| !l.is_empty()).map(|l| {
            let (key, value) = l.split_once("=\"").unwrap();
            (key.to_owned(), value.trim_end_matches('"').to_owned())
        });
        all.entry(name.to_owned()).or_default().push(labels.collect());
    }
    all
}

/// A day in the life of a node: good and bad starts, a crash, a pull, a refusal, probes, an end.
async fn work(node: &SimNode) {
    node.world.runtime.inject(Fault::error("RunPodSandbox", tonic::Code::Unknown, "no room").times(1));
    let gone = "not found".to_owned();
    node.world.runtime.registry("nowhere:1", Pull::Fails(secs(1), tonic::Code::NotFound, gone));
    node.world.runtime.program("crash", &[Program::exits(secs(1), 3)]);
    node.world.runtime.on_exec(|_| ExecReply::default());
    node.world.runtime.registry("far:1", Pull::Succeeds(secs(2)));
    let spec = "
  volumes: [{name: v, emptyDir: {}}]
  initContainers: [{name: first, image: 'far:1'}]
  containers:
  - name: app
    image: app:1
    volumeMounts: [{name: v, mountPath: /v}]
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 5}";
    node.world.runtime.program("first", &[Program::exits(secs(1), 0)]);
    node.put("web.yaml", &pod("web", spec));
    node.put("crash.yaml", &pod("crash", "\n  containers: [{name: crash, image: 'app:1'}]"));
    node.put("bad.yaml", &pod("bad", "\n  containers: [{name: app, image: 'nowhere:1'}]"));
    let huge = "\n  containers: [{name: app, image: 'app:1', resources: {requests: {cpu: '64'}}}]";
    node.put("huge.yaml", &pod("huge", huge));
    node.put("short.yaml", &simple("short", ""));
    node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
    node.until("short is ready", LIMIT, |n| n.is_ready("short")).await;
    tokio::time::sleep(secs(30)).await;
    node.remove("short.yaml");
    node.until("short is gone", LIMIT, |n| n.is_gone("short")).await;
}

#[test]
fn what_rules_and_dashboards_ask_for_is_there_once_the_node_has_worked() {
    run(async |node| {
        work(&node).await;
        let all = scrape(&node, "/metrics").await;
        for (name, labels) in ASKED.iter().chain(ALSO) {
            let Some(series) = all.get(*name) else { panic!("{name} is absent of {:#?}", all.keys()) };
            let missing: Vec<_> = labels.iter().filter(|l| series.iter().any(|s| !s.contains_key(**l))).collect();
            assert!(missing.is_empty(), "{name} lacks {missing:?}: {series:?}");
        }
        let values = |name: &str, label: &str| -> BTreeSet<String> {
            all[name].iter().filter_map(|s| s.get(label).cloned()).collect()
        };
        for (name, label, expected) in [
            ("kubelet_pod_worker_duration_seconds_count", "operation_type", &["create", "sync"][..]),
            (
                "bosun_pod_start_phase_seconds_count",
                "phase",
                &["admit", "create", "pull", "sandbox", "source", "start", "status", "volumes"],
            ),
            ("kubelet_started_containers_total", "container_type", &["container", "init_container"]),
            ("kubelet_terminated_containers_total", "exit_code", &["0", "3"]),
            ("kubelet_started_containers_errors_total", "code", &["ErrImagePull"]),
            ("kubelet_admission_rejections_total", "reason", &["UnexpectedAdmissionError"]),
            ("kubelet_runtime_operations_errors_total", "operation_type", &["run_podsandbox"]),
            ("kubelet_cgroup_manager_duration_seconds_count", "operation_type", &["create", "destroy", "update"]),
            ("storage_operation_duration_seconds_count", "operation_name", &["volume_mount"]),
            ("storage_operation_duration_seconds_count", "volume_plugin", &["kubernetes.io/empty-dir"]),
        ] {
            let found = values(name, label);
            assert!(expected.iter().all(|e| found.contains(*e)), "{name}: {label}={expected:?} in {found:?}");
        }
    });
}

#[test]
fn a_pod_leaves_no_series_of_its_own_behind() {
    run(async |node| {
        work(&node).await;
        let probes = scrape(&node, "/metrics/probes").await;
        let uid = node.uid("web").unwrap();
        let of_web = |all: &BTreeMap<String, Vec<BTreeMap<String, String>>>, name: &str| {
            let web = |s: &&BTreeMap<String, String>| s.get("pod_uid").is_some_and(|u| u == uid.as_str());
            all.get(name).map_or(0, |series| series.iter().filter(web).count())
        };
        let expected: BTreeMap<String, String> = [
            ("container", "app"),
            ("namespace", "default"),
            ("pod", "web-sim"),
            ("pod_uid", uid.as_str()),
            ("probe_type", "Readiness"),
            ("result", "successful"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        assert!(probes["prober_probe_total"].contains(&expected), "{probes:?}");
        assert!(probes.contains_key("prober_probe_duration_seconds_count"));
        let main = scrape(&node, "/metrics").await;
        let of_a_pod = |s: &BTreeMap<String, String>| s.values().any(|v| v.contains(uid.as_str()) || v == "web-sim");
        let named: Vec<&String> = main.iter().filter(|(_, all)| all.iter().any(of_a_pod)).map(|(n, _)| n).collect();
        assert!(named.is_empty(), "series per pod on /metrics: {named:?}");
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        let probes = scrape(&node, "/metrics/probes").await;
        assert_eq!(of_web(&probes, "prober_probe_total"), 0, "{probes:?}");
    });
}
